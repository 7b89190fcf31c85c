"""Addresses that an answer may link to: pages of the site, and those that a trusted author wrote.

The documentation's passages, the reader's own message and the site owner's instructions are texts that addresses are
taken from, character for character, with the anchor or without: were a known host enough, its paths and queries could
carry away what was said. On the site's own host every page is known, for what is sent there is no secret of the site.

Models write links within the site from memory. One that leads to no page is repaired where it is clear which page is
meant (``SiteLinks``), else it is none, unless a trusted author wrote it: it may be a file of the site.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from urllib.parse import urlsplit

from service.markup.streaming.links import MAIL_NAME, is_of_the_site, trimmed
from service.ports.search_index import SiteLinks

MAX_TEXT_CHARACTERS = 200_000
"""Limit for one text; one of addresses alone takes a tenth of a second to search."""
MAX_ADDRESSES = 20_000

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\[\]{}|\\^]+", re.IGNORECASE)
_WWW = re.compile(r"\bwww\.[^\s<>\"'`\[\]{}|\\^]+", re.IGNORECASE)
_MAIL_HOST = re.compile(r"@[\w-]+(?:\.[\w-]+)+")
_MAX_MAIL_NAME = 64


_TARGET = re.compile(r"(?:\]\(\s*<?|(?:href|src)=[\"'])(/[^\s()<>\"'?#]+)")
"""A file or page of the site, as a link or an image of the material names it."""


class KnownAddresses:
    def __init__(self, domain: str, current_path: str, known: Callable[[], set[str]] | None = None) -> None:
        """``domain``: of the site, perhaps its host. ``current_path``: where the reader is; it may be a whole URL.
        ``known``: returns the set to keep the addresses in.
        """
        own: set[str] = set()
        self._known = known or (lambda: own)
        self._open = current_path
        self._pages: SiteLinks | None = None
        self._readers: Sequence[str] = ()
        hosts = [domain.lower()] if "." in domain else []
        if current_path.startswith(("http://", "https://")):
            hosts.append(_host_of(current_path))
        self._hosts = frozenset(hosts)

    def know_pages(self, pages: SiteLinks, readers: Sequence[str]) -> None:
        """Allow links to the pages of the site that ``readers``, the groups of the reader, may see."""
        self._pages, self._readers = pages, readers

    def add_url(self, url: str) -> None:
        """Allow an address within the site as it is."""
        self._known().add(url.rstrip("/"))

    def add(self, text: str) -> None:
        """Allow all addresses in the text."""
        self.add_all(addresses_in([text]))

    def add_all(self, addresses: Iterable[str]) -> None:
        """Allow addresses that ``addresses_in`` has found."""
        known = self._known()
        known.update(islice(addresses, max(0, MAX_ADDRESSES - len(known))))

    def __call__(self, address: str) -> bool:
        """Return whether an answer may link to the address."""
        if address.rstrip("/") in self._known():
            return True
        return self._is_ours(address) and _is_same_page(self._resolved(address), address)

    def resolve(self, address: str) -> str | None:
        """Return the address that a link of an answer is to have: its own, or that of the page that it means.

        None where it may not be a link.
        """
        if address.rstrip("/") in self._known():
            return address
        if not is_of_the_site(address) and not self._is_ours(address):
            return None
        return self._resolved(address) or (address if _without_anchor(address) in self._known() else None)

    def _resolved(self, address: str) -> str | None:
        if self._pages is None:
            return address
        if address[:1] in ("#", "?", ""):
            page = self._pages.resolve(path_in(self._open) + address, readers=self._readers) if self._open else None
            return page if page is not None and ("#" in page or "#" not in address) else None
        site, path = _site_and_path(address)
        page = self._pages.resolve(path, readers=self._readers)
        return None if page is None else site + page

    def _is_ours(self, address: str) -> bool:
        return address.startswith(("http://", "https://")) and _host_of(address) in self._hosts


def addresses_in(texts: Iterable[str]) -> dict[str, None]:
    """Return the addresses in texts, in their order; no more than ``MAX_ADDRESSES`` and some."""
    found: dict[str, None] = {}
    for text in texts:
        if len(found) >= MAX_ADDRESSES:
            break
        _find(text[:MAX_TEXT_CHARACTERS], found)
    return found


def _find(text: str, found: dict[str, None]) -> None:
    for match in _TARGET.finditer(text) if "](" in text or "=" in text else ():
        found[match[1].rstrip("/")] = None
    whole = [_cut(match[0]) for match in _ADDRESS.finditer(text)] if "://" in text else []
    whole += ["https://" + _cut(match[0]) for match in _WWW.finditer(text)] if "www." in text.lower() else []
    for match in _MAIL_HOST.finditer(text) if "@" in text else ():
        at = match.start()
        name = MAIL_NAME.search(text[max(0, at - _MAX_MAIL_NAME) : at])
        if name is not None:
            whole.append(f"mailto:{name[0]}{match[0]}")
    for address in whole:
        found[address.rstrip("/")] = None
        found[address.partition("#")[0].rstrip("/")] = None


def _is_same_page(resolved: str | None, address: str) -> bool:
    return resolved is not None and _without_anchor(resolved).casefold() == _without_anchor(address).casefold()


def _without_anchor(address: str) -> str:
    return address.partition("#")[0].partition("?")[0].rstrip("/")


def _site_and_path(address: str) -> tuple[str, str]:
    """Return scheme and host of an address, empty for a path, and the rest."""
    scheme, mark, rest = address.partition("://")
    if not mark or "/" in scheme:
        return "", address
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", slash + path


def path_in(place: str) -> str:
    """Return the path of an address, without its query and anchor, or a path as it is; clients send either."""
    site, path = _site_and_path(place)
    return path.partition("#")[0].partition("?")[0] if site else path


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
