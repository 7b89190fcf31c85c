"""Limits for a job's work."""

from msgspec import Struct

from service.domain.errors import ServiceError


class Budgets(Struct, frozen=True):
    """Limits for one round of a job. Checked before each call of the model, so the last call may exceed them; but for
    the minutes, at whose end a call is given up.
    """

    steps: int = 100
    """Calls of the model."""
    tokens: int = 4_000_000
    """In and out together."""
    cost_usd: float | None = 10.0
    """Counts only where the price is known; None or 0 is no limit."""
    minutes: float = 60.0
    """Minutes of one attempt, by a monotonic clock: time in which the service was down does not count."""
    reply_tokens: int = 16_384


class BudgetExhausted(ServiceError):
    """The job has used up its steps, tokens, money or minutes before it was done."""

    code = "budget_exhausted"
