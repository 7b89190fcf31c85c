"""Cost bounds while replies are given: a reply past its site's bound is the builtin model's, and says so.

Before each call of a reply's model, what it costs at the most is reserved: the bytes of its prompt as tokens, and the
limit of its reply, thoughts included. What does not fit waits for other replies to end and give back what they did not
use; then it may write less, or is shown less; then the builtin model answers. Each call is metered, one that is cut off
as well, since a provider charges for that, too: where it does not say how much, all that was reserved. At the next call
and at the end the cost takes the place of what was reserved (``domain.access.spending``).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from eventstore import CommandId, EventStore, execute
from service.domain.access.spending import (
    CostBoundReached,
    CostBounds,
    RecordCost,
    ReserveCost,
    day_of,
)
from service.domain.errors import Invalid, Unavailable
from service.domain.model import Usage
from service.ports.model import (
    CONTEXT_WINDOW_EXCEEDED,
    AssistantMessage,
    Model,
    ModelAround,
    ModelChunk,
    ModelEnd,
    ModelRequest,
    Models,
    ModelText,
    Price,
    open_reply,
)
from service.runtime.system import now
from service.streams import SPENDING
from service.workers.retry import retry_while_unavailable

log = structlog.get_logger()

RECORD_SECONDS = 5.0
WAIT_SECONDS = 10.0
"""How long a reply waits at most for others to end, before it is the builtin model's."""
LOOK_SECONDS = 0.5
"""After which it looks again: another process's replies end unseen."""
LEAST_OUTPUT_TOKENS = 1_000
"""A call that may write less is not made, unless its own limit is lower."""
MESSAGE_TOKENS, REQUEST_TOKENS = 16, 256
"""Tokens that a provider may add to a message and to a request, at the most."""
ROUNDING = 1e-6
SMALL_PROMPT_BYTES = 8_000
MAX_SHORTER = 2
"""The most times that a prompt is made shorter, by half, while there is money left for that alone."""
NOTICE = (
    "The language model of this site has no budget left for today, so these are the passages of the documentation that"
    " fit best.\n\n"
)


class PaidReply(Struct, frozen=True):
    """A reply that the bounds are about."""

    domain: str
    reply_id: str
    is_public: bool
    usd: float = 0.0
    """Cost of the calls that had ended when a process died that gave it."""
    own_bound: float = 0.0
    """That of the site's owner, in US dollars a day; 0 for none."""
    organization_id: str = ""
    """The organization of the site, whose sites have a bound together; empty for none."""


async def _none(_domain: str) -> tuple[float, str]:
    return 0.0, ""


class Spending:
    """The cost bounds of all sites. ``bounds`` may change while replies are under way."""

    def __init__(
        self,
        store: EventStore,
        bounds: CostBounds,
        bound_of: Callable[[str], Awaitable[tuple[float, str]]] = _none,
        *,
        organization_usd: float = 0.0,
    ) -> None:
        """``bound_of`` returns the bound that the owner of a site has set, by its domain, 0 for none, and the site's
        organization. ``organization_usd``: what the replies of all sites of an organization may cost in a day; 0 for
        no bound.
        """
        self._store, self.bounds, self.bound_of = store, bounds, bound_of
        self.organization_usd = organization_usd
        self._has_warned = False
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Lock] = WeakValueDictionary()
        """Replies of a site reserve one after the other: the first to come waits for money, the others for it."""
        self._settled = asyncio.Event()

    def concerns(self, *, is_public: bool, own_bound: float = 0.0) -> bool:
        """Return whether a reply may be bounded at all."""
        return is_public or self.bounds.site > 0 or own_bound > 0 or self.organization_usd > 0

    def allow(self, reply: PaidReply) -> float:
        """Return the bound on a reply, 0 where there is none. An owner lowers a bound on replies without a key, and
        cannot stand in for it: the installation pays.
        """
        bound = self.bounds.allow(is_public=reply.is_public)
        if bound or not reply.is_public:
            return self.bounds.within(reply.own_bound).allow(is_public=reply.is_public)
        return 0.0

    @asynccontextmanager
    async def budget(self, reply: PaidReply, models: Models) -> AsyncIterator["ReplyBudget"]:
        """Give the budget of a reply; what its calls cost is recorded when the block is left, however that is."""
        budget = ReplyBudget(self, reply, models)
        try:
            yield budget
        finally:
            if budget.asked_on:
                recording = asyncio.create_task(self._record(reply, budget.asked_on, budget.usd))
                # The reply may have been cancelled. What is not recorded in time stays reserved
                await asyncio.wait([recording], timeout=RECORD_SECONDS)

    async def reserve(
        self, reply: PaidReply, usd: float, day: str, *, least_usd: float | None = None, wait_seconds: float = 0.0
    ) -> float:
        """Reserve all that a reply has cost and may cost, and return that: less, from ``least_usd`` on, where all does
        not fit after the wait. Raise CostBoundReached.
        """
        turn = self._turns.setdefault((reply.domain, reply.is_public), asyncio.Lock())
        clock = asyncio.get_running_loop().time
        until = clock() + wait_seconds
        try:
            async with asyncio.timeout_at(until):
                await turn.acquire()
        except TimeoutError:
            raise CostBoundReached from None
        try:
            least = usd
            while True:
                settled = self._settled
                try:
                    return await self._reserve(reply, usd, day, least)
                except CostBoundReached as error:
                    if error.may_fit and (left := until - clock()) > 0:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(min(left, LOOK_SECONDS)):
                                await settled.wait()
                    elif least_usd is not None and least > least_usd:
                        least = least_usd
                    else:
                        raise
        finally:
            turn.release()

    async def _reserve(self, reply: PaidReply, usd: float, day: str, least_usd: float) -> float:
        """Reserve for the organization, then for the site: what the one gives and the other does not is given back as
        the reply ends.
        """
        if self.organization_usd and reply.organization_id:
            bounds = CostBounds(site=self.organization_usd)
            usd = await self._reserve_of(_of_organization(day, reply), reply, usd, bounds, least_usd)
        return await self._reserve_of(day, reply, usd, self.bounds.within(reply.own_bound), min(usd, least_usd))

    async def _reserve_of(self, day: str, reply: PaidReply, usd: float, bounds: CostBounds, least_usd: float) -> float:
        command = ReserveCost(reply.reply_id, usd, least_usd, reply.is_public, bounds, now())
        done = await execute(self._store, SPENDING, day, command, command_id=CommandId())
        return done.state.held_by(reply.reply_id)

    def warn(self, reason: str, model: str) -> None:
        """Log once why a model is not called for callers without a key, or why a bound on it does not hold."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("no cost bound holds for the assistant's model", model=model, reason=reason)

    async def _record(self, reply: PaidReply, day: str, usd: float) -> None:
        command = RecordCost(reply.reply_id, usd, reply.is_public, now())
        days = [day, *([_of_organization(day, reply)] if reply.organization_id else [])]
        for each in days:
            done = partial(execute, self._store, SPENDING, each, command, command_id=CommandId())
            await retry_while_unavailable(done)
        self._settled.set()
        self._settled = asyncio.Event()


def _of_organization(day: str, reply: PaidReply) -> str:
    """Return the id of a day of all sites of an organization. No site's domain begins with the sign."""
    return f"{day.partition('.')[0]}._{reply.organization_id}"


class Permit(Struct, frozen=True):
    """One call that may be made."""

    request: ModelRequest
    price: Price | None = None
    """None where nothing is counted."""
    usd: float = 0.0
    """The most that it costs."""


class ReplyBudget:
    """The budget of one reply, and its cost so far."""

    def __init__(self, spending: Spending, reply: PaidReply, models: Models) -> None:
        self._spending, self._reply = spending, reply
        self._model, self._builtin = models.for_assistant(), models.builtin_for_assistant()
        self._reserving = asyncio.Lock()
        self._under_way = 0.0
        """The most that the calls under way cost."""
        self._shorter = 0
        self.calls = 0
        self.usd = reply.usd
        self.asked_on = ""
        """The day of whose bound it has asked for a part; empty for none."""

    @property
    def model(self) -> Model:
        """Return the model that answers; past the bound it answers as the builtin one."""
        return _BoundedModel(self, self._model, self._builtin)

    def within(self, model: Model) -> Model:
        """Return another model that the reply calls: past the bound it is unavailable."""
        return _BoundedModel(self, model, None)

    async def permit(self, model: Model, request: ModelRequest, *, answers: bool) -> Permit | None:
        """Return the call as it may be made, perhaps with a lower limit of its reply; None for one that may not.

        ``answers``: it waits for money, and Invalid (``context_window_exceeded``) is raised where a shorter prompt may
        fit.
        """
        is_public = self._reply.is_public
        bound = self._spending.allow(self._reply)
        if not bound and not is_public and not self._spending.organization_usd:
            return Permit(request)
        price = await model.price()
        if price is None:  # a bound would not hold
            self._spending.warn("its price is not known", model.name)
            return None if is_public else Permit(request)
        if price.is_free:
            return Permit(request)
        if not bound and is_public:
            self._spending.warn("it costs money, and there is no cost limit", model.name)
            return None
        async with self._reserving:
            return await self._reserved(request, price, answers=answers)

    async def _reserved(self, request: ModelRequest, price: Price, *, answers: bool) -> Permit | None:
        read, most = input_tokens(request), request.max_output_tokens
        if request.continuation is not None and not self.calls:
            self.usd += price.of(read, len(request.continuation.text.encode()))  # by a process that died
        before = self.usd + self._under_way
        least = min(most, LEAST_OUTPUT_TOKENS)
        day = self.asked_on = self.asked_on or day_of(self._reply.domain, now())
        try:
            held = await self._spending.reserve(
                self._reply, before + price.of(read, most), day, least_usd=before + price.of(read, least),
                wait_seconds=WAIT_SECONDS if answers and not self._shorter else 0.0,
            )  # fmt: skip
        except CostBoundReached as error:
            is_long = read > SMALL_PROMPT_BYTES and self._shorter < MAX_SHORTER
            if answers and is_long and before + price.of(read / 2**MAX_SHORTER, least) <= error.room:
                self._shorter += 1
                raise Invalid("A shorter prompt may fit the cost limit.", code=CONTEXT_WINDOW_EXCEEDED) from None
            return None
        usd = held - before
        if price.output_usd:
            most = min(most, max(1, int((usd - price.of(read, 0)) * 1_000_000 / price.output_usd + ROUNDING)))
        self._under_way += usd
        return Permit(replace(request, max_output_tokens=most, is_cut=True), price, usd)

    async def metered(self, model: Model, permit: Permit) -> AsyncGenerator[ModelChunk, None]:
        """Call the model, and add what the call costs."""
        self.calls += 1
        known: list[Usage] = []
        request, report = permit.request, permit.request.on_usage

        def on_usage(usage: Usage) -> None:
            known.append(usage)
            if report is not None:
                report(usage)

        has_begun = False
        try:
            call = open_reply(model, replace(request, on_usage=on_usage))
            price, usd = permit.price, permit.usd
            del request, permit  # a prompt is large, and the model need not keep it
            async with call as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, ModelText):
                        has_begun = True
                    elif isinstance(chunk, ModelEnd):
                        known.append(chunk.usage)
                    yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            has_begun = True  # the provider charges for what it has read
            raise
        finally:
            self._under_way -= usd
            if price is not None and known:
                self.usd += _cost(known, price)
            elif price is not None and has_begun:
                self.usd += usd


class _BoundedModel(ModelAround):
    def __init__(self, budget: ReplyBudget, model: Model, builtin: Model | None) -> None:
        super().__init__(model)
        self._budget, self._builtin = budget, builtin

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        begun = request.continuation.text if request.continuation is not None else ""
        answers = self._builtin is not None
        permit = None if NOTICE in begun else await self._budget.permit(self._model, request, answers=answers)
        if permit is not None:
            call = self._budget.metered(self._model, permit)
            del request, permit
            async with aclosing(call) as metered:
                async for chunk in metered:
                    yield chunk
            return
        if self._builtin is None or request.grounding is None or (begun and NOTICE not in begun):
            raise Unavailable(str(CostBoundReached()), code=CostBoundReached.code)
        if request.continuation is not None:
            request = replace(request, continuation=replace(request.continuation, text=begun.replace(NOTICE, "", 1)))
        else:
            yield ModelText(NOTICE if not self._budget.calls else f"\n\n{NOTICE}")
        async with open_reply(self._builtin, request) as chunks:
            async for chunk in chunks:
                yield chunk


def input_tokens(request: ModelRequest) -> int:
    """Return the tokens of a request at the most: no tokenizer makes more of a text than it has bytes."""
    size = REQUEST_TOKENS + sum(len(msgspec.json.encode(tool)) for tool in request.tools)
    for message in request.messages:
        size += MESSAGE_TOKENS + len(message.text.encode("utf-8", "surrogatepass"))
        if isinstance(message, AssistantMessage):
            size += sum(len(msgspec.json.encode(call)) for call in message.tool_calls)
            size += message.memory.bytes if message.memory is not None else 0
    if request.continuation is not None:
        size += len((request.continuation.text + request.continuation.instruction).encode("utf-8", "surrogatepass"))
    return size


def _cost(known: list[Usage], price: Price) -> float:
    return sum(price.of(one.input_tokens, one.output_tokens) if one.cost_usd is None else one.cost_usd for one in known)
