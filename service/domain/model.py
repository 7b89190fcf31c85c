"""A model's reply and its cost, as events record them."""

import re
from typing import TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

MAX_ARGUMENT_DEPTH = 100
"""Limit for the nesting of a tool call's arguments. Parsers fail at some depth, each at another: ours at about a
thousand, a provider's library before that.
"""
_BRACKETS = re.compile(r'[][{}]|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""Brackets, and texts, which may have others in them."""


def is_builtin(model: str) -> bool:
    """Return whether a model by this name is part of the service, which needs no key."""
    return model.startswith("builtin/")


class ToolCall(Struct, frozen=True):
    """A tool that the model wants used."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it: perhaps not JSON at all. Read it with ``decoded_arguments``."""


class ReplyMemory(Struct, frozen=True):
    """Parts of a reply that its provider wants back with it: thoughts, signatures. No one but the provider reads them.

    They go back to the model of ``owner`` alone: another one would refuse them, and they may be what someone thought.
    """

    owner: str
    """Names the provider, its address and the model; compared, never read."""
    data: str
    """Opaque: packed by the adapter that reads it."""
    bytes: int
    """The size that it adds to a prompt."""


def decoded_arguments(text: str, kind: type[T]) -> T:
    """Return the arguments of a tool call as a value.

    Raises msgspec.DecodeError: not JSON, or nested too deep; its ValidationError: JSON of another kind.
    """
    if _depth(text) > MAX_ARGUMENT_DEPTH:
        raise msgspec.DecodeError(f"it is nested deeper than {MAX_ARGUMENT_DEPTH} levels")
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeEncodeError:
        raise msgspec.DecodeError("it has characters that are no text") from None


def _depth(text: str) -> int:
    """Return how deep JSON nests: at most so deep, since what is not JSON may close nothing."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens and cost of one or more model calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the price is not known; 0.0 for the builtin model."""

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(known) if known else None,
        )
