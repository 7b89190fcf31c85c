"""The size of a prompt, by its model's window; and a prompt that is too long, made again with half of that.

A model's window may be unknown, or told wrong: only its provider knows whether a prompt fits.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import ServiceError
from service.ports.model import CONTEXT_WINDOW_EXCEEDED, MODEL_SENT_NOTHING, REQUEST_TOO_LARGE, ModelWaiting

T = TypeVar("T")
LEAST_REPLY_TOKENS = 256
_HALVINGS = {CONTEXT_WINDOW_EXCEEDED: 99, REQUEST_TOO_LARGE: 99, MODEL_SENT_NOTHING: 1}
"""Failures after which a smaller prompt may pass, and how often it is tried at most."""


class ContextBudget(Struct, frozen=True):
    prompt_tokens: int | None = None
    """Tokens for the prompt; None where the window is unknown."""
    reply_tokens: int = 4_096
    shrink_level: int = 0
    """How many times a prompt was found too long: each halves what it may hold, and the reply with it, since providers
    count both.
    """

    def smaller(self) -> "ContextBudget":
        reply_tokens = min(self.reply_tokens, max(LEAST_REPLY_TOKENS, self.reply_tokens // 2))
        return replace(self, reply_tokens=reply_tokens, shrink_level=self.shrink_level + 1)


def context_budget(window_tokens: int | None, reply_tokens: int, shrink_level: int = 0) -> ContextBudget:
    """Return the budget for a prompt. ``reply_tokens``: the limit for a reply. ``window_tokens``: None for no limit."""
    if window_tokens is None:
        return ContextBudget(None, reply_tokens, shrink_level)
    reply_tokens = min(reply_tokens, max(LEAST_REPLY_TOKENS, window_tokens // 4))
    budget = ContextBudget(window_tokens - reply_tokens, reply_tokens)
    for _ in range(shrink_level):
        budget = budget.smaller()
    return budget


async def reply_within(
    budget: ContextBudget, reply: Callable[[ContextBudget], AsyncGenerator[T, None]], *, halvings: int
) -> AsyncGenerator[tuple[T, ContextBudget], None]:
    """Yield what ``reply`` yields, with the budget that it was given.

    It is called again with half the budget, ``halvings`` times at most, when its prompt is found too long before it
    yields anything but a wait. When it yields nothing then, its prompt cannot be shortened.

    Raises:
        Invalid: the prompt does not fit (``context_window_exceeded``), or is too large for the provider
            (``request_too_large``).
        Unavailable: the provider sends nothing, to a smaller prompt neither (``model_sent_nothing``).
        ServiceError: as ``reply`` raises it.
    """
    too_long: ServiceError | None = None
    for halved in range(halvings + 1):
        has_begun = False
        try:
            async with aclosing(reply(budget)) as items:
                async for item in items:
                    has_begun |= not isinstance(item, ModelWaiting)
                    yield item, budget
        except ServiceError as error:
            if _HALVINGS.get(error.code, 0) <= halved or has_begun:
                raise
            too_long, budget = error, budget.smaller()
        else:
            if has_begun or too_long is None:
                return
            break
    assert too_long is not None
    raise too_long
