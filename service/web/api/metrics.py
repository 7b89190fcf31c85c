"""``/metrics``: how the service does, as Prometheus reads it.

No label has values without bound: routes are the templates that there are, models are those that the settings name,
and nothing is counted by site, project or key. Rates and shares are for Prometheus to compute: here are counts.

Counts of replies and jobs are of the log from this start on, so every process that serves the same log counts all.
"""

import asyncio
import hmac
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import cast, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from eventstore import EventStore, Views
from service.domain.errors import Forbidden, ServiceError, Unauthorized
from service.domain.threads.recorded_reply import ReplyCompleted
from service.ports.bounds import Bound
from service.ports.model import Model, ModelAround, ModelChunk, ModelEnd, ModelRequest, ModelWaiting
from service.ports.shared.instances import Instances
from service.queries.backlog import read_backlog
from service.runtime.data_folder import LOG
from service.runtime.system import now
from service.streams import JOBS, THREADS, decoded
from service.web.http.connections.client_address import client_address
from service.web.http.routes import VISIT, Visit

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FIRST_TOKEN_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
DELAY_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
LOOK_SECONDS = 0.05
"""Between two looks at how late the event loop is."""
ENDS = {"job-completed": "completed", "job-failed": "failed"}


class Metrics:
    """All that is counted, in a registry of its own."""

    def __init__(
        self,
        store: EventStore,
        views: Views,
        data: Path,
        connections: Callable[[], int],
        trouble: Callable[[], str] = lambda: "",
        *,
        instances: Instances | None = None,
    ) -> None:
        """``trouble``: why the data folder cannot be written, as one of ``TROUBLES``; empty when it can."""
        self._instances = instances
        self._store, self._views, self._data, self._connections = store, views, data, connections
        self._trouble = trouble
        registry = self._registry = CollectorRegistry(auto_describe=True)
        ProcessCollector("docsmith", registry=registry)
        self._requests = Histogram(
            "docsmith_http_request_seconds", "From a request's head to the end of its answer, streams not counted",
            ("method", "route", "status"), buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._observers: dict[tuple[str, str, int | str], Callable[[float], None]] = {}
        """One for each set of labels: to find it costs less than to name it."""
        self._first_bytes = Histogram(
            "docsmith_http_stream_first_byte_seconds", "From a request's head to its stream's head",
            ("route",), buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._streams = Gauge("docsmith_open_streams", "Streams that are being sent", registry=registry)
        self._first_tokens = Histogram(
            "docsmith_model_first_token_seconds", "From a prompt to the first piece of the model's reply",
            ("model",), buckets=FIRST_TOKEN_SECONDS, registry=registry,
        )  # fmt: skip
        self._tokens = Counter(
            "docsmith_model_tokens", "Tokens of prompts and of replies", ("model", "kind"), registry=registry
        )
        self._cost = Counter(
            "docsmith_model_cost_usd", "What models cost, as far as known", ("model",), registry=registry
        )
        self._failures = Counter(
            "docsmith_model_failures", "Calls of a model that failed, after all tries", ("model",), registry=registry
        )
        self._replies = Counter(
            "docsmith_replies", "Replies that were written to their end", ("resolution",), registry=registry
        )
        self._jobs = Counter("docsmith_jobs_ended", "Jobs that ended", ("outcome",), registry=registry)
        self._bounds = Counter(
            "docsmith_bounds_reached", "Work for others that was refused, cut or ended at a limit", ("bound",),
            registry=registry,
        )  # fmt: skip
        for bound in get_args(Bound):
            self._bounds.labels(bound)  # shown from the start, as 0
        self._delays = Histogram(
            "docsmith_event_loop_delay_seconds", "How late the event loop comes to what is due", buckets=DELAY_SECONDS,
            registry=registry,
        )  # fmt: skip
        self._troubles = Gauge(
            "docsmith_data_folder_trouble", "1 while the data folder cannot be written, by the reason", ("reason",),
            registry=registry,
        )  # fmt: skip
        self._gauges = {name: Gauge(f"docsmith_{name}", told, registry=registry) for name, told in GAUGES.items()}

    def measure(self, visit: Visit, method: str, status: int, seconds: float) -> None:
        """Count an answer that has ended; status 0: it was cut off."""
        if visit.is_stream:
            self._streams.dec()
            return
        labels = (method if method in METHODS else "other", visit.route, status or "cut")
        observe = self._observers.get(labels)
        if observe is None:
            observe = self._observers[labels] = self._requests.labels(*labels).observe
        observe(seconds)

    async def note_stream(self, request: web.Request, response: web.StreamResponse) -> None:
        """A signal before every answer's head. A stream is what has no body yet, whatever it is called: older chat
        clients take theirs as plain text. An answer that aiohttp gives before any middleware has no visit.
        """
        visit = request.get(VISIT)
        if visit is not None and not isinstance(response, web.Response) and not visit.is_stream:
            visit.is_stream = True
            self._streams.inc()
            self._first_bytes.labels(visit.route).observe(time.perf_counter() - visit.started)

    def count_bound(self, bound: Bound, times: int = 1, /) -> None:
        """Count work that was refused, cut or ended at a limit."""
        self._bounds.labels(bound).inc(times)

    def of_model(self, model: Model) -> Model:
        """The model, with its calls counted."""
        return _Measured(model, self)

    async def reply(self, name: str, reply: AsyncIterator[ModelChunk]) -> AsyncGenerator[ModelChunk, None]:
        """Count a model's reply as it passes. Without its request: a prompt would be kept to the reply's end."""
        started, waiting = time.perf_counter(), True
        try:
            async with aclosing(cast("AsyncGenerator[ModelChunk, None]", reply)) as chunks:
                async for chunk in chunks:
                    if waiting and not isinstance(chunk, ModelWaiting):
                        waiting = False
                        self._first_tokens.labels(name).observe(time.perf_counter() - started)
                    if isinstance(chunk, ModelEnd):
                        self._tokens.labels(name, "input").inc(chunk.usage.input_tokens)
                        self._tokens.labels(name, "output").inc(chunk.usage.output_tokens)
                        self._cost.labels(name).inc(chunk.usage.cost_usd or 0)
                    yield chunk
        except ServiceError:
            self._failures.labels(name).inc()
            raise

    async def watch_loop(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
            self._delays.observe(max(0.0, loop.time() - due))

    async def follow(self) -> None:
        """Count the events of the log from now on, until cancelled: those of all instances, at each of them."""
        async with aclosing(self._store.follow(after=await self._store.head())) as batches:
            async for events in batches:
                for event in events:
                    if event.type in ENDS and JOBS.owns(event.stream):
                        self._jobs.labels(ENDS[event.type]).inc()
                    elif event.type == "reply-completed" and THREADS.owns(event.stream):
                        for _, reply in decoded(THREADS, [event]):
                            assert isinstance(reply, ReplyCompleted)
                            self._replies.labels("unsure" if reply.unsure else reply.resolution).inc()

    async def text(self) -> bytes:
        """Raises StoreUnavailable."""
        at, there, head = now(), await read_backlog(self._views), await self._store.head()
        wal_bytes = await asyncio.to_thread(_size, self._data / f"{LOG}-wal")
        values: dict[str, float] = {
            "jobs_running": there.jobs_running,
            "jobs_waiting": there.jobs_waiting,
            "oldest_job_seconds": (at - there.oldest_job_at).total_seconds() if there.oldest_job_at else 0,
            "sites": there.sites,
            "sites_stale": there.sites_stale,
            "oldest_index_seconds": (at - there.oldest_index_at).total_seconds() if there.oldest_index_at else 0,
            "webhook_deliveries_waiting": there.webhooks_waiting,
            "log_events": head,
            "views_lag_events": max((status.lag for status in self._views.status()), default=0),
            "open_connections": self._connections(),
            "tasks": len(asyncio.all_tasks()),
            "instances": 1 + sum(bool(one.url) for one in self._instances.others()) if self._instances else 1,
            "leads": self._instances is None or self._instances.leads(),
            "log_bytes": await self._store.size(),
            "log_wal_bytes": wal_bytes,
        }
        trouble = self._trouble()
        for reason in TROUBLES:
            self._troubles.labels(reason).set(reason == trouble)
        for name, value in values.items():
            self._gauges[name].set(max(value, 0))
        return await asyncio.to_thread(generate_latest, self._registry)


TROUBLES = ("disk_full", "read_only", "unreadable", "write_failed", "log_away")
GAUGES = {
    "jobs_running": "Jobs that are worked on",
    "jobs_waiting": "Jobs that wait for their turn, or for what is away",
    "oldest_job_seconds": "Age of the oldest job that has not ended",
    "sites": "Sites that there are",
    "sites_stale": "Sites whose index is older than it should be, or could not be made",
    "oldest_index_seconds": "Age of the oldest site's index",
    "webhook_deliveries_waiting": "Deliveries of webhooks that have not arrived yet",
    "log_events": "Events in the log: the height of its chain",
    "log_bytes": "Size of the log, where it is kept: a file, or a table with its indexes",
    "log_wal_bytes": "Size of the log's write-ahead file",
    "views_lag_events": "Events that the slowest view has not seen yet",
    "open_connections": "Connections of callers",
    "tasks": "What goes on at once in the event loop",
    "instances": "Instances that serve the log and are alive, as this one sees it",
    "leads": "1 while this instance does what only one of them may do",
}


class _Measured(ModelAround):
    def __init__(self, model: Model, metrics: Metrics) -> None:
        super().__init__(model)
        self._metrics = metrics

    def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        return self._metrics.reply(self._model.name, self._model.reply(request))


def metrics_routes(metrics: Metrics, token: str, *, anybody: bool) -> list[web.RouteDef]:
    """``/metrics`` for callers with the token; without one, for callers on this machine alone, or for everyone."""

    async def show(request: web.Request) -> web.Response:
        if token:
            shown = request.headers.get("Authorization", "")
            if not hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), f"Bearer {token}".encode()):
                raise Unauthorized("The metrics need a token: send Authorization: Bearer TOKEN.")
        elif not anybody and not client_address(request).is_loopback:
            raise Forbidden(
                "The metrics are for this machine alone. Set [metrics] in the settings to open them to others."
            )
        headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4, "Cache-Control": "no-store"}
        return web.Response(body=await metrics.text(), headers=headers)

    return [web.get("/metrics", show)]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
