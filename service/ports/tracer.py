"""Spans of a trace: how long each step took, and within which other step; for the operator of the service.

Attributes say what was done and how it went. They never hold what people typed, what documents say, keys or secrets,
nor ids that open something by themselves (threads).
"""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

SpanKind = Literal["internal", "server", "client"]
Attribute = str | int | float | bool

SPANS: Mapping[str, tuple[str, ...]] = {
    "{method} {route}": (
        "http.request.method", "http.route", "http.response.status_code", "docsmith.request.id", "error.type",
    ),
    "docsmith.reply": ("docsmith.request.id", "error.type"),
    "docsmith.search": ("docsmith.site", "docsmith.search.results", "error.type"),
    "docsmith.read_page": ("docsmith.site", "error.type"),
    "chat {model}": (
        "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model",
        "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons",
        "docsmith.model.first_token_seconds", "docsmith.model.cost_usd", "error.type",
    ),
    "docsmith.job": ("docsmith.job.id", "docsmith.job.attempt", "docsmith.request.id", "error.type"),
    "git {operation}": ("docsmith.project.id", "docsmith.code_host", "error.type"),
    "code_host {operation}": ("docsmith.project.id", "docsmith.code_host", "error.type"),
    "docsmith.webhook.delivery": ("docsmith.delivery.id", "http.response.status_code", "error.type"),
}  # fmt: skip
"""All spans that there are, and the attributes that each may have. Names follow OpenTelemetry's conventions where it
has any (HTTP; GenAI). A reply's span is a child of the request that asked for it, a job's is linked to it."""


class Span(Protocol):
    def set(self, name: str, value: Attribute | list[str]) -> None:
        """One of its attributes (``SPANS``)."""

    def fail(self, kind: str) -> None:
        """Record that the step failed: ``error.type`` is the code or class of the error; its message is left out."""


class Tracer(Protocol):
    """Never raises and never waits: what cannot be sent is dropped."""

    @property
    def is_on(self) -> bool: ...

    def span(
        self,
        name: str,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        kind: SpanKind = "internal",
        remote: str = "",
        request_id: str = "",
        asked_by: str = "",
        is_linked: bool = False,
        encloses: bool = True,
    ) -> AbstractContextManager[Span]:
        """Return a span from here to the end of the ``with`` block, within the span that the same task is in.

        ``remote`` is the caller's ``traceparent``. What a request with ``request_id`` has asked for names it
        ``asked_by``, and is a child of its span, or only linked to it. ``encloses``: what the block does is within this
        span; no generator can promise that. An exception that leaves the block is noted by its kind.
        """


async def within(span: AbstractContextManager[Span], work: Awaitable[T]) -> T:
    """Return the result of the work; all that it does is within the span."""
    with span:
        return await work


class NoSpan(AbstractContextManager[Span, None]):
    """The span of a service that is not traced."""

    def set(self, name: str, value: Attribute | list[str]) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class NoTracer:
    is_on = False
    _span = NoSpan()

    def span(self, name: str, attributes: Mapping[str, Attribute] | None = None, **_: object) -> NoSpan:  # noqa: ARG002
        return self._span

    def close(self) -> None:
        """Nothing is left to be sent."""
