"""The ports with a span around each call, for a service that is traced. Others are not affected."""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol, cast

from service.domain.errors import Invalid
from service.domain.search import SearchFilter
from service.domain.search import Source as SectionSource
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource, Source
from service.ports.model import Model, ModelAround, ModelChunk, ModelEnd, ModelRequest, ModelWaiting
from service.ports.search_index import (
    NO_FILTER,
    Material,
    MaterialRequest,
    OtherPages,
    Page,
    PageList,
    SearchIndex,
    SearchResult,
    Section,
    SiteLinks,
)
from service.ports.tracer import NoTracer, SpanKind, Tracer
from service.ports.webhook_sender import Answer, WebhookSender

HERE = frozenset(
    {"keep_contexts", "list_files", "left_out", "read_file", "read_files", "export", "write_commit", "changes"}
)
"""Operations on our own clone; the others talk to another machine, unless the repository is ours."""


class ClosableTracer(Tracer, Protocol):
    def close(self) -> None:
        """Send what is left, within a bounded time; blocks."""


def is_wanted(env: Mapping[str, str]) -> bool:
    """By OpenTelemetry's variables: an endpoint says that traces are wanted, and two others that they are not."""
    has_endpoint = bool(env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
    is_off = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return has_endpoint and not is_off and env.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "none"


def tracer_for(version: str, env: Mapping[str, str] = os.environ) -> ClosableTracer:
    """Raises Invalid (``bad_settings``): a variable of OpenTelemetry makes no sense."""
    if not is_wanted(env):
        return NoTracer()
    from service.adapters.tracing.otel import OpenTelemetry

    try:
        return OpenTelemetry(version)
    except ValueError as error:
        raise Invalid(f"OpenTelemetry's variables (OTEL_…): {error}", code="bad_settings") from None


def traced_model(model: Model, tracer: Tracer) -> Model:
    return _Model(model, tracer) if tracer.is_on else model


def traced_index(index: SearchIndex, tracer: Tracer) -> SearchIndex:
    return _Index(index, tracer) if tracer.is_on else index


def traced_docs(docs: DocsSource, tracer: Tracer) -> DocsSource:
    return cast("DocsSource", _OfSources(docs, "git", tracer)) if tracer.is_on else docs


def traced_code_host(host: CodeHost, tracer: Tracer) -> CodeHost:
    return cast("CodeHost", _OfSources(host, "code_host", tracer)) if tracer.is_on else host


def traced_sender(sender: WebhookSender, tracer: Tracer) -> WebhookSender:
    return _Sender(sender, tracer) if tracer.is_on else sender


class _Model(ModelAround):
    def __init__(self, model: Model, tracer: Tracer) -> None:
        super().__init__(model)
        self._tracer = tracer

    def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        return self._traced(self._model.reply(request))

    async def _traced(self, reply: AsyncIterator[ModelChunk]) -> AsyncGenerator[ModelChunk, None]:
        provider, _, name = self.name.partition("/")
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name or provider,
        }
        began = time.perf_counter()
        with self._tracer.span(f"chat {name or provider}", attributes, kind="client", encloses=False) as span:
            waiting = True
            async with aclosing(cast("AsyncGenerator[ModelChunk, None]", reply)) as chunks:
                async for chunk in chunks:
                    if waiting and not isinstance(chunk, ModelWaiting):
                        waiting = False
                        span.set("docsmith.model.first_token_seconds", time.perf_counter() - began)
                    if isinstance(chunk, ModelEnd):
                        span.set("gen_ai.response.model", chunk.model)
                        span.set("gen_ai.usage.input_tokens", chunk.usage.input_tokens)
                        span.set("gen_ai.usage.output_tokens", chunk.usage.output_tokens)
                        span.set("gen_ai.response.finish_reasons", [chunk.reason])
                        if chunk.usage.cost_usd is not None:
                            span.set("docsmith.model.cost_usd", chunk.usage.cost_usd)
                    yield chunk


class _Index:
    def __init__(self, index: SearchIndex, tracer: Tracer) -> None:
        self._index, self._tracer = index, tracer

    async def search(
        self,
        domain: str,
        query: str,
        *,
        limit: int = 10,
        filter: SearchFilter = NO_FILTER,  # noqa: A002  (the port's own word)
        current_path: str = "",
        explain: bool = False,
        prefix: bool = False,
        highlight: bool = False,
    ) -> SearchResult:
        with self._tracer.span("docsmith.search", {"docsmith.site": domain}) as span:
            result = await self._index.search(
                domain, query, limit=limit, filter=filter, current_path=current_path, explain=explain, prefix=prefix,
                highlight=highlight,
            )  # fmt: skip
            span.set("docsmith.search.results", len(result.sections))
            return result

    async def find_material(self, domain: str, request: MaterialRequest) -> Material:
        with self._tracer.span("docsmith.search", {"docsmith.site": domain}) as span:
            material = await self._index.find_material(domain, request)
            span.set("docsmith.search.results", len(material.sections))
            return material

    async def sections_at(
        self, domain: str, sources: Sequence[SectionSource], *, readers: Sequence[str] | None = None
    ) -> tuple[Section | None, ...]:
        with self._tracer.span("docsmith.read_page", {"docsmith.site": domain}):
            return await self._index.sections_at(domain, sources, readers=readers)

    async def links(self, domain: str) -> SiteLinks:
        return await self._index.links(domain)

    async def pages_besides(self, domain: str, paths: Sequence[str], *, limit: int) -> OtherPages:
        return await self._index.pages_besides(domain, paths, limit=limit)

    async def read_page(self, domain: str, path: str, *, readers: Sequence[str] | None = None) -> Page | None:
        with self._tracer.span("docsmith.read_page", {"docsmith.site": domain}):
            return await self._index.read_page(domain, path, readers=readers)

    async def reader_groups(self, domain: str) -> Sequence[str]:
        return await self._index.reader_groups(domain)

    async def list_pages(self, domain: str, *, readers: Sequence[str] | None = None) -> PageList:
        return await self._index.list_pages(domain, readers=readers)

    async def read_pages(
        self, domain: str, paths: Sequence[str], *, readers: Sequence[str] | None = None
    ) -> tuple[Page | None, ...]:
        return await self._index.read_pages(domain, paths, readers=readers)


class _OfSources:
    """A port whose methods are coroutine functions that take the source first: ``DocsSource``, ``CodeHost``."""

    def __init__(self, port: object, name: str, tracer: Tracer) -> None:
        self._port, self._name, self._tracer = port, name, tracer

    def __getattr__(self, operation: str) -> Callable[..., Awaitable[object]]:
        method: Callable[..., Awaitable[object]] = getattr(self._port, operation)

        async def traced(source: Source, *args: object, **named: object) -> object:
            is_remote = source.code_host != "local" and operation not in HERE
            attributes = {"docsmith.project.id": source.project_id, "docsmith.code_host": source.code_host}
            kind: SpanKind = "client" if is_remote else "internal"
            with self._tracer.span(f"{self._name} {operation}", attributes, kind=kind):
                return await method(source, *args, **named)

        return traced


class _Sender:
    def __init__(self, sender: WebhookSender, tracer: Tracer) -> None:
        self._sender, self._tracer = sender, tracer

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        attributes = {"docsmith.delivery.id": headers.get("webhook-id", "")}
        with self._tracer.span("docsmith.webhook.delivery", attributes, kind="client") as span:
            answer = await self._sender.send(url, body, headers)
            if answer.status is not None:
                span.set("http.response.status_code", answer.status)
            if answer.error or (answer.status or 0) >= 400:
                span.fail(answer.error or str(answer.status))
            return answer
