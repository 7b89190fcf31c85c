"""Cost bounds: who is answered by which model, and what strangers can make a site pay."""

import asyncio
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from eventstore import SQLiteEventStore
from service.domain.access.spending import CostBounds
from service.domain.errors import Invalid, Unavailable
from service.domain.model import Usage
from service.ports.model import (
    CONTEXT_WINDOW_EXCEEDED,
    FREE,
    Continuation,
    Grounding,
    ModelEnd,
    ModelRequest,
    ModelText,
    Price,
    UserMessage,
)
from service.queries.sites import spent_on
from service.runtime.system import now
from service.workers.spending import NOTICE, PaidReply, Spending
from tests.fakes.model import FakeModel, Says

PRICE = Price(1.0, 10.0)
USUAL_USD = 0.0206
"""Cost of an answer to ``ASKED``, about."""
ASKED = ModelRequest((UserMessage("How do I install it? " * 100),), grounding=Grounding("How?", ()))


class Both:
    """A model that costs money, and the builtin one."""

    def __init__(self, *, price: Price | None = PRICE, cost: float = 0.01) -> None:
        self.paid = FakeModel([Says("Paid words here.", usage=Usage(9, 9, cost))] * 200, price=price)
        self.builtin = FakeModel([Says("Builtin words.")] * 200, name="builtin/extractive", price=FREE)

    def for_assistant(self):
        return self.paid

    def for_planning(self):
        return None

    def builtin_for_assistant(self):
        return self.builtin


async def reply(spending, models, name, *, is_public=True, request=ASKED):
    """Text of a whole reply, and its model. ``name``: of the reply, or the whole of it."""
    paid = name if isinstance(name, PaidReply) else PaidReply("guide", name, is_public)
    async with spending.budget(paid, models) as budget:
        chunks = [chunk async for chunk in budget.model.reply(request)]
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText))
    return text, next(chunk.model for chunk in chunks if isinstance(chunk, ModelEnd))


async def test_past_the_bound_the_builtin_model_answers_and_says_so(store):
    spending, models = Spending(store, CostBounds(public=0.05)), Both(cost=0.02)
    assert await reply(spending, models, "1") == ("Paid words here.", "fake/model")
    assert await reply(spending, models, "2") == ("Paid words here.", "fake/model")
    assert await reply(spending, models, "3") == (NOTICE + "Builtin words.", "builtin/extractive")
    assert (await spent_on(store, "guide", now())).usd == pytest.approx(0.04)
    async with spending.budget(PaidReply("other", "4", True), models) as budget:
        assert isinstance([c async for c in budget.model.reply(ASKED)][-1], ModelEnd)
    assert len(models.paid.requests) == 3  # another site has its own


async def test_callers_with_keys_are_bounded_by_the_site_alone(store):
    spending, models = Spending(store, CostBounds(site=0.07, public=0.03)), Both(cost=0.02)
    assert (await reply(spending, models, "1"))[1] == "fake/model"
    assert (await reply(spending, models, "2"))[1] == "builtin/extractive"
    assert (await reply(spending, models, "3", is_public=False))[1] == "fake/model"
    assert (await reply(spending, models, "4", is_public=False))[1] == "fake/model"
    assert (await reply(spending, models, "5", is_public=False))[1] == "builtin/extractive"


async def test_flood_at_once_cannot_pass_the_bound_together(store, tmp_path):
    models, bounds = Both(cost=USUAL_USD), CostBounds(public=4 * USUAL_USD)
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as other:
        processes = (Spending(store, bounds), Spending(other, bounds))
        told = await asyncio.gather(*(reply(processes[number % 2], models, str(number)) for number in range(50)))
    assert 1 <= sum(model == "fake/model" for _, model in told) <= 4
    assert (await spent_on(store, "guide", now())).usd <= bounds.public + 1e-9


async def test_reply_that_is_cut_off_is_paid_for(store):
    spending, models = Spending(store, CostBounds(public=1.0)), Both()
    async with (
        spending.budget(PaidReply("guide", "1", True), models) as budget,
        aclosing(budget.model.reply(ASKED)) as chunks,
    ):
        await anext(chunks)
    spent = await spent_on(store, "guide", now())
    assert spent.usd >= PRICE.of(len(ASKED.messages[0].text) / 4, 1)
    assert not spent.reserved


async def test_later_call_of_a_reply_needs_room_as_well(store):
    spending, models = Spending(store, CostBounds(public=2.5 * USUAL_USD)), Both(cost=0.03)
    async with spending.budget(PaidReply("guide", "1", True), models) as budget:
        told = [[chunk async for chunk in budget.model.reply(ASKED)][-1].model for _ in range(3)]
    assert told == ["fake/model", "fake/model", "builtin/extractive"]


async def test_reply_of_a_process_that_died_stays_reserved(store):
    spending, models = Spending(store, CostBounds(public=1.0)), Both()
    died = PaidReply("guide", "1", True)
    await spending.reserve(died, USUAL_USD, f"{now():%Y-%m-%d}.guide")
    assert (await spent_on(store, "guide", now())).usd == USUAL_USD
    go_on = ModelRequest(ASKED.messages, grounding=ASKED.grounding, continuation=Continuation("Paid wor", "Go on."))
    assert (await reply(spending, models, "1", request=go_on))[1] == "fake/model"
    spent = await spent_on(store, "guide", now())
    assert not spent.reserved
    assert spent.usd > 0.01  # the part of the dead process is counted as well


async def test_lower_bound_of_an_owner_counts(store):
    spending, models = Spending(store, CostBounds(site=1.0)), Both(cost=0.02)
    own = PaidReply("guide", "1", is_public=False, own_bound=0.03)
    assert (await reply(spending, models, own))[1] == "fake/model"
    assert (await reply(spending, models, replace(own, reply_id="2")))[1] == "builtin/extractive"
    assert (await reply(spending, models, replace(own, reply_id="3", own_bound=2.0)))[1] == "fake/model"
    unbounded = Spending(store, CostBounds())
    assert (await reply(unbounded, models, replace(own, reply_id="4")))[1] == "builtin/extractive"
    assert (await reply(unbounded, models, replace(own, reply_id="5", own_bound=0.0)))[1] == "fake/model"


async def test_owner_cannot_have_strangers_served_at_a_cost(store):
    models, own = Both(), PaidReply("guide", "1", is_public=True, own_bound=100.0)
    assert (await reply(Spending(store, CostBounds()), models, own))[1] == "builtin/extractive"
    bounded = Spending(store, CostBounds(public=1.0))
    assert (await reply(bounded, models, own))[1] == "fake/model"
    assert (await reply(bounded, models, replace(own, reply_id="2", own_bound=0.001)))[1] == "builtin/extractive"


async def test_model_without_bound_or_price_is_not_called_without_a_key(store):
    assert (await reply(Spending(store, CostBounds()), Both(), "1"))[1] == "builtin/extractive"
    assert (await reply(Spending(store, CostBounds(public=1.0)), Both(price=None), "2"))[1] == "builtin/extractive"
    assert (await reply(Spending(store, CostBounds()), Both(price=FREE), "3"))[1] == "fake/model"


async def test_other_models_of_a_reply_are_unavailable_past_the_bound(store):
    spending, planner = Spending(store, CostBounds()), FakeModel([Says("{}")], price=PRICE)
    async with spending.budget(PaidReply("guide", "1", True), Both()) as budget:
        with pytest.raises(Unavailable):
            [chunk async for chunk in budget.within(planner).reply(ASKED)]
    assert planner.requests == []
    async with spending.budget(PaidReply("guide", "2", True), Both(price=FREE)) as budget:
        with pytest.raises(Unavailable):  # where the model that answers is free, too
            [chunk async for chunk in budget.within(planner).reply(ASKED)]


async def test_builtin_reply_goes_on_as_a_builtin_reply(store):
    spending, models = Spending(store, CostBounds(public=1.0)), Both()
    begun = Continuation(NOTICE + "Builtin", "Go on.")
    text, model = await reply(
        spending, models, "1", request=ModelRequest(ASKED.messages, grounding=ASKED.grounding, continuation=begun)
    )
    assert model == "builtin/extractive"
    assert NOTICE not in text
    assert models.builtin.requests[0].continuation.text == "Builtin"


class Charging(FakeModel):
    """Charges so many tokens for each byte of its prompt, and so many for its reply, or what its limit allows."""

    def __init__(self, *, of_byte=1.0, written=1_000_000):
        super().__init__([], price=PRICE)
        self.charged, self._of_byte, self._written = 0.0, of_byte, written

    async def reply(self, request):
        yield ModelText("Paid words.")
        await asyncio.sleep(0)
        read = sum(len(one.text.encode()) for one in request.messages)
        usage = Usage(int(read * self._of_byte), min(self._written, request.max_output_tokens))
        usage = replace(usage, cost_usd=PRICE.of(usage.input_tokens, usage.output_tokens))
        self.charged += usage.cost_usd
        yield ModelEnd("stop", (), usage, self.name)


@pytest.mark.parametrize("bound", [0.001, 0.02, 0.1, 0.5, 1.0])
async def test_hundred_replies_at_once_never_cost_more_than_the_bound(store, tmp_path, bound):
    models = Both()
    models.paid = Charging()
    bounds = CostBounds(public=bound)
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as other:
        processes = (Spending(store, bounds), Spending(other, bounds))
        told = await asyncio.gather(*(reply(processes[number % 2], models, str(number)) for number in range(100)))
    assert models.paid.charged <= bound + 1e-9
    spent = await spent_on(store, "guide", now())
    assert spent.usd == pytest.approx(models.paid.charged)
    assert not spent.reserved
    assert any(model == "fake/model" for _, model in told) is (bound > 0.0125)


@pytest.mark.parametrize("bound", [0.1, 1.0])
async def test_asked_one_after_the_other_the_bound_is_used_up(store, bound):
    """As many are paid as when each reserved a typical cost: a part of the prompt's length, and 2,000 tokens."""
    spending, models = Spending(store, CostBounds(public=bound)), Both()
    models.paid = Charging(of_byte=0.25, written=2_000)
    told = [(await reply(spending, models, str(number)))[1] for number in range(60)]
    before = int((bound - USUAL_USD) / USUAL_USD) + 1
    assert told.count("fake/model") >= before
    assert (await spent_on(store, "guide", now())).usd <= bound


async def test_reply_waits_for_what_others_give_back(store):
    """A reply holds nearly all; it costs little, and the next one, which came meanwhile, is paid."""
    spending, models = Spending(store, CostBounds(public=0.09)), Both(cost=0.01)
    async with spending.budget(PaidReply("guide", "1", True), models) as budget:
        chunks = budget.model.reply(ASKED)
        await anext(chunks)
        second = asyncio.create_task(reply(spending, models, "2"))
        done, _ = await asyncio.wait([second], timeout=0.1)
        assert not done
        async for _ in chunks:
            pass
    assert await second == ("Paid words here.", "fake/model")


async def test_limit_of_a_reply_is_what_the_money_allows(store):
    spending, models = Spending(store, CostBounds(public=0.05)), Both(cost=0.02)
    await reply(spending, models, "1")
    asked = models.paid.requests[0]
    assert asked.is_cut
    assert 1_000 <= asked.max_output_tokens < ASKED.max_output_tokens
    assert PRICE.of(len(ASKED.messages[0].text), asked.max_output_tokens) <= 0.05


async def test_shorter_prompt_is_asked_for_where_it_may_fit(store):
    spending, models = Spending(store, CostBounds(public=0.03)), Both()
    long = ModelRequest((UserMessage("word " * 6_000),), grounding=ASKED.grounding)
    async with spending.budget(PaidReply("guide", "1", True), models) as budget:
        with pytest.raises(Invalid) as error:
            [chunk async for chunk in budget.model.reply(long)]
        assert error.value.code == CONTEXT_WINDOW_EXCEEDED
        shorter = ModelRequest((UserMessage("word " * 3_000),), grounding=ASKED.grounding)
        assert [chunk async for chunk in budget.model.reply(shorter)][-1].model == "fake/model"


async def test_sites_of_an_organization_have_a_bound_together(store, tmp_path):
    models, bound = Both(), 0.1
    models.paid = Charging()
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as other:
        processes = [Spending(each, CostBounds(), organization_usd=bound) for each in (store, other)]
        told = await asyncio.gather(
            *(
                reply(processes[n % 2], models, PaidReply(f"site-{n}", str(n), n % 3 == 0, organization_id="org"))
                for n in range(60)
            )
        )
        assert models.paid.charged <= bound + 1e-9
        assert any(model == "fake/model" for _, model in told)
        free = PaidReply("elsewhere", "other", False, organization_id="another")
        assert (await reply(processes[0], models, free))[1] == "fake/model"
