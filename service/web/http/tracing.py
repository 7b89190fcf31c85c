"""Each request as a span: the caller's trace goes on where it says so (W3C Trace Context)."""

from aiohttp import web

from service.ports.tracer import Tracer
from service.web.http.problems import REQUEST_ID, Handler, problems
from service.web.http.routes import route_of

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LEFT_OUT = frozenset({"/healthz", "/readyz", "/readyz/requests", "/metrics"})
"""Asked every few seconds by machines that look after the service."""


async def traced(tracer: Tracer, request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a request within its span. A stream's span ends with the stream."""
    route = route_of(request)
    if route in LEFT_OUT:
        return await problems(request, handler)
    method = request.method if request.method in METHODS else "_OTHER"
    request_id = request[REQUEST_ID]
    attributes = {"http.request.method": method, "http.route": route, "docsmith.request.id": request_id}
    remote = request.headers.get("traceparent", "")
    with tracer.span(f"{method} {route}", attributes, kind="server", remote=remote, request_id=request_id) as span:
        response = await problems(request, handler)
        span.set("http.response.status_code", response.status)
        if response.status >= 500:
            span.fail(str(response.status))
        return response
