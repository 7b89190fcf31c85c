"""What the service logs: lines for people on a terminal, else JSON."""

import logging
import sys
from collections.abc import Callable

import msgspec
import structlog

log = structlog.get_logger()


class _KindsOnly(logging.Handler):
    """What aiohttp logs of requests that it cannot read quotes them, keys included: only the kind of error is told."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        log.warning("request not read", kind=type(error).__name__ if error is not None else "unknown")


def http_logger() -> logging.Logger:
    logger = logging.Logger("docsmith.http")
    logger.addHandler(_KindsOnly())
    return logger


def _log_line(event: object, **_: object) -> bytes:
    """A line for each request: worth the fast encoder. What it does not know is told as text."""
    return msgspec.json.encode(event, enc_hook=repr)


def configure_logging() -> None:
    """Lines for people on a terminal, else JSON; always on standard error."""
    stamp: structlog.typing.Processor = structlog.processors.TimeStamper(fmt="iso", utc=True)
    render: structlog.typing.Processor = structlog.processors.JSONRenderer(serializer=_log_line)
    factory: Callable[..., object] = structlog.BytesLoggerFactory(sys.stderr.buffer)
    if sys.stderr.isatty():
        factory = structlog.PrintLoggerFactory(sys.stderr)
        stamp, render = structlog.processors.TimeStamper("%H:%M:%S", utc=False), structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
