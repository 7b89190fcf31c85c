"""The ports and limits that replies are given with."""

import asyncio
from collections.abc import Callable
from importlib import import_module

from msgspec import Struct, field

from service.assistant.question import AnswerSettings
from service.domain.threads.replies import ModelFailure
from service.ports.model import Models
from service.ports.search_index import SearchIndex
from service.ports.tracer import NoTracer, Tracer
from service.workers.spending import Spending

NO_TRACER = NoTracer()

JUDGED_AT_ONCE = 8
"""Replies whose sentences are judged in turn, while the others wait. With fewer, a long one would keep short ones
waiting.
"""


class ReplyContext(Struct, frozen=True):
    """The ports and limits that replies are given with."""

    models: Models
    index: SearchIndex
    settings: AnswerSettings = AnswerSettings()
    concurrent_replies: int = 2
    grace_seconds: float = 0.0
    """How long a reply goes on without a reader that could come back; 0: not at all."""
    tracer: Tracer = NO_TRACER
    on_model_failure: Callable[[ModelFailure], None] | None = None
    """Receives the reason why a model failed, besides the log."""
    spending: Spending | None = None
    """The cost bounds of the sites; None for none."""
    takes_over: bool = True
    """Whether replies go on here whose process has ended, and may go on elsewhere once this one has."""
    seats: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(JUDGED_AT_ONCE))
    """As ``answer`` takes them."""


async def import_answer(announced: asyncio.Event | None) -> None:
    """Import what an answer takes, whose expressions take 40 ms to compile: on a thread, once the service has said that
    it listens. Replies wait for it; the start and the event loop do not.
    """
    if announced is not None:
        await announced.wait()
    await asyncio.to_thread(import_module, "service.workers.replies.reply_events")
