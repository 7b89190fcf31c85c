"""The whole service in this process: opened, listening, started, and stopped in order."""

import asyncio
import gc
import os
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path

import structlog
from aiohttp import web

from eventstore import EventStoreError, StoreCorrupt
from service.cli.runtime import Runtime, reachable
from service.domain.errors import Forbidden, ServiceError, Unavailable
from service.main.folder import configured_models, open_runtime, open_to_read
from service.main.listening import Address, require_descriptors, socket_of, url_of
from service.main.reloading import CurrentModels
from service.main.server import Server
from service.main.worker_table import SHUTDOWN_SECONDS
from service.runtime.data_folder import only_server, require_served_as, trouble_of
from service.runtime.logs import http_logger
from service.runtime.settings import Settings, drilled
from service.web.http.connections import listen
from service.workers.instances import Instance, NoInstance

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
        stack.push_async_callback(server.close)
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
        # What is here stays: else each full collection walks all of it, 30 ms of the event loop. None is made here: it
        # would hold the start up by as much, and of 100,000 objects it found none to free.
        gc.freeze()
        async with preparing(models, runtime, server.announced):
            yield server


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
    rehearsal = await asyncio.to_thread(import_module, "service.main.rehearsal")  # with all that an answer takes
    if opening := runtime.index.opening():
        await asyncio.wait(opening)  # here, since they belong to this event loop, and an answer is rehearsed on another
    with suppress(EventStoreError, OSError):  # then the first reply loads it
        await rehearsal.rehearse(
            runtime.index, await rehearsal.indexed_sites(runtime.views), may_search=runtime.meaning is None
        )


async def prepare(models: CurrentModels) -> None:
    """Import what the models need while requests are served already, so that the first one does not wait for it."""
    try:
        await models.prepare()
    except ServiceError as error:
        log.warning("a model cannot be used", code=error.code, reason=str(error))
