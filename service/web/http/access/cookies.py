"""Cookies of our own: over https alone, except on the machine itself.

A name that begins with ``__Host-`` is accepted by browsers only with ``Secure``, for this host and every path, so no
neighbour of the host and no one on the network can set it. Most browsers accept such a cookie from http://localhost,
too; Safari does not. There, and there alone, a cookie has a plain name and no ``Secure``. A plain name that comes by
any other address is not read: anyone between could have set it.
"""

from collections.abc import Sequence

from aiohttp import hdrs, web

from service.domain.access.callers import address_of, is_within
from service.domain.access.names import is_local, name_of
from service.web.http.connections.client_address import PROXIES

SECURE = "__Host-"
OF_PROXIES = ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via")
"""Headers of a request that a proxy has passed on, possibly with this machine's name in place of its own."""


def is_plain_here(request: web.Request) -> bool:
    """Return whether a browser on this machine sent the request, over plain http.

    The service itself speaks plain http, so a local ``Host`` means that, unless a proxy may have put it there.
    """
    name = name_of(request.headers.get(hdrs.HOST, ""))
    if name is None or not is_local(name):
        return False
    address, proxies = address_of(request.remote or ""), request.app.get(PROXIES)
    if proxies is not None and (address is None or is_within(address, proxies.trusted)):
        return False
    is_passed_on = any(header in request.headers for header in OF_PROXIES)
    return not is_passed_on and not request.headers.get(hdrs.ORIGIN, "").lower().startswith("https:")


def cookies_of(request: web.Request, name: str) -> Sequence[str]:
    """Return the values of a cookie that count, the one that only https can have set first."""
    names = [SECURE + name, name] if is_plain_here(request) else [SECURE + name]
    return [request.cookies[one] for one in names if one in request.cookies]


def set_cookie(request: web.Request, response: web.StreamResponse, name: str, value: str, max_age: int) -> None:
    """Have the browser keep a cookie for ``max_age`` seconds, out of the reach of scripts and of other websites."""
    is_plain = is_plain_here(request)
    response.set_cookie(
        name if is_plain else SECURE + name, value,
        max_age=max_age, path="/", secure=not is_plain, httponly=True, samesite="Lax",
    )  # fmt: skip


def drop_cookie(request: web.Request, response: web.StreamResponse, name: str) -> None:
    """Have the browser forget a cookie under each name that it sent."""
    for one in (SECURE + name, name):
        if one in request.cookies:
            response.del_cookie(one, path="/", secure=one != name, httponly=True, samesite="Lax")
