"""Each request as a span: the caller's trace goes on where it says so (W3C Trace Context)."""

from aiohttp import web
from aiohttp.typedefs import Middleware

from service.ports.tracer import Tracer
from service.web.http.problems import REQUEST_ID, Handler
from service.web.http.routes import route_of

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LEFT_OUT = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds by machines that look after the service."""


def traces(tracer: Tracer) -> list[Middleware]:
    """The middleware, if there is to be one; it stands within the one that gives requests their ids. A stream's span
    ends with the stream.
    """

    @web.middleware
    async def trace(request: web.Request, handler: Handler) -> web.StreamResponse:
        route = route_of(request)
        if route in LEFT_OUT:
            return await handler(request)
        method = request.method if request.method in METHODS else "_OTHER"
        request_id = request[REQUEST_ID]
        attributes = {"http.request.method": method, "http.route": route, "docsmith.request.id": request_id}
        remote = request.headers.get("traceparent", "")
        with tracer.span(f"{method} {route}", attributes, kind="server", remote=remote, request_id=request_id) as span:
            response = await handler(request)
            span.set("http.response.status_code", response.status)
            if response.status >= 500:
                span.fail(str(response.status))
            return response

    return [trace] if tracer.is_on else []
