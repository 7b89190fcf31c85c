"""Links as Markdown writes them, and where they lead.

Only the plainest forms are known here. What has entities, escapes or blanks in it may be read in more than one way, and
is taken for no link.
"""

import re

_DEST = r"[^\s()<>\\`|\"]*(?:\([^\s()<>\\`|\"]*\)[^\s()<>\\`|\"]*)*"
_TITLE = r"\"[^\"\\`<>\[\]|\n]{0,200}\""
LINK = re.compile(rf"\( *(?:<(?P<wrapped>[^\s<>\\`|]*)>|(?P<plain>{_DEST}))(?: +{_TITLE})? *\)")
LINK_BEGUN = re.compile(
    r"\( *(?:<[^\s<>\\`|]*(?:>(?: +(?:\"[^\"\\`<>\[\]|\n]{0,200}(?:\" *)?)?)?)?"
    rf"|{_DEST}(?:\([^\s()<>\\`|\"]*|(?: +(?:\"[^\"\\`<>\[\]|\n]{{0,200}}(?:\" *)?)?)?))\Z"
)
"""What may become a ``LINK`` when more of it comes."""
_ENTITY = re.compile(r"&#?\w+;")
_TRAILING = "?!.,:;'_~"


def trimmed(address: str) -> str:
    """Without what chat clients do not take for a part of it."""
    while address:
        if address[-1] in _TRAILING or (address[-1] == ")" and address.count(")") > address.count("(")):
            address = address[:-1]
        else:
            break
    return address


def is_plain(address: str) -> bool:
    return _ENTITY.search(address) is None


def is_of_the_site(address: str) -> bool:
    """A path, an anchor, a query: whatever page shows it, it leads to the same host."""
    if not is_plain(address) or address.startswith("//"):
        return False
    return ":" not in re.split("[/?#]", address, maxsplit=1)[0]
