"""By which names a browser may know the service, and which of them let people sign in.

A page of another website may have its own name point at this machine (DNS rebinding), and then reads our answers as
its own. Such a request carries that name as its ``Host``: pages answer none but ours, and by another neither a session
nor a proxy's user header counts. An address is no name that another could own. The API and the probes are left out,
since programs reach them by names that no setting holds, such as that of a container: a key, which no browser adds by
itself, opens the first, and the second tell nothing.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, hdrs, web

from service.domain.access.names import HTTPS_REQUIRED, Names, is_local, is_only_here, name_of
from service.domain.errors import Forbidden
from service.web.http.routes import FOR_BROWSERS

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
NOT_PAGES = (
    "/v1/", "/v2/", "/mcp", "/hooks/", "/sdk/", "/widget", "/healthz", "/readyz", "/metrics", "/openapi.json",
    "/internal/",
    *FOR_BROWSERS,
)  # fmt: skip
"""Beginnings of the paths that answer whatever the ``Host``."""
OF_PROXIES = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
"""Headers that a proxy adds, and no browser. One that adds none of them asks by HTTP/1.0, as nginx does by itself."""
UNKNOWN_HOST = (
    "This service is not known by that name. Open it by the address in server.public_url, or set that to the address "
    "that you use."
)
NAMES: web.AppKey[Names] = web.AppKey("NAMES")
LOCAL_ADDRESS: web.AppKey[Callable[[], str]] = web.AppKey("LOCAL_ADDRESS")
"""Where people on this machine open the service."""
_GIT = re.compile(r"/hosted/[^/]+\.git/")


def service_address(request: web.Request) -> str:
    """Return the service's address as its users write it: the settings' public one, else the one of the request, on
    this machine by its one name.
    """
    return request.app[NAMES].public_url or f"{request.scheme}://{_by_one_name(request, request.host) or request.host}"


def elsewhere(request: web.Request) -> str | None:
    """Return where a browser that opens a page by another name of this machine finds it by the one for which it keeps
    the session; None where it is there already, and for programs, which are not led away.

    A proxy may send its own name for us as the ``Host``: its readers are on other machines, and stay.
    """
    if request.method != "GET" or request.headers.get("Sec-Fetch-Dest") != "document" or not is_page(request):
        return None
    if request.version < HttpVersion11 or any(name in request.headers for name in OF_PROXIES):
        return None
    names = request.app.get(NAMES)
    if names is None or (names.public_url and not is_only_here(names.public_url)):
        return None
    host = _by_one_name(request, request.headers.get(hdrs.HOST, ""))
    return None if host is None else f"{request.scheme}://{host}{request.rel_url.raw_path_qs}"


def _by_one_name(request: web.Request, host: str) -> str | None:
    """Return a host of this machine with its one name, and the same port; None for others, and where it has that."""
    name = name_of(host)
    if name is None or not is_local(name) or LOCAL_ADDRESS not in request.app:
        return None
    one = request.app[NAMES].here(urlsplit(request.app[LOCAL_ADDRESS]()).hostname or "")
    return None if name == one or not is_local(one) else one + host[len(name) :]


def is_page(request: web.Request) -> bool:
    """Return whether a request is for a page, or for what pages send."""
    path = request.rel_url.raw_path  # as routes are matched: an encoded slash is none
    return not path.startswith(NOT_PAGES) and not _GIT.match(path)


def is_host_ours(request: web.Request) -> bool:
    hosts, names = request.headers.getall(hdrs.HOST, ()), request.app.get(NAMES)
    return names is None or (len(hosts) == 1 and names.is_ours(hosts[0]))


def may_sign_in(request: web.Request) -> bool:
    """Return whether people may sign in by the address that this request was sent to."""
    return request.app[NAMES].may_sign_in(request.headers.get(hdrs.HOST, ""))


def require_sign_in_by(request: web.Request) -> None:
    """Raise Forbidden ``https_required`` where a session's cookie would travel in plain sight."""
    if not may_sign_in(request):
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
