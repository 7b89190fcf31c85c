"""Who is asked when a model is down."""

import pytest
from msgspec.structs import replace

from service.adapters.models.fallback import AVOIDED_SECONDS, FallbackModel
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, ServiceError, Unavailable
from service.ports.model import ModelRequest, ModelWaiting, UserMessage
from tests.contracts.model import chunks_of
from tests.fakes.model import FakeModel, Says

REQUEST = ModelRequest((UserMessage("Hello?"),))
KEY = Forbidden("the key", code="model_key_refused")


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


def pair(clock, first, second):
    models = FakeModel(first, name="first/model"), FakeModel(second, name="second/model")
    return FallbackModel(models, clock=clock), *models


async def who(model):
    return (await chunks_of(model, REQUEST))[-1].model


@pytest.mark.parametrize("error", [Unavailable("down"), RateLimited("overloaded"), KEY])
async def test_fallback_when_down_overloaded_or_key_refused(clock, error):
    model, _, _ = pair(clock, [error], [Says("Here.")])
    assert model.name == "first/model"
    assert await who(model) == "second/model"


@pytest.mark.parametrize(
    "error",
    [
        Invalid("bad", code="model_refused_request"),
        Invalid("long", code="context_window_exceeded"),
        Forbidden("other"),
        NotFound("unknown"),
        ServiceError("our fault"),
    ],
)
async def test_a_refused_request_is_not_taken_elsewhere(clock, error):
    model, _, second = pair(clock, [error], [Says("Never.")])
    with pytest.raises(type(error)):
        await who(model)
    assert second.requests == []


async def test_a_refusal_is_an_answer(clock):
    model, _, second = pair(clock, [Says("No.", reason="refused")], [])
    assert (await chunks_of(model, REQUEST))[-1].reason == "refused"
    assert second.requests == []


async def test_reply_that_has_begun_is_not_restarted_by_another(clock):
    model, first, second = pair(clock, [Says("I am", breaks_off=Unavailable("gone"))], [Says("Never.")])
    with pytest.raises(Unavailable):
        await who(model)
    assert (first.closed, second.requests) == (1, [])


async def test_model_that_only_waited_has_not_begun(clock):
    model, _, _ = pair(clock, [Says(waits=3.0, breaks_off=Unavailable("down"))], [Says("Here.")])
    waiting, *_, end = await chunks_of(model, replace(REQUEST, reports_waits=True))
    assert (waiting, end.model) == (ModelWaiting(3.0), "second/model")


async def test_next_model_is_not_asked_where_that_is_refused(clock):
    async def refuse():
        raise Conflict("It is another one's by now.")

    model, first, second = pair(clock, [Unavailable("down")], [Says("Here.")])
    with pytest.raises(Conflict):
        await chunks_of(model, replace(REQUEST, before_retry=refuse))
    assert (len(first.requests), second.requests) == (1, [])


async def test_failed_model_comes_last_for_a_while_then_first_again(clock):
    model, first, _ = pair(clock, [Unavailable("down"), Says("Back.")], [Says("Here."), Says("Here.")])
    assert [await who(model), await who(model)] == ["second/model"] * 2
    assert len(first.requests) == 1
    clock.seconds += AVOIDED_SECONDS + 1
    assert await who(model) == "first/model"


async def test_providers_retry_after_counts_up_to_a_bound(clock):
    busy = RateLimited("busy", retry_after_seconds=99_999.0)
    model, _, _ = pair(clock, [busy, Says("Back.")], [Says("Here."), Says("Here.")])
    assert await who(model) == "second/model"
    clock.seconds += 599
    assert await who(model) == "second/model"
    clock.seconds += 2
    assert await who(model) == "first/model"


async def test_model_that_was_down_is_tried_when_the_other_is_down(clock):
    model, _, _ = pair(clock, [Unavailable("down"), Says("Back.")], [Says("Here."), Unavailable("down, too")])
    assert await who(model) == "second/model"
    assert await who(model) == "first/model"


async def test_when_all_fail_each_is_named_and_whether_it_may_pass(clock):
    model, _, _ = pair(clock, [KEY], [RateLimited("busy", retry_after_seconds=5.0)])
    with pytest.raises(RateLimited, match="the key; and busy") as failed:
        await who(model)
    assert failed.value.retry_after_seconds == 5.0
    model, _, _ = pair(clock, [KEY], [KEY])
    with pytest.raises(Forbidden) as refused:
        await who(model)
    assert refused.value.code == "model_key_refused"


async def test_the_smallest_window_counts():
    sized = [FakeModel(window_tokens=tokens) for tokens in (200_000, None, 32_000)]
    assert await FallbackModel(sized).window_tokens() == 32_000
    assert await FallbackModel([FakeModel()]).window_tokens() is None


async def test_closing_a_reply_closes_that_of_the_model(clock):
    model, first, _ = pair(clock, [Says("one two three")], [])
    chunks = model.reply(REQUEST)
    await anext(chunks)
    await chunks.aclose()
    assert first.closed == 1
