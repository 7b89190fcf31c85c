"""Addresses that an answer may link to: those that a trusted author wrote.

The documentation's passages, the reader's own message and the site owner's instructions are texts that addresses are
taken from, character for character, with the anchor or without: were a known host enough, its paths and queries could
carry away what was said. On the site's own host every page is known, for what is sent there is no secret of the site.
"""

import re
from urllib.parse import urlsplit

from service.markup.streaming.links import MAIL_NAME, trimmed

MAX_TEXT_CHARACTERS = 200_000
"""Limit for one text; it takes under 2 ms to search."""
MAX_ADDRESSES = 20_000

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\[\]{}|\\^]+", re.IGNORECASE)
_WWW = re.compile(r"\bwww\.[^\s<>\"'`\[\]{}|\\^]+", re.IGNORECASE)
_MAIL_HOST = re.compile(r"@[\w-]+(?:\.[\w-]+)+")
_MAX_MAIL_NAME = 64


class KnownAddresses:
    def __init__(self, domain: str, current_path: str) -> None:
        """``domain``: of the site, perhaps its host. ``current_path``: where the reader is; it may be a whole URL."""
        self._known: set[str] = set()
        self._hosts = {domain.lower()} if "." in domain else set()
        if current_path.startswith(("http://", "https://")):
            self._hosts.add(_host_of(current_path))

    def add(self, text: str) -> None:
        """All addresses in the text."""
        text = text[:MAX_TEXT_CHARACTERS]
        found = [_cut(match[0]) for match in _ADDRESS.finditer(text)]
        found += ["https://" + _cut(match[0]) for match in _WWW.finditer(text)] if "www." in text.lower() else []
        for match in _MAIL_HOST.finditer(text):
            at = match.start()
            name = MAIL_NAME.search(text[max(0, at - _MAX_MAIL_NAME) : at])
            if name is not None:
                found.append(f"mailto:{name[0]}{match[0]}")
        for address in found:
            if len(self._known) < MAX_ADDRESSES:
                self._known.add(address.rstrip("/"))
                self._known.add(address.partition("#")[0].rstrip("/"))

    def __call__(self, address: str) -> bool:
        """Return whether an answer may link to the address."""
        if address.rstrip("/") in self._known:
            return True
        return address.startswith(("http://", "https://")) and _host_of(address) in self._hosts


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:  # brackets that hold no address
        return ""


def _cut(address: str) -> str:
    """Return the address up to a parenthesis that it does not open itself: in Markdown that ends a link."""
    depth = 0
    for at, character in enumerate(address):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            address = address[:at]
            break
    return trimmed(address)
