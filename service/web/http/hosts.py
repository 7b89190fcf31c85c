"""By which names a browser may know the service, and which of them let people sign in.

A page of another website may have its own name point at this machine (DNS rebinding), and then reads our answers as
its own. Such a request carries that name as its ``Host``: pages answer none but ours. An address is no name that
another could own. The API and the probes are left out: a key, which no browser adds by itself, opens the first, and
the second tell nothing.
"""

import re
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from msgspec import Struct

from service.domain.access.callers import address_of
from service.domain.errors import Forbidden
from service.web.http.routes import FOR_BROWSERS

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
NOT_PAGES = ("/v1/", "/v2/", "/hooks/", "/healthz", "/readyz", "/metrics", "/openapi.json", *FOR_BROWSERS)
"""Beginnings of the paths that answer whatever the ``Host``."""
HTTPS_REQUIRED = (
    "Signing in needs https: set server.public_url to the https address of this service, and open it there. On the "
    "machine itself, open http://localhost:PORT."
)
UNKNOWN_HOST = (
    "This service is not known by that name. Open it by the address in server.public_url, or set that to the address "
    "that you use."
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")


class Names(Struct, frozen=True):
    """The names of the service, by its settings."""

    public_url: str = ""
    """As in the settings, without a slash at its end; empty when there is none."""
    listens_on: str = ""
    """The host that it listens on, as the settings name it."""

    def is_ours(self, host: str) -> bool:
        name = name_of(host)
        if name is None:
            return False
        if address_of(name.strip("[]")) is not None or is_local(name):
            return True
        return name in (_host_of(self.public_url), self.listens_on.lower())

    def may_sign_in(self, host: str) -> bool:
        """Return whether a browser that shows this host keeps what it sends to itself: by https, or on its machine."""
        name = name_of(host)
        if name is None:
            return False
        return is_local(name) or (self.public_url.startswith("https://") and name == _host_of(self.public_url))


NAMES: web.AppKey[Names] = web.AppKey("NAMES")


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


def link_base(names: Names, listening: str) -> str | None:
    """Return the address that sign-in links begin with; None where no one could sign in by any.

    ``listening`` is the address that the service listens on, such as ``http://127.0.0.1:8080``.
    """
    public = urlsplit(names.public_url)
    if public.scheme == "https" or (public.hostname and is_local(public.hostname)):
        return names.public_url
    here = urlsplit(listening)
    reached_locally = here.hostname in ("0.0.0.0", "::", "localhost") or is_local(_bracketed(here.hostname or ""))  # noqa: S104
    return f"http://localhost:{here.port or 80}" if reached_locally else None


def is_page(request: web.Request) -> bool:
    """Return whether a request is for a page, or for what pages send."""
    return not request.path.startswith(NOT_PAGES) and ".git/" not in request.path


def is_host_ours(request: web.Request) -> bool:
    hosts, names = request.headers.getall(hdrs.HOST, ()), request.app.get(NAMES)
    return names is None or (len(hosts) == 1 and names.is_ours(hosts[0]))


def require_sign_in_by(request: web.Request) -> None:
    """Raise Forbidden ``https_required`` where a session's cookie would travel in plain sight."""
    if not request.app[NAMES].may_sign_in(request.headers.get(hdrs.HOST, "")):
        raise Forbidden(HTTPS_REQUIRED, code="https_required")


def require_same_origin(request: web.Request) -> None:
    """Raise Forbidden ``cross_site`` unless our own page sends a request that changes something.

    Browsers set both headers, and no page can. Those that send no ``Sec-Fetch-Site``, or not over plain http, send the
    ``Origin`` with each such request.
    """
    if request.method in SAFE_METHODS:
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get(hdrs.ORIGIN, "")
    if site is not None:
        allowed = site == "same-origin"
    else:
        scheme, _, host = origin.partition("://")
        allowed = scheme in ("http", "https") and host.lower() == request.headers.get(hdrs.HOST, "").lower() != ""
    if not allowed:
        raise Forbidden(
            "This was sent by another website, or by no page of ours. Open the page again, and send it from there.",
            code="cross_site",
        )


def _host_of(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return _bracketed(host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
