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
MAIL_NAME = re.compile(r"[\w.+-]+\Z")
MAIL_HOST = re.compile(r"@[\w.-]*")
AUTOLINK = re.compile(r"<(?:(?P<address>https?://[^\s<>`|\\\"]*)|(?P<mail>[\w.+-]+@[\w.-]+))>", re.IGNORECASE)
AUTOLINK_BEGUN = re.compile(r"<(?:[A-Za-z0-9_.+-]*(?:@[\w.-]*)?|https?:/?/?|https?://[^\s<>`|\\\"]*)\Z", re.IGNORECASE)
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
