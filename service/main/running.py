"""The whole service in this process: opened, listening, started, and stopped in order."""

import asyncio
import gc
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path

import structlog
from aiohttp import web

from eventstore import EventStoreError, StoreCorrupt, StoreReadOnly, StoreUnavailable
from service.cli.runtime import Runtime
from service.domain.access.names import is_only_here
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.integrity.log_place import log_place
from service.integrity.shared_secrets import usage_secret
from service.main.folder import configured_models, open_runtime, open_to_read
from service.main.process.joining import Joined, join, reaching_others
from service.main.process.listening import Address, require_descriptors, socket_of, url_of
from service.main.process.reloading import CurrentModels
from service.main.process.sharing import share
from service.main.process.wrapping import wrapping_keys
from service.main.server import Server
from service.main.worker_table import SHUTDOWN_SECONDS
from service.runtime.data_folder import LOG_COPY, Trouble, only_server, require_served_as, trouble_of
from service.runtime.logs import http_logger
from service.runtime.processes import start_server
from service.runtime.settings.settings import Settings, drilled
from service.runtime.system import now
from service.web.http.connections.connections import listen
from service.web.pages.preparing import prepare_pages
from service.web.widget.bundle import widget
from service.web.widget.kept import keep_files
from service.web.widget.scripts import FOLDER as WIDGET_FOLDER
from service.workers.data_folder_watch import AwayLog
from service.workers.instances import NoInstance

log = structlog.get_logger()


@asynccontextmanager
async def serving(data: Path, settings: Settings) -> AsyncIterator[str]:
    """The whole service, from taking requests to its orderly end; gives its address. Raises what ``running`` raises."""
    async with running(data, settings) as server:
        server.announced.set()
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
            trouble = trouble_of(data) or await _log_away(data, error)
            if trouble is None or trouble.kind == "unreadable" or isinstance(error, StoreCorrupt):
                raise
            log.warning("only reading is served", reason=trouble.says, error=str(error))
            try:
                reading = _running(
                    data,
                    settings,
                    inherited,
                    drill=drill,
                    reads_only=True,
                    away=trouble.says if trouble.kind == "log_away" else "",
                )
                server = await stack.enter_async_context(reading)
            except (EventStoreError, OSError, sqlite3.Error) as other:
                log.warning("not even reading is served", error=str(other), exc_info=other)
                raise error from None
        yield server


@asynccontextmanager
async def _running(
    data: Path,
    settings: Settings,
    inherited: socket.socket | None,
    *,
    drill: bool,
    reads_only: bool = False,
    away: str = "",
) -> AsyncIterator[Server]:
    address, linger_seconds = Address(settings.server.public_url), settings.agent.max_minutes * 60
    models = CurrentModels(configured_models(drilled(settings), {}), linger_seconds)
    opened = open_to_read(data, settings, models) if reads_only else open_runtime(data, settings, models, alone=True)
    async with AsyncExitStack() as stack:
        listens_on = stack.enter_context(only_server(data, reads_only=reads_only))
        in_other_use = (lambda: None) if reads_only else await _served(stack, data)
        joined = (
            Joined(NoInstance()) if reads_only else await stack.enter_async_context(join(data, settings, serves=True))
        )
        keys = None
        if not (drill or reads_only):
            keys = await stack.enter_async_context(wrapping_keys(data, settings, joined.instances))
        runtime = await stack.enter_async_context(opened)
        added = None if drill else runtime.added
        models.begin(configured_models(settings, {} if drill else os.environ, added, runtime.store))
        secret = await usage_secret(runtime.shared_secrets, reads_only=reads_only)
        shared = await stack.enter_async_context(share(data, joined, secret))
        others = await stack.enter_async_context(reaching_others(joined, runtime.shared_secrets))
        server = Server(
            runtime,
            joined.instances,
            address,
            models,
            secret,
            shared,
            others=others,
            drill=drill,
            reads_only=reads_only,
            away=AwayLog(log_place(data), away) if away else None,
        )
        server.log_watch.in_other_use = in_other_use
        if not reads_only:
            server.log_watch.note_files()
        if keys is not None:
            server.key_rotation = keys.rotation
            keys.install(server.app)
        # Without handler_cancellation, handlers whose client has left pile up (only in production: aiohttp's test
        # server cancels them).
        runner = web.AppRunner(server.app, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(server.close)
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(server.stop)
        listening = inherited.dup() if inherited else socket_of(settings.server.host, settings.server.port)
        stack.callback(listening.close)
        bound, server.listening = url_of(listening), listening
        address.listening_on(bound)
        server.url = address.local if is_only_here(bound) else bound
        await server.start()
        assert runner.server is not None
        taking = await listen(runner.server, listening, server.admission.connection_limiter, http_logger())
        stack.callback(taking.close)
        listens_on(server.url)
        await joined.serve_at(bound, is_home=runtime.hosted_place.is_home)
        # What is here stays: else each full collection walks all of it, 30 ms of the event loop. None is made here: it
        # would hold the start up by as much, and of 100,000 objects it found none to free.
        gc.freeze()
        async with preparing(models, runtime, server.announced):
            yield server


async def _served(stack: AsyncExitStack, data: Path) -> Callable[[], str | None]:
    """Hold the log as one that is served, for as long as this service uses it. Raise StoreBusy.

    Return a function that says why this one may not use it any more; None while it may.
    """
    served = log_place(data).served()
    in_other_use = await asyncio.to_thread(served.__enter__)
    stack.push_async_callback(asyncio.to_thread, served.__exit__, None, None, None)
    return in_other_use


async def _log_away(data: Path, error: Exception) -> Trouble | None:
    """Return what to say where the log does not answer, or is on a standby, and its copy on this machine can be read;
    else None.
    """
    place = log_place(data)
    if place.is_local or not (data / LOG_COPY).exists() or not isinstance(error, StoreUnavailable):
        return None
    if type(error) is StoreUnavailable:
        return Trouble("log_away", f"{error}. Until then the log's copy on this machine is read.")
    if isinstance(error, StoreReadOnly):
        with suppress(EventStoreError):
            return Trouble("log_away", f"{error}.") if await asyncio.to_thread(place.is_standby) else None
    return None


@asynccontextmanager
async def preparing(models: CurrentModels, runtime: Runtime, announced: asyncio.Event) -> AsyncIterator[None]:
    task = asyncio.create_task(_prepare_all(models, runtime, announced), name="models")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _prepare_all(models: CurrentModels, runtime: Runtime, announced: asyncio.Event) -> None:
    await announced.wait()  # else threads that import hold up the line that is waited for
    await prepare(models)  # first: it takes longest
    await asyncio.to_thread(prepare_pages)
    await asyncio.to_thread(_keep_widget, runtime.data)
    rehearsal = await asyncio.to_thread(import_module, "service.main.rehearsal")  # with all that an answer takes
    if opening := runtime.index.opening():
        await asyncio.wait(opening)  # here, since they belong to this event loop, and an answer is rehearsed on another
    with suppress(EventStoreError, OSError):  # then the first reply loads it
        await rehearsal.rehearse(
            runtime.index, await rehearsal.indexed_sites(runtime.views), may_search=runtime.meaning is None
        )
    await asyncio.to_thread(start_server)  # else the first pull request that is opened waits for what it imports


def _keep_widget(data: Path) -> None:
    """Keep this version of the widget for pages that name it after the next upgrade."""
    try:
        keep_files(data / WIDGET_FOLDER, widget(), now())
    except OSError as error:
        log.warning("the widget's files are not kept for pages that name this version", error=str(error))


async def prepare(models: CurrentModels) -> None:
    """Import what the models need while requests are served already, so that the first one does not wait for it."""
    try:
        await models.prepare()
    except ServiceError as error:
        log.warning("a model cannot be used", code=error.code, reason=str(error))
