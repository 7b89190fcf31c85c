"""One call of the model: what is asked again, what is not, and what is recorded of it."""

import asyncio

import pytest
from msgspec.structs import replace

from service.agent.loop.budgets import BudgetExhausted, Budgets
from service.agent.loop.loop import work
from service.agent.loop.model_call import ASKED_AGAIN, MAX_ASKED_AGAIN
from service.agent.loop.window import LEFT_OUT
from service.domain.errors import Conflict, Forbidden, Invalid, Unavailable
from service.domain.jobs.decider import ModelReplied, ReplyLost
from service.domain.model import Usage
from service.ports.model import ModelText, ToolMessage
from tests.agent.journal import Journal, context_of, run_work
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, Says, call, calls

FILES = {f"page{number}.md": f"# Page {number}\n" + "word " * 5_000 for number in range(60)}
TOO_LONG = Invalid("the prompt is too long for fake/model", code="context_window_exceeded")
DONE = calls(call("finish", title="Read", summary="Done."))


def reads(first, last):
    return [calls(call("read", f"c{number}", path=f"page{number}.md")) for number in range(first, last)]


def sizes(model):
    return [sum(len(message.text) for message in request.messages) for request in model.requests]


def bare(request):
    """Return the request without what belongs to the journal."""
    return replace(request, before_retry=None, on_usage=None)


def shrink_level(journal):
    return [event.shrink_level for event in journal.events if isinstance(event, ModelReplied)]


async def test_broken_reply_is_requested_again_and_listeners_notified():
    model = FakeModel([Says("I am on", breaks_off=Unavailable("gone")), Says("All is well.", DONE.calls)])
    journal, heard = Journal("x"), []
    context = context_of(journal, FakeDocsSource({"a.md": "x\n"}), model)
    await work(journal.start(), replace(context, on_text=heard.append))
    assert bare(model.requests[0]) == bare(model.requests[1])
    assert "".join(heard) == f"I am on{ASKED_AGAIN}All is well."
    assert [event.text for event in journal.events if isinstance(event, ModelReplied)] == ["All is well."]
    assert MAX_ASKED_AGAIN < 5


async def test_broken_reply_of_a_job_that_went_elsewhere_is_not_requested_again():
    model = FakeModel([Says("I am on", breaks_off=Unavailable("gone")), Says("All is well.", DONE.calls)])
    journal = Journal("x")
    journal.is_held = lambda: not model.requests
    with pytest.raises(Conflict):
        await run_work(journal, FakeDocsSource({"a.md": "x\n"}), model)
    assert len(model.requests) == 1
    with pytest.raises(Conflict):
        await model.requests[0].before_retry()


@pytest.mark.parametrize("error", [Unavailable("down"), Forbidden("key"), Invalid("bad")])
async def test_failure_before_the_first_text_is_not_retried_here(error):
    model = FakeModel([error])
    with pytest.raises(type(error)):
        await run_work(Journal("x"), FakeDocsSource(FILES), model)
    assert len(model.requests) == 1


async def test_a_reply_without_end_is_not_asked_again():
    model = FakeModel([Says("word " * 250_000)])
    with pytest.raises(Unavailable) as failed:
        await run_work(Journal("x"), FakeDocsSource(FILES), model)
    assert failed.value.code == "model_reply_too_long"


async def test_a_job_of_sixty_steps_stays_within_the_window_all_along():
    window_tokens = 32_000
    model = FakeModel([*reads(0, 60), DONE], window_tokens=window_tokens)
    await run_work(Journal("x"), FakeDocsSource(FILES), model)
    assert len(model.requests) == 61
    for request, size in zip(model.requests, sizes(model), strict=True):
        assert size / 3 + request.max_output_tokens < window_tokens


async def test_prompt_refused_as_too_long_stays_shorter_from_then_on():
    model = FakeModel([*reads(0, 12), TOO_LONG, *reads(12, 14), DONE], window_tokens=200_000)
    journal = Journal("x")
    await run_work(journal, FakeDocsSource(FILES), model)
    refused, again, later = sizes(model)[12:15]
    assert again < refused * 0.7
    assert later < refused
    assert shrink_level(journal) == [0] * 12 + [1] * 3
    assert any(LEFT_OUT in message.text for message in model.requests[13].messages if isinstance(message, ToolMessage))


async def test_prompt_too_long_in_every_form_is_reported_clearly():
    model = FakeModel([*reads(0, 12), *[TOO_LONG] * 4], window_tokens=200_000)
    with pytest.raises(Invalid, match="context_tokens") as failed:
        await run_work(Journal("x"), FakeDocsSource(FILES), model)
    assert failed.value.code == "context_window_exceeded"
    model = FakeModel([TOO_LONG] * 4, window_tokens=200_000)
    with pytest.raises(Invalid, match="context_tokens"):
        await run_work(Journal("x" * 30_000), FakeDocsSource(FILES), model)
    assert len({len(str(request.messages)) for request in model.requests}) == 1  # there was nothing to leave out
    assert [request.max_output_tokens for request in model.requests] == [16_384, 8_192, 4_096, 2_048]


async def test_a_resumed_job_asks_exactly_what_it_would_have_asked():
    script = [*reads(0, 10), TOO_LONG, *reads(10, 20), DONE]
    whole = FakeModel(list(script), window_tokens=60_000)
    journal = Journal("x")
    await run_work(journal, FakeDocsSource(FILES), whole)
    resumed = Journal("x")
    first, second = FakeModel(script[:15], window_tokens=60_000), FakeModel(script[15:], window_tokens=60_000)
    with pytest.raises(AssertionError, match="script"):
        await run_work(resumed, FakeDocsSource(FILES), first)
    await run_work(resumed, FakeDocsSource(FILES), second)
    assert list(map(bare, [*first.requests[:-1], *second.requests])) == list(map(bare, whole.requests))


class Endless(FakeModel):
    """A model whose reply begins and does not end."""

    async def reply(self, request):
        self.requests.append(request)
        try:
            yield ModelText("I think")
            await asyncio.Event().wait()
        finally:
            request.on_usage(Usage(100, 2, 0.01))


async def test_minutes_of_a_job_end_a_call_that_does_not_end():
    model, journal = Endless(), Journal("x")
    context = context_of(journal, FakeDocsSource({"a.md": "x\n"}), model)
    context = replace(context, budgets=Budgets(minutes=0.001), seconds=lambda: 0.0)
    with pytest.raises(BudgetExhausted, match="while the model was still replying"):
        await work(journal.start(), context)
    assert len(model.requests) == 1
    (lost,) = (event for event in journal.events if isinstance(event, ReplyLost))
    assert (lost.code, lost.usage) == ("budget_exhausted", Usage(100, 2, 0.01))
