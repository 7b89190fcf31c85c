"""Which addresses are of the public internet: what strangers name may lead there and nowhere else."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

NOT_PUBLIC = tuple(
    ip_network(network)
    for network in (
        # https://www.iana.org/assignments/iana-ipv4-special-registry, and multicast
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # https://www.iana.org/assignments/iana-ipv6-special-registry, of what is within 2000::/3
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    )
)  # fmt: skip
GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that is assigned to hosts (RFC 4291, section 2.4); what is outside is local, multicast, or another address in
disguise, such as ``::ffff:127.0.0.1``."""
NAT64 = IPv6Network("64:ff9b::/96")
"""The last four bytes are an IPv4 address, which a gateway connects to (RFC 6052)."""


def is_public(address: str) -> bool:
    """Return whether an address, written as numbers, can be reached by everyone on the internet.

    What is no address, is not.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed in NAT64:
            return is_public(str(IPv4Address(int(parsed) & 0xFFFFFFFF)))
        if parsed not in GLOBAL_UNICAST:
            return False
    return not any(parsed in network for network in NOT_PUBLIC if network.version == parsed.version)
