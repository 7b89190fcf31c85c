"""What every answer carries, so that a browser makes no more of it than it is."""

from aiohttp import web

PLAIN_HEADERS = {
    # For what is no page: nothing in it may run, and nothing may show it inside of something else
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Robots-Tag": "noindex, nofollow",
}
"""Pages bring their own policy (pages.py); what they say is kept."""

HSTS = "max-age=31536000; includeSubDomains"
"""A year, as browsers' preload lists ask for."""

IS_HTTPS: web.AppKey[bool] = web.AppKey("IS_HTTPS")
"""People reach the service over HTTPS, by its public address."""


async def secure(request: web.Request, response: web.StreamResponse) -> None:
    """A signal before every answer's head, errors and streams included."""
    for name, value in PLAIN_HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    if request.app[IS_HTTPS]:
        response.headers["Strict-Transport-Security"] = HSTS
    response.headers.pop("Server", None)
