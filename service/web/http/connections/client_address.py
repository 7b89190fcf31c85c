"""Find the client's address: the connection's other end, or the address that trusted proxies name.

A header is believed only as far as trusted proxies wrote it: each appends the address that it was called from, so the
list is read from its right end, past the trusted ones, to the first that is not (RFC 7239, section 5.2; the same holds
for X-Forwarded-For, which has no standard). The part to the left of that may be invented.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

from aiohttp import web
from msgspec import Struct

from service.domain.access.callers import Address, address_of, checked_networks, is_within

NOBODY: Address = ip_address("0.0.0.0")  # noqa: S104  (no address that is listened on)
"""The address of a client that calls through a socket without a network."""
MAX_HOPS = 50
"""Read of a header, from its right end."""

_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*(?:"([^"\\]*)"|([^\s;,"]*))', re.IGNORECASE)


class Proxies(Struct):
    """The trusted proxies, and the header that they write. Both change when the settings are read again."""

    trusted: tuple[str, ...] = ()
    header: str = "X-Forwarded-For"

    @classmethod
    def of(cls, trusted: str | Sequence[str], header: str) -> "Proxies":
        """Return the proxies of the settings. Raise Invalid for one that is no address or network."""
        texts = trusted.split(",") if isinstance(trusted, str) else trusted
        return cls(checked_networks(text for text in texts if text.strip()), header)


PROXIES: web.AppKey[Proxies] = web.AppKey("PROXIES")
_ADDRESS: web.RequestKey[Address] = web.RequestKey("client_address")


def client_address(request: web.Request) -> Address:
    """The caller's address; worked out once for a request."""
    known = request.get(_ADDRESS)
    if known is None:
        proxies = request.app[PROXIES]
        known = request[_ADDRESS] = read_address(request.remote, request.headers.getall(proxies.header, ()), proxies)
    return known


def read_address(remote: str | None, lines: Sequence[str], proxies: Proxies) -> Address:
    """Return the client's address, from that of the connection and the lines of the proxies' header.

    An entry that is no address ends the reading: then the proxy that passed it on is taken for the caller.
    """
    address = address_of(remote or "") or NOBODY
    if not proxies.trusted:
        return address
    hops = _forwarded(lines) if proxies.header == "Forwarded" else _listed(lines)
    for _, hop in zip(range(MAX_HOPS), hops, strict=False):
        if not is_within(address, proxies.trusted):
            break
        named = address_of(_without_port(hop))
        if named is None:
            break
        address = named
    return address


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """The entries of comma-separated lists, from the last to the first."""
    for line in reversed(lines):
        yield from (entry.strip() for entry in reversed(line.split(",")))


def _forwarded(lines: Sequence[str]) -> Iterable[str]:
    """Return the addresses as ``_listed`` does, from the ``for`` parameter of each element. No address has a comma."""
    for element in _listed(lines):
        found = _FOR.search(element)
        yield (found[1] or found[2] or "") if found else ""


def _without_port(entry: str) -> str:
    """``192.0.2.1:80`` and ``[2001:db8::1]:80`` without what is not the address."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    host, colon, _ = entry.partition(":")
    return host if colon and entry.count(":") == 1 else entry
