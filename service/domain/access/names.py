"""The names of the service: which of them are its own, and by which people may sign in."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

from service.domain.access.callers import address_of

HTTPS_REQUIRED = (
    "Signing in needs https: set server.public_url to the https address of this service, and open it there. On the "
    "machine itself, open http://localhost:PORT."
)
ONLY_HERE = (
    "It works on this machine only. To give it to others, set the address at which they reach the service: "
    '[server] public_url = "https://docs.example.com".'
)
"""Said beside a link for somebody else that begins with an address of this machine."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")


class Names(Struct, frozen=True):
    """The names of the service, by its settings."""

    public_url: str = ""
    """As in the settings, without a slash at its end; empty when there is none."""
    listens_on: str = ""
    """The host that it listens on, as the settings name it."""

    def here(self, local: str) -> str:
        """Return the one name by which browsers on this machine open it; ``local``: the name that it gave itself when
        it began to listen. A local address in the settings wins.
        """
        named = _host_of(self.public_url)
        return named if named and is_local(named) else local

    def is_ours(self, host: str) -> bool:
        name = name_of(host)
        if name is None:
            return False
        if address_of(name.strip("[]")) is not None or is_local(name):
            return True
        return name in (_host_of(self.public_url), self.listens_on.lower())

    def may_sign_in(self, host: str) -> bool:
        """Return whether a browser that shows this host keeps what it sends to itself: by https, or on its machine."""
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name, port = found[1].lower(), found[2]
        if is_local(name):
            return True
        public = urlsplit(self.public_url)
        # A proxy may leave the port out; one that is given and is another's may be plain http.
        is_there = port is None or int(port) == (public.port or 443)
        return public.scheme == "https" and name == _host_of(self.public_url) and is_there


def name_of(host: str) -> str | None:
    """Return the name in a ``Host``, in small letters and without its port; None where there is none."""
    found = _HOST.fullmatch(host)
    return found[1].lower() if found else None


def is_local(name: str) -> bool:
    """Return whether this is the machine itself, by a name that browsers look up nowhere else (RFC 6761, 6.3)."""
    address = address_of(name.strip("[]"))
    if address is not None:
        return address.is_loopback
    return name == "localhost" or name.endswith(".localhost")


def link_base(names: Names, local: str) -> str | None:
    """Return the address that sign-in links begin with; None where no one could sign in by any.

    ``local`` is where the service is opened on its machine, such as ``http://localhost:8080``.
    """
    public = urlsplit(names.public_url)
    if public.scheme == "https" or is_local(public.hostname or ""):
        return names.public_url
    return local if is_local(urlsplit(local).hostname or "") else None


def is_only_here(address: str) -> bool:
    """Return whether an address of the service leads nowhere on other machines."""
    return is_local(urlsplit(address).hostname or "")


def _host_of(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _bracketed(host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
