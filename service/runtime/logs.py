"""Set up logging: lines for people on a terminal, else JSON."""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Literal, cast

import msgspec
import structlog

log = structlog.get_logger()

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


class _Lossy:
    """A file that lines are dropped for while it takes none: a disk that is full of logs must not stop the service.

    Without a buffer, where a line that failed would wait and make the next one fail.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file: BinaryIO = getattr(file, "raw", file)

    def write(self, line: bytes) -> None:
        with suppress(OSError):
            self._file.write(line)

    def flush(self) -> None:
        """Nothing waits."""


def _may_colour() -> bool:
    """See no-color.org; on a terminal alone, since elsewhere colours are rubbish in the text."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Level:
    """From which level on lines are written; it may change."""

    def __init__(self, name: str) -> None:
        self.change(name)

    def change(self, name: str) -> None:
        self._least = LEVELS[name]

    def __call__(self, _logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if LEVELS[method] < self._least:
            raise structlog.DropEvent
        return event


def configure_logging(level: str = "info", style: Literal["auto", "json", "console"] = "auto") -> Level:
    """Lines for people on a terminal, else JSON; always on standard error."""
    least = Level(level)
    stamp: structlog.typing.Processor = structlog.processors.TimeStamper(fmt="iso", utc=True)
    render: structlog.typing.Processor = structlog.processors.JSONRenderer(serializer=_log_line)
    factory: Callable[..., object] = structlog.BytesLoggerFactory(cast("BinaryIO", _Lossy(sys.stderr.buffer)))
    if style == "console" or (style == "auto" and sys.stderr.isatty()):
        factory = structlog.PrintLoggerFactory(sys.stderr)
        stamp = structlog.processors.TimeStamper("%H:%M:%S", utc=False)
        render = structlog.dev.ConsoleRenderer(colors=_may_colour())
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
