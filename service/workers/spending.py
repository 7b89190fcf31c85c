"""Cost bounds while replies are given: a reply past its site's bound is the builtin model's, and says so.

Before each call of a reply's model its probable cost is reserved; where that does not fit, the builtin model answers.
Each call is metered, one that is cut off as well, since a provider charges for that, too. At the end the cost takes the
place of what was reserved (``domain.access.spending``).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial

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
from service.domain.errors import Unavailable
from service.domain.model import Usage
from service.ports.model import (
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

CHARACTERS_PER_TOKEN = 4
RECORD_SECONDS = 5.0
TYPICAL_OUTPUT_TOKENS = 2_000
"""Tokens that a call writes at most, as a rule."""
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


async def _none(_domain: str) -> float:
    return 0.0


class Spending:
    """The cost bounds of all sites. ``bounds`` may change while replies are under way."""

    def __init__(
        self, store: EventStore, bounds: CostBounds, own_bound: Callable[[str], Awaitable[float]] = _none
    ) -> None:
        """``own_bound`` returns the bound that the owner of a site has set, by its domain; 0 for none."""
        self._store, self.bounds, self.own_bound = store, bounds, own_bound
        self._has_warned = False

    def concerns(self, *, is_public: bool, own_bound: float = 0.0) -> bool:
        """Return whether a reply may be bounded at all."""
        return is_public or self.bounds.site > 0 or own_bound > 0

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
            if budget.reserved_on:
                recording = asyncio.create_task(self._record(reply, budget.reserved_on, budget.usd))
                # The reply may have been cancelled. What is not recorded in time stays reserved
                await asyncio.wait([recording], timeout=RECORD_SECONDS)

    async def reserve(self, reply: PaidReply, usd: float, day: str) -> None:
        """Raise CostBoundReached."""
        bounds = self.bounds.within(reply.own_bound)
        command = ReserveCost(reply.reply_id, usd, reply.is_public, bounds, now())
        await execute(self._store, SPENDING, day, command, command_id=CommandId())

    def warn(self, reason: str, model: str) -> None:
        """Log once why a model is not called for callers without a key, or why a bound on it does not hold."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("no cost bound holds for the assistant's model", model=model, reason=reason)

    async def _record(self, reply: PaidReply, day: str, usd: float) -> None:
        command = RecordCost(reply.reply_id, usd, reply.is_public, now())
        command_id = CommandId()
        await retry_while_unavailable(partial(execute, self._store, SPENDING, day, command, command_id=command_id))


class ReplyBudget:
    """The budget of one reply, and its cost so far."""

    def __init__(self, spending: Spending, reply: PaidReply, models: Models) -> None:
        self._spending, self._reply = spending, reply
        self._model, self._builtin = models.for_assistant(), models.builtin_for_assistant()
        self._reserving = asyncio.Lock()
        self.calls = 0
        self.usd = reply.usd
        self.reserved_on = ""
        """The day whose bound it has reserved a part of; empty for none."""

    @property
    def model(self) -> Model:
        """Return the model that answers; past the bound it answers as the builtin one."""
        return _BoundedModel(self, self._model, self._builtin)

    def within(self, model: Model) -> Model:
        """Return another model that the reply calls: past the bound it is unavailable."""
        return _BoundedModel(self, model, None)

    async def allows(self, model: Model, request: ModelRequest) -> bool:
        """Return whether a model that may cost money may be called."""
        is_public = self._reply.is_public
        bound = self._spending.allow(self._reply)
        if not bound and not is_public:
            return True
        price = await model.price()
        if price is None:  # a bound would not hold
            self._spending.warn("its price is not known", model.name)
            return not is_public
        if price.is_free:
            return True
        if not bound:
            self._spending.warn("it costs money, and there is no cost limit", model.name)
            return False
        async with self._reserving:
            return await self._reserve(price.of(_tokens(request)[0], TYPICAL_OUTPUT_TOKENS))

    async def _reserve(self, usd: float) -> bool:
        day = self.reserved_on or day_of(self._reply.domain, now())
        try:
            await self._spending.reserve(self._reply, usd, day)
        except CostBoundReached:
            return False
        self.reserved_on = day
        return True

    async def metered(self, model: Model, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        """Call the model, and add what the call costs."""
        price = await model.price() if self.reserved_on else None
        if request.continuation is not None and price is not None and not self.calls:
            self.usd += price.of(*_tokens(request, len(request.continuation.text)))  # by a process that died
        self.calls += 1
        known: list[Usage] = []
        (read, _), report, take = _tokens(request), request.on_usage, request.on_text

        def on_usage(usage: Usage) -> None:
            known.append(usage)
            if report is not None:
                report(usage)

        written, has_begun = 0, False

        def on_text(text: str) -> bool:
            nonlocal written
            is_taken = take is not None and take(text)
            written += len(text) if is_taken else 0
            return is_taken

        try:
            call = open_reply(model, replace(request, on_usage=on_usage, on_text=on_text))
            del request  # a prompt is large, and the model need not keep it
            async with call as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, ModelText):
                        written, has_begun = written + len(chunk.text), True
                    elif isinstance(chunk, ModelEnd):
                        known.append(chunk.usage)
                    yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            has_begun = True  # the provider charges for what it has read
            raise
        finally:
            if price is not None and known:
                self.usd += _cost(known, price)
            elif price is not None and has_begun:
                self.usd += price.of(read, written / CHARACTERS_PER_TOKEN)


class _BoundedModel(ModelAround):
    def __init__(self, budget: ReplyBudget, model: Model, builtin: Model | None) -> None:
        super().__init__(model)
        self._budget, self._builtin = budget, builtin

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        begun = request.continuation.text if request.continuation is not None else ""
        if NOTICE not in begun and await self._budget.allows(self._model, request):
            call = self._budget.metered(self._model, request)
            del request
            async with aclosing(call) as metered:
                async for chunk in metered:
                    yield chunk
            return
        if self._builtin is None or request.grounding is None or (begun and NOTICE not in begun):
            raise Unavailable("The cost limit of the day is reached.", code=CostBoundReached.code)
        if request.continuation is not None:
            request = replace(request, continuation=replace(request.continuation, text=begun.replace(NOTICE, "", 1)))
        else:
            yield ModelText(NOTICE if not self._budget.calls else f"\n\n{NOTICE}")
        async with open_reply(self._builtin, request) as chunks:
            async for chunk in chunks:
                yield chunk


def _tokens(request: ModelRequest, written: int = 0) -> tuple[float, float]:
    read = sum(len(message.text) for message in request.messages)
    return read / CHARACTERS_PER_TOKEN, written / CHARACTERS_PER_TOKEN


def _cost(known: list[Usage], price: Price) -> float:
    return sum(price.of(one.input_tokens, one.output_tokens) if one.cost_usd is None else one.cost_usd for one in known)
