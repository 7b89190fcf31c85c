"""Traces by OpenTelemetry, over OTLP with protobuf and HTTP. Imported only where the standard variables ask for it.

Spans end in a bounded queue; a thread sends them in batches. When the collector is slow or gone the queue is full and
what comes is dropped, and a stop waits for it ``CLOSE_SECONDS`` at most.

Facts of opentelemetry-sdk 1.45: the exporter retries for as long as its timeout (10 s) allows, also during shutdown, so
that runs in a thread that is not waited for at the end; its log lines go to the standard library's logging and hold
addresses, so only their kind is logged, at most once a minute; its own context is not used, since a span must not be
current between the yields of a generator.
"""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.domain.errors import ServiceError
from service.ports.tracer import Attribute
from service.ports.tracer import SpanKind as Kind

log = structlog.get_logger()

CLOSE_SECONDS = 2.0
MAX_REQUESTS = 10_000
"""Limit for the requests whose spans are remembered, for the work that they have started."""
COMPLAINT_SECONDS = 60.0
KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}

_ROOT = Context()
_CURRENT: ContextVar[Context] = ContextVar("current_span", default=_ROOT)


class OpenTelemetry:
    """The ``Tracer`` port."""

    is_on = True

    def __init__(self, version: str, *, exporter: SpanExporter | None = None) -> None:
        """Service name, sampler, limits, endpoint and headers are the standard variables' own.

        Raises ValueError: a variable makes no sense.
        """
        _complain_by(_Complaints())
        # What the standard variables say goes before what is given here.
        resource = Resource({"service.name": "docsmith", "service.version": version})
        variables = OTELResourceDetector().detect()
        self._provider = TracerProvider(
            resource=Resource.create().merge(resource).merge(variables), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("docsmith", version)
        self._requests: OrderedDict[str, Context] = OrderedDict()

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        kind: Kind = "internal",
        remote: str = "",
        request_id: str = "",
        asked_by: str = "",
        is_linked: bool = False,
        encloses: bool = True,
    ) -> Iterator["_Span"]:
        within, links = _CURRENT.get(), []
        if remote:
            within = TraceContextTextMapPropagator().extract({"traceparent": remote}, _ROOT)
        asked = self._requests.get(asked_by) if asked_by else None
        if asked is not None and is_linked:
            links, within = [Link(_context_of(asked))], _ROOT
        elif asked is not None:
            within = asked
        span = self._tracer.start_span(name, within, KINDS[kind], dict(attributes or {}), links)
        context = set_span_in_context(span, _ROOT)
        if request_id:
            self._remember(request_id, context)
        token = _CURRENT.set(context) if encloses else None
        traced = _Span(span)
        try:
            yield traced
        except (GeneratorExit, asyncio.CancelledError):  # no one waits for it any more: this is not an error
            span.set_attribute("error.type", "cancelled")
            raise
        except BaseException as error:
            traced.fail(error.code if isinstance(error, ServiceError) else type(error).__name__)
            raise
        finally:
            if token is not None:
                _CURRENT.reset(token)
            span.end()

    def _remember(self, request_id: str, context: Context) -> None:
        self._requests[request_id] = context
        if len(self._requests) > MAX_REQUESTS:
            self._requests.popitem(last=False)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send what is left, for so long; called in a thread."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces end", daemon=True)
        closing.start()
        closing.join(seconds)


class _Span:
    def __init__(self, span: SdkSpan) -> None:
        self._span = span

    def set(self, name: str, value: Attribute | list[str]) -> None:
        self._span.set_attribute(name, value)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR))


def _context_of(context: Context) -> SpanContext:
    return get_current_span(context).get_span_context()


class _Complaints(logging.Handler):
    """Report that the exporter logs errors, and no more of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._clock, self._told_at = clock, float("-inf")

    def emit(self, record: logging.LogRecord) -> None:
        if self._clock() - self._told_at >= COMPLAINT_SECONDS:
            self._told_at = self._clock()
            log.warning("traces are not sent, or not all of them", part=record.name)


def _complain_by(handler: logging.Handler) -> None:
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.handlers = [handler]
