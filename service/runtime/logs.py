"""Set up logging: lines for people on a terminal, else JSON.

The line of a request is by far the most frequent: through structlog and its own write it cost a fifth of a short
request. As JSON these lines are collected, and a thread writes them a batch at a time, at most ``BATCH_SECONDS`` later:
only a process that is killed loses those of that time. Every other line is written before its call returns, and after
the lines of requests that came before it.
"""

import atexit
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import BinaryIO, Literal

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import asdict

log = structlog.get_logger()

BATCH_SECONDS = 0.1
MAX_WAITING = 50_000
"""Lines that wait at most, some 20 MB: further ones are dropped while the file takes none."""

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 50}
"""By the method that writes the line."""


class _KindsOnly(logging.Handler):
    """Log only the kind of error: aiohttp's own lines quote requests that it cannot read, keys included."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        log.warning("request not read", kind=type(error).__name__ if error is not None else "unknown")


def http_logger() -> logging.Logger:
    logger = logging.Logger("docsmith.http")
    logger.addHandler(_KindsOnly())
    return logger


def _log_line(event: object, **_: object) -> bytes:
    """Encode a line, fast, as each request logs one; values of unknown types become text."""
    return msgspec.json.encode(event, enc_hook=repr)


class RequestLine(Struct, frozen=True):
    """One request that was answered."""

    method: str
    path: str
    """The template of its route."""
    status: int | str
    milliseconds: float
    request_id: str
    actor: str
    timestamp: datetime
    event: str = "request"
    level: str = "info"


class _Lossy:
    """A file that lines are dropped for while it takes none: a disk that is full of logs must not stop the service.

    Without a buffer, where a line that failed would wait and make the next one fail.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file: BinaryIO = getattr(file, "raw", file)
        self._waiting: deque[RequestLine] = deque()
        self._any = threading.Event()
        self._writing = threading.RLock()  # a line may come of what is collected while another is written
        self._encoder = msgspec.json.Encoder()
        threading.Thread(target=self._write_batches, name="log", daemon=True).start()
        atexit.register(self.flush)

    def add(self, line: RequestLine) -> None:
        """Write the line with the next batch."""
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(line)
            if not self._any.is_set():
                self._any.set()

    def write(self, line: bytes) -> None:
        self._write(line + b"\n")

    debug = info = warning = error = critical = write
    """The methods of a logger, without the lock that structlog's own would hold."""

    def flush(self) -> None:
        """Write the lines that wait."""
        if self._waiting:
            self._write(b"")

    def _write(self, last: bytes) -> None:
        with self._writing, suppress(OSError):
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            rest = memoryview(self._encoder.encode_lines(batch) + last)
            while written := self._file.write(rest):  # a signal may end a write early
                rest = rest[written:]

    def _write_batches(self) -> None:
        while True:
            self._any.wait()
            time.sleep(BATCH_SECONDS)
            self._any.clear()
            self.flush()


def _may_colour() -> bool:
    """See no-color.org; on a terminal alone, since elsewhere colours are rubbish in the text."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Level:
    """From which level on lines are written; it may change."""

    def __init__(self, name: str) -> None:
        self.change(name)

    def change(self, name: str) -> None:
        self._least = LEVELS[name]

    def includes(self, method: str) -> bool:
        return LEVELS[method] >= self._least

    def __call__(self, _logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if not self.includes(method):
            raise structlog.DropEvent
        return event


class _RequestLog:
    """The file of the lines of requests, and their level; without a file, structlog has them as any other line."""

    file: _Lossy | None = None
    level = Level("info")


def log_request(line: RequestLine) -> None:
    """Log a request that was answered."""
    if _RequestLog.file is None:
        fields = asdict(line)
        del fields["timestamp"], fields["level"]
        log.info(**fields)
    elif _RequestLog.level.includes("info"):
        _RequestLog.file.add(line)


def configure_logging(level: str = "info", style: Literal["auto", "json", "console"] = "auto") -> Level:
    """Lines for people on a terminal, else JSON; always on standard error."""
    least = _RequestLog.level = Level(level)
    if style == "console" or (style == "auto" and sys.stderr.isatty()):
        factory: Callable[..., object] = structlog.PrintLoggerFactory(sys.stderr)
        stamp: structlog.typing.Processor = structlog.processors.TimeStamper("%H:%M:%S", utc=False)
        render: structlog.typing.Processor = structlog.dev.ConsoleRenderer(colors=_may_colour())
        _RequestLog.file = None
    else:
        lossy = _RequestLog.file = _Lossy(sys.stderr.buffer)

        def factory(*_: object) -> _Lossy:
            return lossy

        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        render = structlog.processors.JSONRenderer(serializer=_log_line)
    structlog.configure(
        processors=[
            least,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    return least
