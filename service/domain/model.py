"""A model's reply and its cost, as events record them."""

from msgspec import Struct


class ToolCall(Struct, frozen=True):
    """A tool that the model wants used."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it: perhaps not JSON at all."""


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
