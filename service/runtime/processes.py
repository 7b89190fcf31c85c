"""Run one function in a child process that can be limited and killed.

A thread can be neither stopped nor given a memory limit. Work on what strangers wrote (a fetch of a repository, a pack
that inflates to gigabytes) therefore runs in a process of its own: it inherits no lock or open file of ours, is limited
by ``RLIMIT_AS`` (on macOS, which refuses that limit, by a thread that watches it), and killed when its time is up or
no one waits for it any more.

Children are forked from a server (``forkserver``) that has imported what they need and nothing else of ours: some 15 ms
each, where a fresh Python takes 250. The server starts with the first child, or by ``start_server``, takes some 50 MB,
and ends with us.

One thread of ours belongs to each child: it starts it, reads its messages and waits for it, so the event loop never
blocks. Our end is the child's, too.
"""

import asyncio
import errno
import fcntl
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, TypeVar

from service.domain.errors import Invalid, Unavailable

T = TypeVar("T")

CONTEXT = multiprocessing.get_context("forkserver")

TIMED_OUT, OUT_OF_MEMORY, PROCESS_DIED = "timed_out", "out_of_memory", "process_died"
"""Codes of how a child failed."""

Kind = Literal["progress", "result", "error", "memory"]


_preloaded: list[str] = []


def preload(modules: Sequence[str]) -> None:
    """Name the modules that the server of children imports, before the first child. The first call counts."""
    if not _preloaded:
        _preloaded.extend(modules)
        CONTEXT.set_forkserver_preload(_preloaded)


def start_server() -> None:
    """Start the server of children, unless it runs: it imports meanwhile what the first child would wait for."""
    forkserver.ensure_running()


class RemoteTraceback(Exception):
    """The traceback of an exception in the child, as text: the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


async def run_in_child(
    function: Callable[..., T],
    *args: object,
    timeout_seconds: float,
    memory_bytes: int | None = None,
    on_progress: Callable[[Any], None] | None = None,
) -> T:
    """Return what ``function(*args)`` returns, or raise what it raises, in a process of its own.

    The function belongs to a module; its arguments, result and errors can be pickled. With ``on_progress`` it is also
    given ``report``, a function of one value; the values arrive on the event loop, in order, before the result.

    Raises:
        Unavailable: it took longer than the timeout (``timed_out``), the process died, or its memory cannot be limited
            here (``not_limited``), or the system killed it, as it does without memory (``out_of_memory``).
        Invalid: it wanted more memory than allowed (``out_of_memory``).
    """
    loop = asyncio.get_running_loop()
    child = _Child(function, args, memory_bytes, on_progress is not None)
    ended: asyncio.Future[None] = loop.create_future()

    def told(value: object) -> None:
        if on_progress is not None and not child.abandoned:
            on_progress(value)

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def supervise() -> None:
        try:
            child.run(lambda value: _call_on(loop, told, value))
        finally:
            _call_on(loop, end)

    threading.Thread(target=supervise, name=f"child-{function.__name__}", daemon=True).start()
    try:
        async with asyncio.timeout(timeout_seconds):
            await asyncio.shield(ended)
    except TimeoutError:
        raise Unavailable(f"This took longer than {timeout_seconds:g} seconds.", code=TIMED_OUT) from None
    finally:
        if not ended.done():  # the time is up, or our caller was cancelled: leave nothing running behind
            child.kill()
            await _until_done(ended)
    return child.outcome()  # type: ignore[return-value]  # what the function returned, pickled there and back


async def _until_done(future: "asyncio.Future[None]") -> None:
    """Wait, even while being cancelled: the child has been killed, so its end is near."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    with suppress(RuntimeError):  # the loop was closed: no one waits
        loop.call_soon_threadsafe(function, *args)


class _Child:
    """The parent's side: one process, used from one thread, killed from any."""

    def __init__(
        self, function: Callable[..., object], args: tuple[object, ...], memory_bytes: int | None, reports: bool
    ) -> None:
        self.abandoned = False
        self._work = (function, args, memory_bytes, reports)
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._value: object = None
        self._error: BaseException = Unavailable("The process was stopped.")
        self._succeeded = False

    def run(self, told: Callable[[object], None]) -> None:
        reader, writer = CONTEXT.Pipe(duplex=False)
        try:
            process = CONTEXT.Process(target=_child_main, args=(writer, *self._work), daemon=True)
            try:
                process.start()
            except BaseException as error:  # noqa: BLE001 - a thread's edge: the awaiting caller gets it
                self._error = error
                return
            finally:
                writer.close()  # else its end would not be the end of the pipe
            with self._lock:
                self._process = process
                if self.abandoned:
                    process.kill()
            self._read(reader, told)
            process.join()
            with self._lock:
                self._process = None
                if not self._succeeded and isinstance(self._error, _Died):
                    self._error = self._error.explained(process.exitcode, self._work[2])
                process.close()
        finally:
            reader.close()

    def _read(self, reader: Connection, told: Callable[[object], None]) -> None:
        self._error = _Died()
        try:
            while True:
                kind: Kind
                kind, value, text = pickle.loads(reader.recv_bytes())  # noqa: S301 - written by our own child
                if kind == "progress":
                    told(value)
                elif kind == "result":
                    self._value, self._succeeded = value, True
                    return
                else:
                    self._error = value
                    if text:
                        self._error.__cause__ = RemoteTraceback(text)
                    return
        except (EOFError, OSError):
            pass  # it died: its exit code says how
        except Exception as error:  # noqa: BLE001 - whatever cannot be unpickled is the outcome
            self._error = error

    def kill(self) -> None:
        with self._lock:
            self.abandoned = True
            if self._process is not None:
                self._process.kill()

    def outcome(self) -> object:
        if self._succeeded:
            return self._value
        raise self._error


class _Died(Exception):
    """The process ended without an outcome."""

    def explained(self, code: int | None, memory_bytes: int | None) -> Exception:
        if memory_bytes is not None and code in (_EXCEEDED, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            return _out_of_memory_error(memory_bytes)  # native code that cannot allocate aborts
        if code == -signal.SIGKILL:  # by the system: ours are sent once no caller waits
            return Unavailable(
                "The process that did the work was killed (signal 9), most likely because this machine is out of"
                " memory. Give it more, or let less work run at a time.",
                code=OUT_OF_MEMORY,
            )
        return Unavailable(f"The process that did the work died (exit code {code}).", code=PROCESS_DIED)


def _out_of_memory_error(memory_bytes: int | None) -> Invalid:
    """The answer to a failed allocation."""
    limit = f"the {memory_bytes >> 20:,} MiB that it may have" if memory_bytes is not None else "this machine has free"
    return Invalid(f"Out of memory: this needs more than {limit}.", code=OUT_OF_MEMORY)


def _child_main(
    writer: Connection,
    function: Callable[..., object],
    args: tuple[object, ...],
    memory_bytes: int | None,
    reports: bool,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    _end_with_parent()

    def send(kind: Kind, value: object, text: str = "") -> None:
        writer.send_bytes(pickle.dumps((kind, value, text), pickle.HIGHEST_PROTOCOL))

    def report(value: object) -> None:
        send("progress", value)

    try:
        if memory_bytes is not None:
            _die_first()
            _limit_memory(memory_bytes)
        result = function(*args, report=report) if reports else function(*args)
        send("result", result)
    except BrokenPipeError:
        return  # no one waits
    except BaseException as error:  # noqa: BLE001 - a process's edge: the parent raises it
        _lift_memory_limit()
        if _out_of_memory(error):
            send("error", _out_of_memory_error(memory_bytes))
            return
        text = "".join(traceback.format_exception(error))
        if _travels(error):
            send("error", error, text)
        else:
            send("error", RuntimeError(f"{type(error).__name__}: {error}"), text)
    finally:
        writer.close()


def _travels(error: BaseException) -> bool:
    """Can it be raised over there? Some exceptions pickle and cannot be read back; SystemExit would end the parent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - any error of a class's own pickling
        return False
    return isinstance(error, Exception)


def _out_of_memory(error: BaseException | None) -> bool:
    """Return True for a failed allocation, also where a library caught it and raised its own error."""
    seen = 0
    while error is not None and seen < 20:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def _die_first() -> None:
    """When the machine runs out of memory, the kernel ends this process before the service (proc(5))."""
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_memory(memory_bytes: int) -> None:
    """Raises Unavailable ``not_limited``: what strangers wrote is not read without a limit.

    macOS refuses RLIMIT_AS with any value (CPython issues 78783 and 84698), so there the process watches itself.
    """
    if sys.platform == "darwin":
        watch_memory(memory_bytes)
        return
    try:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)  # a stricter one stays
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    except (OSError, ValueError) as error:
        raise Unavailable(
            "This system does not let the service limit the memory of its own processes (setrlimit, RLIMIT_AS: "
            f"{error}).",
            code="not_limited",
        ) from error


def watch_memory(memory_bytes: int) -> None:
    """End this process soon after it has had more than that in memory at a time.

    Weaker than a limit of the system: what is allocated within a look and the next one is not prevented.
    """

    def watch() -> None:
        while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES <= memory_bytes:
            time.sleep(_WATCH_SECONDS)
        os._exit(_EXCEEDED)

    threading.Thread(target=watch, name="watch-memory", daemon=True).start()


_EXCEEDED = 97
"""Exit code of a process that had more memory than it may."""
_WATCH_SECONDS = 0.02
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
"""The unit of ``ru_maxrss`` (getrusage(2)), in bytes."""


def _lift_memory_limit() -> None:
    """Telling what went wrong needs memory too."""
    with suppress(OSError, ValueError):  # where there is no limit either
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _end_with_parent() -> None:
    """Be killed when our parent ends, and end now if it has.

    We share a pipe with it, of which it alone has the end for writing. The kernel kills us when that is closed
    (fcntl(2), F_SETSIG); where that does not exist, a thread waits for it.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux":
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
        if not parent.is_alive():
            os._exit(1)
    else:
        threading.Thread(target=_outlive, args=(parent,), name="end-with-parent", daemon=True).start()


def _outlive(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
