"""How much of everything a prompt may hold, by the model's window.

The limits of ``context`` are made for a window of 128,000 tokens; for a smaller one all of them shrink alike. What a
model's window is may be unknown or reported wrong, so a prompt that the provider finds too long is asked once more with
half of it, and again.
"""

from msgspec import Struct

CHARACTERS_PER_TOKEN = 2.5
"""For an estimate on the safe side: English prose has about four, code three, Chinese one or two."""
FULL_CHARACTERS = 300_000
"""All limits together: passages, pages and selections, the earlier turns, and the results of each tool call."""
MAX_SHRINK_LEVEL = 3
"""Halvings until it is said that it does not fit."""


class ContextBudget(Struct, frozen=True):
    """A part, 0 .. 1, of what a prompt usually may hold, and how long the reply may be."""

    part: float = 1.0
    reply_tokens: int = 4_096

    def of(self, characters: int, *, least: int = 0) -> int:
        return max(least, int(characters * self.part))

    def smaller(self) -> "ContextBudget":
        return ContextBudget(self.part / 2, self.reply_tokens)


def context_budget(window_tokens: int | None, reply_tokens: int) -> ContextBudget:
    """Return the budget for a prompt. ``reply_tokens``: the limit for a reply. ``window_tokens``: None for no limit."""
    if window_tokens is None:
        return ContextBudget(1.0, reply_tokens)
    reply_tokens = min(reply_tokens, max(256, window_tokens // 4))
    characters = (window_tokens - reply_tokens) * CHARACTERS_PER_TOKEN
    return ContextBudget(min(1.0, max(0.01, characters / FULL_CHARACTERS)), reply_tokens)
