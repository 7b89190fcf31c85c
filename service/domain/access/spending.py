"""Cost bounds: what the replies of one site may cost in a day of UTC, and what they did.

Each day of a site is a stream of its own. A reply reserves what each call of its model costs at the most, and
the sum of what was reserved and what was recorded is compared with the bound: so a hundred replies at once cannot pass
it together, nor those of several processes, since each append names the version that it was decided on. What its
calls did cost takes the place of what it reserved with its next call and when it ends; of one whose process died the
reservation stays.
"""

import math
from datetime import UTC, datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import ServiceError
from service.domain.events import Event

SMALLEST_USD = 1e-9
"""Less is an error of the sums."""


class CostBounds(Struct, frozen=True):
    """US dollars a day; 0 for no bound."""

    site: float = 0.0
    """For all replies of a site."""
    public: float = 0.0
    """For the replies of a site that were asked for without a key."""

    def allow(self, *, is_public: bool) -> float:
        """Return the lower of the bounds on such a reply; 0 where there is none."""
        bounds = [bound for bound in (self.site, self.public if is_public else 0.0) if bound]
        return min(bounds, default=0.0)

    def within(self, own: float) -> "CostBounds":
        """Return these bounds for a site whose owner has set one, too; 0 for none. The lower one counts."""
        return replace(self, site=min(bound for bound in (self.site or own, own or self.site)))


class CostBoundReached(ServiceError):
    """The day's money is spent, or reserved by replies under way."""

    code = "cost_bound_reached"

    def __init__(self, *, may_fit: bool = False, room: float = 0.0) -> None:
        super().__init__("The cost limit of the day is reached.")
        self.may_fit = may_fit
        """Whether it may fit once other replies, which are under way, have ended."""
        self.room = room
        """The most that the reply may cost in all, in US dollars."""


class CostReserved(Event, frozen=True, tag="cost-reserved"):
    """One more call of the reply's models may be made."""

    reply_id: str
    usd: float
    """What is reserved with it; less than zero where the calls before cost less than was reserved for them."""
    is_public: bool
    reserved_at: datetime


class CostRecorded(Event, frozen=True, tag="cost-recorded"):
    """The cost of a reply, in the place of what it reserved."""

    reply_id: str
    usd: float
    is_public: bool
    recorded_at: datetime


SpendingEvent = CostReserved | CostRecorded


class ReserveCost(Struct, frozen=True):
    reply_id: str
    usd: float
    """All that the reply has cost, and will cost at the most with this call."""
    least_usd: float
    """Where that does not fit: what does, but not less than this."""
    is_public: bool
    bounds: CostBounds
    now: datetime


class RecordCost(Struct, frozen=True):
    reply_id: str
    usd: float
    is_public: bool
    now: datetime


SpendingCommand = ReserveCost | RecordCost


class Spending(Struct, frozen=True):
    """One site's day."""

    usd: float = 0.0
    """With what is reserved."""
    public_usd: float = 0.0
    """The part of it that was asked for without a key."""
    reserved: tuple[tuple[str, float], ...] = ()
    """By the replies under way."""

    def room(self, bounds: CostBounds, *, is_public: bool) -> float:
        """Return what is left of the bounds on such a reply."""
        pairs = [(self.usd, bounds.site), (self.public_usd, bounds.public if is_public else 0.0)]
        return min((bound - spent for spent, bound in pairs if bound), default=math.inf)

    def is_holding(self, reply_id: str) -> bool:
        return any(held_by == reply_id for held_by, _ in self.reserved)

    def held_by(self, reply_id: str) -> float:
        return sum(held for held_by, held in self.reserved if held_by == reply_id)


def day_of(domain: str, now: datetime) -> str:
    """Return the id of a site's day."""
    return f"{now.astimezone(UTC):%Y-%m-%d}.{domain}"


def decide(command: SpendingCommand, state: Spending) -> list[SpendingEvent]:
    """Return the events of a command. Raise CostBoundReached."""
    held = state.held_by(command.reply_id)
    match command:
        case ReserveCost(reply_id=reply_id, is_public=is_public, now=now):
            room = state.room(command.bounds, is_public=is_public) + held
            if command.least_usd > room + SMALLEST_USD:
                others = sum(usd for _, usd in state.reserved) - held
                raise CostBoundReached(may_fit=command.least_usd <= room + others, room=room)
            return [CostReserved(reply_id, min(command.usd, room) - held, is_public, reserved_at=now)]
        case RecordCost(reply_id=reply_id, usd=usd, is_public=is_public, now=now):
            return (
                [CostRecorded(reply_id, usd, is_public, recorded_at=now)] if usd or state.is_holding(reply_id) else []
            )
        case _:
            assert_never(command)


def evolve(state: Spending, event: SpendingEvent) -> Spending:
    match event:
        case CostReserved(reply_id=reply_id, usd=usd):
            return replace(_with(state, usd, is_public=event.is_public), reserved=(*state.reserved, (reply_id, usd)))
        case CostRecorded(reply_id=reply_id, usd=usd):
            return replace(
                _with(state, usd - state.held_by(reply_id), is_public=event.is_public),
                reserved=tuple(one for one in state.reserved if one[0] != reply_id),
            )
        case _:
            assert_never(event)


def _with(state: Spending, usd: float, *, is_public: bool) -> Spending:
    public_usd = state.public_usd + (usd if is_public else 0.0)
    return replace(state, usd=state.usd + usd, public_usd=public_usd)
