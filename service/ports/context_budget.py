"""The size of a prompt, by its model's window; and a prompt that is too long, made again with half of that.

A model's window may be unknown, or told wrong: only its provider knows whether a prompt fits.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import ServiceError
from service.ports.model import CONTEXT_WINDOW_EXCEEDED, ModelWaiting

T = TypeVar("T")


class ContextBudget(Struct, frozen=True):
    prompt_tokens: int | None = None
    """Tokens for the prompt; None where the window is unknown."""
    reply_tokens: int = 4_096
    shrink_level: int = 0
    """How many times a prompt was found too long: each halves what it may hold."""

    def smaller(self) -> "ContextBudget":
        return replace(self, shrink_level=self.shrink_level + 1)


def context_budget(window_tokens: int | None, reply_tokens: int, shrink_level: int = 0) -> ContextBudget:
    """Return the budget for a prompt. ``reply_tokens``: the limit for a reply. ``window_tokens``: None for no limit."""
    if window_tokens is None:
        return ContextBudget(None, reply_tokens, shrink_level)
    reply_tokens = min(reply_tokens, max(256, window_tokens // 4))
    return ContextBudget(window_tokens - reply_tokens, reply_tokens, shrink_level)


async def reply_within(
    budget: ContextBudget, reply: Callable[[ContextBudget], AsyncGenerator[T, None]], *, halvings: int
) -> AsyncGenerator[tuple[T, ContextBudget], None]:
    """Yield what ``reply`` yields, with the budget that it was given.

    It is called again with half the budget, ``halvings`` times at most, when its prompt is found too long before it
    yields anything but a wait. When it yields nothing then, its prompt cannot be shortened.

    Raises:
        Invalid: the prompt does not fit (``context_window_exceeded``).
        ServiceError: as ``reply`` raises it.
    """
    too_long: ServiceError | None = None
    for _ in range(halvings + 1):
        has_begun = False
        try:
            async with aclosing(reply(budget)) as items:
                async for item in items:
                    has_begun |= not isinstance(item, ModelWaiting)
                    yield item, budget
        except ServiceError as error:
            if error.code != CONTEXT_WINDOW_EXCEEDED or has_begun:
                raise
            too_long, budget = error, budget.smaller()
        else:
            if has_begun or too_long is None:
                return
            break
    assert too_long is not None
    raise too_long
