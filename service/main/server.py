"""The service: builds what serves, wires it, starts and stops it. Imported only where the service is served."""

import asyncio
import gc
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path

import structlog
from aiohttp import web

from eventstore import EventStoreError, Metadata, StoreCorrupt
from service import __version__
from service.adapters.hosted.code_host import HostedCodeHost
from service.adapters.hosted.git_http import git_routes
from service.adapters.models.configured import ConfiguredModels
from service.adapters.offline import offline_code_hosts, offline_docs
from service.adapters.tracing.traced import (
    traced_code_host,
    traced_docs,
    traced_index,
    traced_model,
    traced_sender,
    tracer_for,
)
from service.adapters.webhook_sender import AiohttpWebhookSender
from service.agent.loop.budgets import Budgets
from service.assistant.answer import AnswerSettings
from service.cli.runtime import Runtime, reachable
from service.commands.jobs import close_pull_request
from service.commands.sites import request_index
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.domain.jobs.decider import ClosePullRequest, PullRequestOutcome
from service.domain.replies import ReplyEvent
from service.main.folder import configured_models, open_runtime, open_to_read
from service.main.listening import Address, admission_settings, require_descriptors, socket_of, url_of
from service.main.reloading import Changes, CurrentModels, changes
from service.ports.code_host import PullRequestPage
from service.ports.tracer import NoTracer
from service.queries.jobs import JobReader, slots_of
from service.queries.projects import get_project, list_projects
from service.queries.read_models import catch_up
from service.retrieval.index.atomic_folder import clear_away
from service.runtime.data_folder import only_server, require_served_as, trouble_of
from service.runtime.logs import http_logger
from service.runtime.scratch import leftovers_beside, remove_leftovers
from service.runtime.settings import BadSettings, Settings, drilled
from service.web.api import analytics, feedback, health, jobs, jobs_v1, search, threads, webhooks
from service.web.api.metrics import Metrics, metrics_routes
from service.web.http import access, errors
from service.web.http.admission import Admission
from service.web.http.app_keys import (
    BEHIND,
    BROADCAST,
    CLOSING,
    COUNT_BOUND,
    INDEX,
    INSTANCE,
    JOB_READER,
    KEY_REQUIRED,
    MODEL_NAMES,
    MODELS,
    READINESS,
    REPLIER,
    STORE,
    VIEWS,
)
from service.web.http.connections import connections, listen
from service.web.http.cors import cors
from service.web.http.problems import MAX_BODY_BYTES, metadata_of, problems, request_ids
from service.web.http.tracing import traces
from service.web.pages import manual, pull_requests, reference
from service.workers.broadcast import Broadcast
from service.workers.checkpointing import Checkpoints
from service.workers.data_folder_watch import DataFolderWatch
from service.workers.erasures import Erasures
from service.workers.fair_slots import fetch_slots
from service.workers.indexing.embedder import Embedder
from service.workers.indexing.indexer import Indexer
from service.workers.indexing.poller import Poller
from service.workers.instances import Instance, NoInstance
from service.workers.jobs.runner import JobRunner
from service.workers.log_watch import LogWatch
from service.workers.replier import Replier
from service.workers.webhooks import Webhooks

log = structlog.get_logger()

SHUTDOWN_SECONDS = 5.0
"""For streams to end properly; after that they are cut. With what follows, the whole stop stays under 10 seconds."""


class Server:
    """Everything that runs while the service serves."""

    def __init__(
        self,
        runtime: Runtime,
        instance: Instance | NoInstance,
        address: Address,
        models: CurrentModels,
        *,
        drill: bool = False,
        reads_only: bool = False,
    ) -> None:
        settings = self._settings = runtime.settings
        self.is_drill, self.reads_only = drill, reads_only
        self.data_folder = DataFolderWatch(runtime.data, runtime.store)
        self.listening: socket.socket | None = None
        self.models, self.url = models, ""
        self._runtime, self._address = runtime, address
        self._broadcast: Broadcast[ReplyEvent] = Broadcast()
        self._closing = asyncio.Event()
        self._replies_ready = asyncio.Event()
        self._hosted = HostedCodeHost(runtime.data, base_url=address)
        tracer = self._tracer = NoTracer() if drill else tracer_for(__version__)
        docs = traced_docs(offline_docs(runtime.docs) if drill else runtime.docs, tracer)
        code_hosts = offline_code_hosts() if drill else runtime.code_hosts
        self._search = traced_index(runtime.index, tracer)
        self._metrics = Metrics(
            runtime.store,
            runtime.views,
            runtime.data,
            lambda: self.admission.connection_limiter.open,
            self.data_folder.trouble_kind,
        )
        fetches = fetch_slots()
        self._indexer = Indexer(
            runtime.store,
            runtime.views,
            docs,
            runtime.index,
            runtime.data,
            fetches=fetches,
            count_bound=self._metrics.count_bound,
        )
        self._replier = Replier(
            runtime.store,
            runtime.views,
            self._broadcast,
            models=runtime.models,
            index=self._search,
            instance=instance.name,
            is_alive=instance.is_alive,
            settings=AnswerSettings(
                suggestions=settings.assistant.suggestions, max_searches=settings.assistant.max_searches
            ),
            concurrent_replies=settings.assistant.concurrent_replies,
            grace_seconds=settings.threads.grace_seconds,
            tracer=tracer,
        )
        self._job_runner = JobRunner(
            runtime.store,
            runtime.views,
            models=runtime.models,
            docs=docs,
            index=self._search,
            code_hosts={
                kind: traced_code_host(host, tracer) for kind, host in {**code_hosts, "local": self._hosted}.items()
            },
            instance=instance.name,
            is_alive=instance.is_alive,
            concurrent_jobs=settings.agent.concurrent_jobs,
            concurrent_jobs_per_project=settings.agent.concurrent_jobs_per_project,
            concurrent_jobs_per_organization=settings.agent.concurrent_jobs_per_organization,
            budgets=Budgets(
                steps=settings.agent.max_steps,
                tokens=settings.agent.max_tokens,
                cost_usd=settings.agent.max_cost_usd,
                minutes=settings.agent.max_minutes,
            ),
            author=settings.agent.author,
            tracer=tracer,
            takes_up_earlier=not drill,
        )
        minutes = settings.audit.checkpoint_minutes
        makes_checkpoints = minutes > 0 and not reads_only
        self._checkpoints = Checkpoints(runtime.store, runtime.data, minutes) if makes_checkpoints else None
        minutes = settings.index.poll_minutes
        self._poller = None
        if minutes > 0:
            self._poller = Poller(runtime.store, runtime.views, docs, minutes=minutes, fetches=fetches)
        self._log_watch = LogWatch(runtime.data, runtime.store.hold)
        self._erasures = Erasures(runtime.store, runtime.views)
        self._webhook_sender = AiohttpWebhookSender(
            allow_private=settings.network.allow_private, timeout_seconds=settings.webhooks.timeout_seconds
        )
        self._webhooks = Webhooks(
            runtime.store,
            runtime.views,
            traced_sender(self._webhook_sender, tracer),
            concurrent_deliveries=settings.webhooks.concurrent_deliveries,
        )
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._metrics_runner: web.AppRunner | None = None
        self.admission = Admission(runtime.store, runtime.views, runtime.data, admission_settings(settings))
        self._job_reader = JobReader(runtime.store, runtime.views, slots_of(settings.agent))
        self.admission.count_with(self._metrics.count_bound)
        models.measure(lambda model: traced_model(self._metrics.of_model(model), tracer))
        self.app = self._build_app(instance)

    def _build_app(self, instance: Instance | NoInstance) -> web.Application:
        runtime = self._runtime
        app = web.Application(
            middlewares=[connections, self._metrics.measure, request_ids, *traces(self._tracer), cors, problems],
            client_max_size=MAX_BODY_BYTES,
        )
        app[STORE], app[VIEWS], app[MODELS] = runtime.store, runtime.views, runtime.models
        app[INDEX] = self._search
        app[JOB_READER] = self._job_reader
        app[BROADCAST], app[REPLIER], app[INSTANCE] = self._broadcast, self._replier, instance.name
        app[COUNT_BOUND] = self._metrics.count_bound
        app[KEY_REQUIRED] = runtime.settings.threads.require_key
        app[BEHIND] = self._indexer.behind
        app[READINESS], app[MODEL_NAMES], app[CLOSING] = self.not_ready, self._model_names(), self._closing
        app[pull_requests.HOSTED] = self._hosted
        app[pull_requests.PAGE_TURNS] = pull_requests.page_turns(self._metrics.count_bound)
        app[pull_requests.PULL_REQUEST_CLOSED] = self._pull_request_closed
        self.admission.install(app)
        app.on_response_prepare.append(self._metrics.note_stream)
        app.add_routes(health.routes)
        app.add_routes(errors.routes)
        app.add_routes(reference.routes)
        app.add_routes(manual.routes)
        app.add_routes(jobs.routes)
        app.add_routes(jobs_v1.routes)
        app.add_routes(threads.routes)
        app.add_routes(search.routes)
        app.add_routes(feedback.routes)
        app.add_routes(analytics.routes)
        app.add_routes(pull_requests.routes)
        app.add_routes(webhooks.routes)
        app.add_routes(
            git_routes(
                runtime.data / "hosted",
                access.git_organization,
                pushed=self._pushed,
                allow_force_push=runtime.settings.hosted.allow_force_push,
                count_bound=self._metrics.count_bound,
            )
        )
        if runtime.settings.metrics.enabled and not runtime.settings.metrics.port:
            app.add_routes(metrics_routes(self._metrics, _metrics_token(runtime.settings), anybody=False))
        return app

    def _model_names(self) -> dict[str, str]:
        models = self._runtime.models
        return {"agent": models.for_agent("").name, "assistant": models.for_assistant().name}

    async def start(self) -> None:
        """Start the workers. Everything that comes in from now on is seen by them."""
        self._begin("data-folder", self.data_folder.run())
        if self.reads_only:
            await self._start_reading()
            return
        await asyncio.to_thread(_remove_leftovers, self._runtime.data)
        await self._erasures.repeat()
        await self._hosted.recover()
        await self._indexer.load()
        await catch_up(self._runtime.views)
        await self.admission.load()
        await self._job_reader.load()
        self._begin("views", self._runtime.views.run())
        for name, work in self.admission.workers():
            self._begin(name, work)
        self._begin("ended-jobs", self._job_reader.run())
        self._begin("replier", self._replier.run(ready=self._replies_ready))
        self._begin("job-runner", self._job_runner.run())
        self._begin("indexer", self._indexer.run())
        if self._poller is not None:
            self._begin("poller", self._poller.run())
        if self._runtime.meaning is not None:
            embedder = Embedder(self._runtime.store, self._runtime.views, self._runtime.index, self._runtime.meaning)
            self._begin("embedder", embedder.run())
        self._begin("log-watch", self._log_watch.run())
        self._begin("erasures", self._erasures.run())
        if not self.is_drill:
            self._begin("webhooks", self._webhooks.run())
        if self._checkpoints is not None:
            self._begin("checkpoints", self._checkpoints.run())
        self._begin("loop-delay", self._metrics.watch_loop())
        self._begin("metrics", self._metrics.follow())
        await self._replies_ready.wait()
        await self._show_metrics()

    async def _start_reading(self) -> None:
        """Search and what else is only read, of a data folder that cannot be written."""
        await self._indexer.load()
        await self.admission.load()
        await self._job_reader.load()
        for name, work in self.admission.readers():
            self._begin(name, work)
        self._begin("ended-jobs", self._job_reader.run())
        self._begin("loop-delay", self._metrics.watch_loop())
        await self._show_metrics()

    async def _show_metrics(self) -> None:
        """On a port of their own, if the settings name one. Raises OSError."""
        settings = self._runtime.settings.metrics
        if settings.enabled and settings.port:
            app = web.Application(middlewares=[request_ids, problems])
            app.add_routes(metrics_routes(self._metrics, _metrics_token(self._runtime.settings), anybody=True))
            self._metrics_runner = web.AppRunner(app, access_log=None)
            await self._metrics_runner.setup()
            await web.SockSite(self._metrics_runner, socket_of(settings.host, settings.port, "metrics.port")).start()

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work, name=name)

    async def stop(self) -> None:
        """End streams properly, park jobs. Views follow to the end, since parking is recorded, too."""
        self._closing.set()
        if self._metrics_runner is not None:
            await self._metrics_runner.cleanup()
        for name in (
            "poller", "log-watch", "checkpoints", "erasures", "webhooks", "replier", "job-runner", "embedder",
            "indexer", "metrics", "loop-delay", "data-folder", "views",
        ):  # fmt: skip
            task = self._tasks.get(name)
            if task is not None:
                task.cancel()
                await asyncio.wait([task], timeout=SHUTDOWN_SECONDS)
        await self._webhook_sender.close()
        if self._checkpoints is not None:
            await self._checkpoints.make()
        await asyncio.to_thread(self._tracer.close)

    async def is_new(self) -> bool:
        """Whether nobody has made a project yet."""
        return not await list_projects(self._runtime.views)

    def is_alive(self) -> bool:
        return self._closing.is_set() or not any(task.done() for task in self._tasks.values())

    def change(self, settings: Settings) -> Changes:
        """Take over what can be taken over while the service runs. Raises ServiceError, with nothing changed."""
        if self.is_drill:
            settings = drilled(settings)
        admission, models = admission_settings(settings), self._models_of(settings)
        changed = changes(self._settings, settings)
        if any(name.startswith(("models.", "agent.", "assistant.")) for name in changed.at_once):
            self.models.replace(models)
            self.app[MODEL_NAMES].update(self._model_names())
        self.admission.change(admission)
        self._settings = settings
        return changed

    def _models_of(self, settings: Settings) -> ConfiguredModels:
        return configured_models(settings, {} if self.is_drill else os.environ)

    def not_ready(self) -> dict[str, str]:
        reasons = {name: "this worker has ended" for name, task in self._tasks.items() if task.done()}
        if (why := self._runtime.views.trouble) is not None:
            reasons["views"] = why
        for status in self._runtime.views.status():
            if status.failed is not None and status.failed != why:
                reasons[f"view {status.name}"] = status.failed
        if self._log_watch.problem is not None:
            reasons["log"] = "it is behind what was seen of it, or another one; docsmith doctor says what to do"
        reasons |= {f"index {domain}": reason for domain, reason in self._runtime.index.broken().items()}
        if (trouble := self.data_folder.trouble()) is not None:
            reasons["data folder"] = f"{trouble.says}{' Until then only reading is served.' if self.reads_only else ''}"
        if self._closing.is_set():
            reasons["service"] = "it is going down"
        return reasons

    async def _pull_request_closed(self, project_id: str, page: PullRequestPage, at: datetime) -> None:
        """Somebody merged or closed one on the embedded code host: record it, and index what was merged."""
        runtime, pull_request = self._runtime, page.pull_request
        outcome: PullRequestOutcome = "merged" if pull_request.state == "merged" else "closed"
        close = ClosePullRequest(outcome, at, page.merge_commit)
        await close_pull_request(runtime.store, runtime.views, project_id, pull_request.number, close, Metadata())
        if outcome == "merged":
            await self._reindex(project_id, f"pull request {pull_request.number} was merged", Metadata())

    async def _pushed(self, request: web.Request, project_id: str) -> None:
        """Somebody pushed to the embedded code host: perhaps to the branch that the site shows."""
        await self._reindex(project_id, "a push", metadata_of(request))

    async def _reindex(self, project_id: str, reason: str, metadata: Metadata) -> None:
        project = await get_project(self._runtime.views, project_id)
        if project is not None:
            await request_index(self._runtime.store, project.domain, reason, metadata)


def _remove_leftovers(data: Path) -> None:
    """What killed processes have left in the data folder and beside it, a vault perhaps."""
    remove_leftovers(leftovers_beside(data))
    for folder in (data / "index").glob("*/"):
        clear_away(folder)


@asynccontextmanager
async def serving(data: Path, settings: Settings) -> AsyncIterator[str]:
    """The whole service, from taking requests to its orderly end; gives its address. Raises what ``running`` raises."""
    async with running(data, settings) as server:
        yield server.url


@asynccontextmanager
async def running(
    data: Path, settings: Settings, inherited: socket.socket | None = None, *, drill: bool = False
) -> AsyncIterator[Server]:
    """The whole service, which listens on the inherited socket, or where the settings say. As a ``drill`` it runs a
    restored copy, from which nothing leaves the machine.

    Raises AlreadyServed, Conflict (``restored_copy``, ``not_a_copy``), NotFound (``unknown_model``), and OSError
    when the address cannot be listened on.
    """
    require_served_as(data, drill=drill)
    require_descriptors(settings.server.max_connections)
    if drill:
        settings = drilled(settings)
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(_running(data, settings, inherited, drill=drill))
        except (EventStoreError, OSError, sqlite3.Error, Forbidden, Unavailable) as error:
            trouble = trouble_of(data)
            if trouble is None or trouble.kind == "unreadable" or isinstance(error, StoreCorrupt):
                raise
            log.warning("only reading is served", reason=trouble.says, error=str(error))
            try:
                reading = _running(data, settings, inherited, drill=drill, reads_only=True)
                server = await stack.enter_async_context(reading)
            except (EventStoreError, OSError, sqlite3.Error) as other:
                log.warning("not even reading is served", error=str(other))
                raise error from None
        yield server


@asynccontextmanager
async def _running(
    data: Path, settings: Settings, inherited: socket.socket | None, *, drill: bool, reads_only: bool = False
) -> AsyncIterator[Server]:
    address, linger_seconds = Address(settings.server.public_url), settings.agent.max_minutes * 60
    models = CurrentModels(configured_models(settings, {} if drill else os.environ), linger_seconds)
    opened = open_to_read(data, settings, models) if reads_only else open_runtime(data, settings, models, alone=True)
    async with AsyncExitStack() as stack:
        listens_on = stack.enter_context(only_server(data, reads_only=reads_only))
        instance = NoInstance() if reads_only else stack.enter_context(Instance(data))
        runtime = await stack.enter_async_context(opened)
        server = Server(runtime, instance, address, models, drill=drill, reads_only=reads_only)
        # Without handler_cancellation, handlers whose client has left pile up (only in production: aiohttp's test
        # server cancels them).
        runner = web.AppRunner(server.app, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(server.stop)
        listening = inherited.dup() if inherited else socket_of(settings.server.host, settings.server.port)
        stack.callback(listening.close)
        server.url, server.listening = url_of(listening), listening
        address.listening_on(reachable(server.url))
        await server.start()
        assert runner.server is not None
        taking = await listen(runner.server, listening, server.admission.connection_limiter, http_logger())
        stack.callback(taking.close)
        listens_on(server.url)
        gc.collect()
        gc.freeze()  # what is here stays: else each full collection walks all of it, 30 ms of the event loop
        async with preparing(models):
            yield server


@asynccontextmanager
async def preparing(models: CurrentModels) -> AsyncIterator[None]:
    task = asyncio.create_task(prepare(models), name="models")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def prepare(models: CurrentModels) -> None:
    """Import what the models need while requests are served already, so that the first one does not wait for it."""
    try:
        await models.prepare()
    except ServiceError as error:
        log.warning("a model cannot be used", code=error.code, reason=str(error))


def _metrics_token(settings: Settings) -> str:
    """Raises BadSettings: there should be one, and is none."""
    variable = settings.metrics.token_env
    token = os.environ.get(variable, "") if variable else ""
    if variable and not token:
        raise BadSettings(f"[metrics] token_env: the variable {variable} is not set")
    return token
