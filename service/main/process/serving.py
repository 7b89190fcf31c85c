"""The process that serves: its signals, its settings, its supervisor."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog

from eventstore import EventStoreError
from service.domain.access.people import LINK_MINUTES
from service.domain.errors import ServiceError
from service.main.process.supervisor import Supervisor, inherited_socket
from service.main.running import prepare, running
from service.main.server import Server
from service.runtime import memory
from service.runtime.logs import Level, configure_logging
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_shown import SettingsReader

log = structlog.get_logger()

SIGN_IN = f"""\
Sign in with this link, once, within {LINK_MINUTES} minutes (docsmith login prints another):

  {{link}}
"""

SIGN_IN_BY_COMMAND = f"""\
This prints a link that signs you in there, once, within {LINK_MINUTES} minutes:

  docsmith login --data {{data}}
"""

FIRST_STEPS = """
Docsmith serves {url}, with its data in the folder {data} ({models}).
There is no documentation yet. Add it in a browser: an upload, a folder, a git address, a website, or a sample.
{sign_in}
To do it in another terminal instead:

  docsmith organization create --name NAME --data {data}
  docsmith project create --name NAME --repository URL_OR_FOLDER --domain SITE --data {data}
  docsmith key create --kind admin --data {data}
  docsmith key create --kind assistant --domain SITE --data {data}

"""

DRILL = """
This is a drill on {data}, a restored copy, at {url}: the builtin model works, and nothing leaves
this machine. Jobs that had begun or waited in the backup stay as they are.
{sites}
"""

SWITCH_SECONDS = 0.0005
"""How long a thread that computes may keep the event loop from going on. With Python's own 5 ms, a job on 14,500 pages
delayed the loop by 16 ms at p99; with this by 3 ms, in the same time for the job.
"""


START_SECONDS = 20.0
"""A start that takes longer is reported to the supervisor this often, so that it waits on."""


async def serve(data: Path, settings: Settings, reread: SettingsReader, *, drill: bool) -> None:
    """Serve a data folder until SIGTERM or SIGINT, of which a second one ends the drain; at SIGHUP ``reread`` gives the
    settings as they are now. Raises what ``running`` raises.
    """
    memory.keep_little()
    level = configure_logging(settings.log.level, settings.log.format)
    sys.setswitchinterval(SWITCH_SECONDS)
    supervisor, inherited = Supervisor.of(os.environ), inherited_socket(os.environ)
    stopping, hurrying, wake = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, lambda: (hurrying if stopping.is_set() else stopping).set())
    loop.add_signal_handler(signal.SIGHUP, wake.set)
    is_first = True
    while True:
        async with AsyncExitStack() as stack:
            stack.enter_context(memory.seldom_collected())
            server = await _started(stack, running(data, settings, inherited, drill=drill), stopping, supervisor)
            if server is None:
                log.info("stopped before it took requests")
                return
            server.shown_settings.reader = reread
            if is_first:
                print(f"listening on {server.url}", flush=True)  # noqa: T201  (the line that scripts wait for)
            server.announced.set()
            await _greet(server, data, await _first_link(server) if is_first and sys.stderr.isatty() else None)
            is_first = False
            supervisor.ready(f"listening on {server.url}")
            async with background(
                _reload_when(wake, server, level, reread, supervisor), _watch(server, supervisor), _give_back_memory()
            ):
                await _first_of(stopping, server.data_folder.is_writable if server.reads_only else asyncio.Event())
                if stopping.is_set():
                    log.info("stopping", drain_seconds=server.drain_seconds)
                    supervisor.stopping(server.drain_seconds)
                    await server.drain(hurrying)
            if stopping.is_set():
                return
            assert server.listening is not None
            log.info("starting in full")
            inherited = server.listening.dup()  # so that no caller is refused meanwhile


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(one.wait()) for one in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


async def _started(
    stack: AsyncExitStack,
    running: AbstractAsyncContextManager[Server],
    stopping: asyncio.Event,
    supervisor: Supervisor,
) -> Server | None:
    """The server, once it takes requests; None: it was to stop before that. Rebuilding read tables takes minutes."""
    start = asyncio.create_task(stack.enter_async_context(running), name="start")
    stop = asyncio.create_task(stopping.wait())
    async with background(_say_it_starts(supervisor)):
        await asyncio.wait([start, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not start.done():
            supervisor.stopping(0)
            start.cancel()
            await asyncio.wait([start])
            if start.cancelled():
                return None
        return await start


async def _say_it_starts(supervisor: Supervisor) -> None:
    while True:
        await asyncio.sleep(START_SECONDS)
        supervisor.starting(3 * START_SECONDS)


@asynccontextmanager
async def background(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _give_back_memory() -> None:
    while True:
        await asyncio.to_thread(memory.give_back)
        await asyncio.sleep(memory.SECONDS)


async def _greet(server: Server, data: Path, link: str | None) -> None:
    """Write one line in the log; the first time also what to do first, for people, with the link that signs in."""
    log.info("serving", address=server.url, data=str(data), models=server.models.describe())
    if server.is_drill:
        sites = (
            "The copy has no project, so there is no site to ask."
            if await server.is_new()
            else "Its sites can be asked."
        )
        sys.stderr.write(DRILL.format(data=data, url=server.url, sites=sites))
        sys.stderr.flush()
    elif await server.is_new():
        sign_in = SIGN_IN_BY_COMMAND.format(data=data) if link is None else SIGN_IN.format(link=link)
        steps = FIRST_STEPS.format(url=server.address, data=data, models=server.models.describe(), sign_in=sign_in)
        sys.stderr.write(steps)
        sys.stderr.flush()
    elif link is not None:
        sys.stderr.write("\n" + SIGN_IN.format(link=link))
        sys.stderr.flush()


async def _first_link(server: Server) -> str | None:
    """Return a sign-in link until someone has signed in. Only for a terminal: elsewhere it would stay in a log."""
    try:
        return await server.first_link()
    except (ServiceError, EventStoreError) as error:
        log.warning("no sign-in link: run docsmith login", reason=str(error))
        return None


async def _reload_when(
    wake: asyncio.Event, server: Server, level: Level, reread: Callable[[], Settings], supervisor: Supervisor
) -> None:
    while True:
        await wake.wait()
        wake.clear()
        supervisor.reloading()
        try:
            settings = await asyncio.to_thread(reread)
            changed = server.change(settings)
        except ServiceError as error:
            log.error("settings not read: the earlier ones stay", reason=str(error))  # noqa: TRY400  (no fault of ours)
        else:
            level.change(settings.log.level)
            log.info("settings read", changed=changed.at_once, take_a_restart=changed.after_restart)
            await prepare(server.models)
        supervisor.ready(f"listening on {server.url}")


async def _watch(server: Server, supervisor: Supervisor) -> None:
    """Tell the supervisor that the service is alive, as long as it is: a worker that has ended must not hide behind a
    live event loop.
    """
    if supervisor.watchdog_seconds is None:
        return
    while server.is_alive():
        supervisor.alive()
        await asyncio.sleep(supervisor.watchdog_seconds / 3)
    log.error("a worker has ended: the supervisor gets no more reports", reasons=server.not_ready())
