"""Characters of addresses that must be percent-encoded (RFC 3986), and of links in Markdown (CommonMark 0.31, 6.3)."""

import re
from urllib.parse import quote

_ENCODED_LETTER = re.compile(r"%[89A-F][0-9A-F]", re.IGNORECASE)
_ALWAYS = frozenset('%#?<>\\"^`{|}')
_UNSAFE = re.compile(r"[\s%#?<>\\\"^`{|}\[\]]")


def encoded_address(address: str) -> str:
    """Return the path of a page as it stands in an address and in links. Letters of other scripts stay, as readers and
    browsers show them.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), address)


def with_anchor(address: str, anchor: str) -> str:
    """Return an address, encoded, with the anchor of a section; empty for none."""
    return f"{encoded_address(address)}#{_SPACE.sub('%20', anchor)}" if anchor else encoded_address(address)


_SPACE = re.compile(r"\s")


def link_target(path: str, like: str, *, is_wrapped: bool = False) -> str:
    """Return a path as the target of a link, letters of other scripts encoded where the old target, ``like``, has them
    so. ``is_wrapped``: it stands between ``<`` and ``>``, where blanks may stand.
    """
    has_encoded = _ENCODED_LETTER.search(like) is not None
    unbalanced = "" if is_wrapped or _is_balanced(path) else "()"
    return "".join(
        quote(c, safe="")
        if c in _ALWAYS or (c.isspace() and not is_wrapped) or (has_encoded and not c.isascii())
        else f"%{ord(c):02X}"
        if c in unbalanced
        else c
        for c in path
    )


def _is_balanced(path: str) -> bool:
    depth = 0
    for c in path:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0
