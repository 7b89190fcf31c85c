"""Cost bounds: what the replies of one site may cost in a day of UTC, and what they did.

Each day of a site is a stream of its own. A reply reserves what each call of its model will probably cost, and
the sum of what was reserved and what was recorded is compared with the bound: so a hundred replies at once cannot pass
it together, nor those of several processes, since each append names the version that it was decided on. What a reply
did cost takes the place of what it reserved when it ends; of one whose process died the reservation stays.
"""

from datetime import UTC, datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import ServiceError
from service.domain.events import Event


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


class CostReserved(Event, frozen=True, tag="cost-reserved"):
    """One more call of the reply's models may be made."""

    reply_id: str
    usd: float
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
    recorded: int = 0
    """Replies whose cost is known."""
    recorded_usd: float = 0.0

    @property
    def usual_usd(self) -> float:
        """Return the mean cost of the replies so far."""
        return self.recorded_usd / self.recorded if self.recorded else 0.0

    def is_over(self, bounds: CostBounds, usd: float, *, is_public: bool) -> bool:
        """Return whether a reply of this cost does not fit the bounds. The first of a day always fits."""
        pairs = [(self.usd, bounds.site), (self.public_usd, bounds.public if is_public else 0.0)]
        return any(bound and spent and spent + usd > bound for spent, bound in pairs)


def day_of(domain: str, now: datetime) -> str:
    """Return the id of a site's day."""
    return f"{now.astimezone(UTC):%Y-%m-%d}.{domain}"


def decide(command: SpendingCommand, state: Spending) -> list[SpendingEvent]:
    """Return the events of a command. Raise CostBoundReached."""
    is_reserved = any(reply_id == command.reply_id for reply_id, _ in state.reserved)
    match command:
        case ReserveCost(reply_id=reply_id, is_public=is_public, now=now):
            usd = command.usd if is_reserved else max(command.usd, state.usual_usd)
            if state.is_over(command.bounds, usd, is_public=is_public):
                raise CostBoundReached("The cost limit of the day is reached.")
            return [CostReserved(reply_id, usd, is_public, reserved_at=now)]
        case RecordCost(reply_id=reply_id, usd=usd, is_public=is_public, now=now):
            return [CostRecorded(reply_id, usd, is_public, recorded_at=now)] if usd or is_reserved else []
        case _:
            assert_never(command)


def evolve(state: Spending, event: SpendingEvent) -> Spending:
    match event:
        case CostReserved(reply_id=reply_id, usd=usd):
            return replace(_with(state, usd, is_public=event.is_public), reserved=(*state.reserved, (reply_id, usd)))
        case CostRecorded(reply_id=reply_id, usd=usd):
            before = sum(held for held_by, held in state.reserved if held_by == reply_id)
            return replace(
                _with(state, usd - before, is_public=event.is_public),
                reserved=tuple(one for one in state.reserved if one[0] != reply_id),
                recorded=state.recorded + 1,
                recorded_usd=state.recorded_usd + usd,
            )
        case _:
            assert_never(event)


def _with(state: Spending, usd: float, *, is_public: bool) -> Spending:
    public_usd = state.public_usd + (usd if is_public else 0.0)
    return replace(state, usd=state.usd + usd, public_usd=public_usd)
