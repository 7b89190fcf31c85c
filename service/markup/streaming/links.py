"""Links as Markdown writes them, and where they lead.

Only the plainest forms are known here. What has entities, escapes or blanks in it may be read in more than one way, and
is taken for no link.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

_DEST = r"[^\s()<>\\`|\"]*(?:\([^\s()<>\\`|\"]*\)[^\s()<>\\`|\"]*)*"
_TITLE = r"\"[^\"\\`<>\[\]|\n]{0,200}\""
LINK = re.compile(rf"\( *+(?:<(?P<wrapped>[^\s<>\\`|]*)>|(?P<plain>{_DEST}))(?:(?:(?<= )| ++){_TITLE})? *+\)")
LINK_BEGUN = re.compile(
    r"\( *+(?:<[^\s<>\\`|]*(?:>(?: ++(?:\"[^\"\\`<>\[\]|\n]{0,200}(?:\" *+)?)?)?)?"
    rf"|{_DEST}(?:\([^\s()<>\\`|\"]*|(?:(?:(?<= )| ++)(?:\"[^\"\\`<>\[\]|\n]{{0,200}}(?:\" *+)?)?)?))\Z"
)
"""The beginning of a text that may become a ``LINK``."""
SCHEME = r"(?<![A-Za-z])(?:(?:https?|ftp)://|www\.)"
IN_WORD = r"://(?:(?<=https://)|(?<=http://)|(?<=ftp://))|\.(?<=www\.)"
"""The end of a scheme that a letter stands before. Some clients make a link of that, too."""
SCHEME_BEGUN = re.compile(
    r"(?:(?<![A-Za-z])(?:h(?:t(?:t(?:p(?:s(?::/?)?|:/?)?)?)?)?|f(?:t(?:p(?::/?)?)?)?|w{1,3})"
    r"|(?:(?<=http)|(?<=https)|(?<=ftp)):/?)\Z",
    re.IGNORECASE,
)
ENDS_OF_BEGUN = frozenset("hHtTpPsSfFwW")
ADDRESS = re.compile(rf"(?:{SCHEME}|{IN_WORD})[\w\-.~:/?#@!$&'()+,;=%]*", re.IGNORECASE)
"""An address without brackets, as chat clients know it."""
MAX_MAIL_NAME = 65
"""Characters before an ``@`` that are looked at; RFC 5321 (section 4.5.3.1.1) allows one less."""
MAIL_NAME = re.compile(r"(?<![\w.+-])[\w.+-]+\Z")
MAIL_HOST = re.compile(r"@[\w.-]*")
AUTOLINK = re.compile(r"<(?:(?P<address>https?://[^\s<>`|\\\"]*)|(?P<mail>[\w.+-]+@[\w.-]+))>", re.IGNORECASE)
AUTOLINK_BEGUN = re.compile(r"<(?:[A-Za-z0-9_.+-]*(?:@[\w.-]*)?|https?:/?/?|https?://[^\s<>`|\\\"]*)\Z", re.IGNORECASE)
_ENTITY = re.compile(r"&#?\w+;")
_TRAILING = "?!.,:;'_~"


def trimmed(address: str) -> str:
    """Without what chat clients do not take for a part of it."""
    end, closed = len(address), address.count(")") - address.count("(")
    while end and (address[end - 1] in _TRAILING or (address[end - 1] == ")" and closed > 0)):
        end -= 1
        closed -= address[end] == ")"
    return address[:end]


class Shown(Struct, frozen=True):
    """How an address without brackets is shown."""

    length: int
    """Characters of it that are used."""
    text: str
    is_code: bool = False
    """It is shown as code, so that no client makes a link of it."""
    ends_label: bool = False


def shown_address(
    whole: str, follows: str, *, is_allowed_url: Callable[[str], bool], ends_label: bool, is_whole: bool
) -> Shown:
    """Return how an address is shown that no brackets are around.

    ``follows``: the character behind it. ``ends_label``: a bracket behind it closes a link's words. ``is_whole``: there
    is no more of it than this.
    """
    address = trimmed(whole)
    is_bare = address[:4].lower() == "www."
    target = f"https://{address}" if is_bare else address
    is_behind = follows in ("", " ", "\n", "\t")
    if whole[0] in ":.":  # of a word that ends like a scheme, which has been sent
        return Shown(len(whole), whole, is_code=bool(whole.strip("./:")) or not is_behind)
    if address.lower() == "www":
        return Shown(len(whole), whole, is_code=True)
    if not is_bare and not address.partition("//")[2]:
        return Shown(len(whole), whole + ("" if is_behind else " "))
    if not (is_whole and is_plain(target) and is_allowed_url(target)):
        return Shown(len(address), address, is_code=True)
    if follows == "]" and address == whole and ends_label:
        return Shown(len(address), address, ends_label=True)
    if is_behind and not whole[len(address) :].strip(".,:;!?)"):
        return Shown(len(address), address)
    if is_bare:
        return Shown(len(address), address, is_code=True)
    return Shown(len(address), f"<{address}>")  # else what follows would be taken for a part of it


def may_stay(name: str, host: str, follows: str, *, is_allowed_url: Callable[[str], bool]) -> bool:
    """Return whether ``@`` and a host may follow a name: it is no address for mail, or a known one.

    ``name``: "" for one that is not known whole. ``host`` with its ``@``; ``follows``: the character behind it.
    """
    bare = host.rstrip(".-_")
    if "." not in bare and follows not in ("\\", "&"):
        return True
    is_whole = 0 < len(name) < MAX_MAIL_NAME and follows not in ("\\", "&", "@", "+")
    return is_whole and is_allowed_url(f"mailto:{name}{bare}")


def is_plain(address: str) -> bool:
    return _ENTITY.search(address) is None


def is_of_the_site(address: str) -> bool:
    """A path, an anchor, a query: whatever page shows it, it leads to the same host."""
    if not is_plain(address) or address.startswith("//"):
        return False
    return ":" not in re.split("[/?#]", address, maxsplit=1)[0]


Resolve: TypeAlias = Callable[[str], str | None]
"""The address that a link is to have, for the one that was written; None where it may not be a link."""


def as_written(is_allowed_url: Callable[[str], bool]) -> Resolve:
    """Return what leaves every address of the site as it is, and others that are allowed."""
    return lambda address: address if is_of_the_site(address) or is_allowed_url(address) else None
