"""What a job may use."""

from msgspec import Struct

from service.domain.errors import ServiceError


class Budgets(Struct, frozen=True):
    """What one round of a job may use. Looked at before each call of the model, so the last call may go beyond."""

    steps: int = 100
    """Calls of the model."""
    tokens: int = 4_000_000
    """In and out together."""
    cost_usd: float | None = 10.0
    """Counts only where the price is known; None or 0 is no limit."""
    minutes: float = 60.0
    """Of one attempt, on a clock that nobody sets: time in which the service was down is not the job's fault."""
    reply_tokens: int = 16_384


class BudgetExhausted(ServiceError):
    """The job has used up its steps, tokens, money or minutes before it was done."""

    code = "budget_exhausted"
