"""The payment for questions that a site is asked without a key."""

from typing import Literal, TypeAlias

from service.domain.access.spending import CostBounds
from service.domain.errors import ServiceError
from service.ports.model import Model, Models
from service.views.sites import PaymentView

Answering: TypeAlias = Literal["model", "quotes"]

NEEDS_PRICE = (
    "Give its price with input_usd_per_million_tokens and output_usd_per_million_tokens in its [models] section, 0 if"
    " it costs nothing."
)
NEEDS_BOUND = "Set a cost limit with public_cost_usd_day in [limits], or max_cost_usd_day in [assistant]."


async def payment_of(models: Models, bounds: CostBounds) -> PaymentView:
    """Return who pays for a public site: for its replies, and for planning their searches. Raise what ``Model.price``
    raises.
    """
    planner = models.for_planning()
    payment = await _payment_of(models.for_assistant(), bounds)
    if payment.problem or planner is None:
        return payment
    planning = await _payment_of(planner, bounds)
    return planning if planning.problem or not payment.cost_bound_usd_day else payment


async def _payment_of(model: Model, bounds: CostBounds) -> PaymentView:
    price, bound = await model.price(), bounds.allow(is_public=True)
    if price is None:
        return PaymentView(model.name, bound, f"The price of {model.name} is not known, so no cost limit holds.")
    if price.is_free:
        return PaymentView(model.name, 0.0, "")
    return PaymentView(
        model.name, bound, "" if bound else f"{model.name} costs money, and there is no cost limit a day."
    )


async def answering(models: Models, bounds: CostBounds, *, is_public: bool) -> Answering:
    """Return who writes the answers: a language model, or no one, where the builtin model quotes passages.

    ``is_public``: to callers without a key, for whom a model is used only where its cost is bounded.
    """
    if models.for_assistant().name == models.builtin_for_assistant().name:
        return "quotes"
    if not is_public:
        return "model"
    try:
        return "quotes" if (await payment_of(models, bounds)).problem else "model"
    except ServiceError:  # a model that the library does not know: it is asked, and fails
        return "model"


def remedy_of(payment: PaymentView) -> str:
    """Return all that a public site needs before a model answers there, in words."""
    needed = [NEEDS_PRICE] if _needs_price(payment) else []
    return " ".join([*needed, NEEDS_BOUND] if not payment.cost_bound_usd_day else needed)


def settings_to_paste(payment: PaymentView) -> str:
    """Return the lines of the settings file that a public site needs before a model answers there; empty for none.

    A price is left to fill in: one that is too low would let the bound be passed.
    """
    if not payment.problem:
        return ""
    lines = []
    if _needs_price(payment):
        lines = [
            f"[models.NAME]  # the section of {payment.model}; PRICE: US dollars, 0 if it costs nothing",
            "input_usd_per_million_tokens = PRICE",
            "output_usd_per_million_tokens = PRICE",
        ]
    if not payment.cost_bound_usd_day:
        lines += [
            *([""] if lines else []),
            "[limits]",
            "public_cost_usd_day = 5.0  # US dollars a day for each public site, for questions without a key",
        ]
    return "\n".join(lines)


def _needs_price(payment: PaymentView) -> bool:
    return "price" in payment.problem


def payer(payment: PaymentView) -> str:
    """Return who pays, in words."""
    if payment.problem:
        return f"no one: the builtin model answers. {payment.problem} {remedy_of(payment)}"
    if not payment.cost_bound_usd_day:
        return f"no one: {payment.model} costs nothing"
    return (
        f"you: {payment.model}, up to {payment.cost_bound_usd_day:.2f} USD a day (UTC); past that the builtin model"
        " answers"
    )
