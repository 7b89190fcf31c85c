"""Where callers may be: networks of addresses, and web origins with wildcards."""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from service.domain.errors import Invalid

Address = IPv4Address | IPv6Address

MAX_ENTRIES = 100
"""Limit for the entries of one list."""
MAX_ADDRESS_CHARACTERS = 45
"""Length of the longest way to write an IPv6 address, with an IPv4 one at its end."""
MAX_IN_MEMORY = 4096
"""Addresses that are kept as they were read: a caller sends many requests from one."""
MAX_ORIGIN_CHARACTERS = 300
"""Limit for an origin that a browser sends; a host has at most 253."""
DEFAULT_PORTS = {"http": "80", "https": "443"}

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(
    rf"(?:(?P<scheme>https?)://)?(?P<star>\*\.)?(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::(?P<port>\d{{1,5}}))?"
)


def checked_networks(texts: Iterable[str]) -> tuple[str, ...]:
    """Addresses and CIDR networks in their shortest form, each once. Raises Invalid: one that is neither."""
    networks: dict[str, None] = {}
    for text in texts:
        try:
            network = ip_network(text.strip(), strict=False)
        except ValueError:
            network = None
        if network is None or "%" in text:  # a zone means something on one machine only
            raise Invalid(f"{text!r} is not an address or network, such as 192.0.2.0/24 or 2001:db8::/32.")
        if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped and network.prefixlen >= 96:
            network = ip_network((network.network_address.ipv4_mapped, network.prefixlen - 96))
        networks[str(network)] = None
    return _few(tuple(networks))


def address_of(text: str) -> Address | None:
    """An address in its plain form, or None: an IPv4 address inside of an IPv6 one is taken out, a zone dropped."""
    plain = text.partition("%")[0]
    return _parsed(plain) if len(plain) <= MAX_ADDRESS_CHARACTERS else None


@lru_cache(maxsize=MAX_IN_MEMORY)
def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_within(address: Address, networks: Iterable[str]) -> bool:
    """Return whether one of the networks has the address. They are ``checked_networks``."""
    return any(address in _network(network) for network in networks)


_network = lru_cache(maxsize=1024)(ip_network)
"""Parsed once: they are asked about with each request."""


@lru_cache(maxsize=MAX_IN_MEMORY)
def counted_as(address: Address) -> str:
    """Return the part of an address that counts as one caller: a whole IPv4 address, the first 64 bits of an IPv6 one.

    A host or a home is given a whole /64, so a count by single IPv6 addresses would limit no one.
    """
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((int(address) >> 64 << 64, 64)))


def checked_origins(texts: Iterable[str]) -> tuple[str, ...]:
    """Return web origins as browsers write them, each once; a first label of ``*`` means one or more labels.

    Without a scheme, ``https`` is meant. Raises Invalid: no origin, or a wildcard over a whole top-level domain.
    """
    origins: dict[str, None] = {}
    for text in texts:
        found = _ORIGIN.fullmatch(text.strip().lower().removesuffix("/"))
        if found is None or (found["star"] and "." not in found["host"]):
            raise Invalid(f"{text!r} is not an origin, such as https://docs.example.com or https://*.example.com.")
        scheme = found["scheme"] or "https"
        port = "" if found["port"] in (None, DEFAULT_PORTS[scheme]) else f":{found['port']}"
        origins[f"{scheme}://{found['star'] or ''}{found['host']}{port}"] = None
    return _few(tuple(origins))


def completed_origins(texts: Iterable[str]) -> str:
    """Return sentences about what was made of valid origins without a scheme; empty where all have one."""
    bare = [text for text in texts if text.strip() and "://" not in text]
    return " ".join(
        f"{text.strip()} has no scheme, so it was saved as {checked_origins([text])[0]}. For plain HTTP, write"
        f" http://{text.strip().lower()}."
        for text in bare
    )


def is_origin_allowed(origin: str, allowed: Iterable[str]) -> bool:
    """Return whether one of ``checked_origins`` covers what a browser sent; never for ``null`` or no origin."""
    if len(origin) > MAX_ORIGIN_CHARACTERS:
        return False
    origin = origin.lower()
    for pattern in allowed:
        before, star, after = pattern.partition("*")
        if not star:
            if origin == pattern:
                return True
        elif origin.startswith(before) and origin.endswith(after):
            labels = origin[len(before) : -len(after)]
            if re.fullmatch(rf"{_LABEL}(?:\.{_LABEL})*", labels):
                return True
    return False


def _few(entries: tuple[str, ...]) -> tuple[str, ...]:
    if len(entries) > MAX_ENTRIES:
        raise Invalid(f"A list has at most {MAX_ENTRIES} entries.")
    return entries
