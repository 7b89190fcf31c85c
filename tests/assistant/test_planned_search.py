"""Answers whose search is planned by a model: beside the first search, or behind it."""

import asyncio
import json
from contextlib import aclosing

import pytest

from service.assistant.answer import answer
from service.assistant.finding.planning import Planner
from service.assistant.question import AnswerSettings, Exchange, Question
from service.domain.access.spending import CostBoundReached
from service.domain.errors import Forbidden, QuotaUsedUp
from service.domain.model import Usage
from service.domain.threads.progress import progress_of
from service.domain.threads.recorded_reply import ReplyWritten, SourcesFound
from service.domain.threads.replies import (
    CallEnded,
    ModelFailure,
    ReplyDone,
    SearchFinished,
    SearchStarted,
)
from service.ports.model import ModelText
from tests.assistant.scripted_model import ScriptedModel
from tests.fakes.search_index import FakeSearchIndex

PAGES = {
    "secret.md": "# Secrets\n\nA Secret holds a password.\n\n## Remove\n\nRun `kubectl delete secret NAME`.\n",
    "afterwards.md": "# Hooks\n\nWhat runs afterwards.\n",
    "jobs.md": "# Jobs\n\nA Job runs to its end.\n",
    "cron.md": "# Schedules\n\nA CronJob makes Jobs at certain times.\n",
    "pay.md": "---\ngroups: [staff]\n---\n# Salaries\n\nWhat all earn.\n",
}
BEFORE = (Exchange("How do I make a credential?", "So."),)
FOLLOW_UP = Question("docs", "reply-1", "Can that go afterwards?", BEFORE)
PLAN = {"question": "remove a Secret", "parts": [], "pages": []}
PLAIN = AnswerSettings(suggestions=False)
PAID = Usage(10, 5, 0.5)
TWICE = Usage(20, 10, 1.0)


@pytest.fixture
def index():
    index = FakeSearchIndex()
    index.put("docs", PAGES)
    return index


async def never(_seconds):
    await asyncio.Event().wait()


async def at_once(_seconds):
    pass


async def events_of(index, asked, said, *, sleep=never, model=None, **more):
    """The events of an answer, and the model that answered; ``said``: what the planner replies with."""
    planner = Planner(said if isinstance(said, ScriptedModel) else ScriptedModel([said]), sleep)
    model = model or ScriptedModel(["Run it [1]."])
    async with asyncio.timeout(60):
        events = [
            event
            async for event in answer(asked, index=index, model=model, settings=PLAIN, planner=planner, **more)
        ]  # fmt: skip
    return events, model


def searches(events):
    return [event for event in events if isinstance(event, SearchFinished)]


def prompt(model):
    return model.requests[0].messages[-1].text


async def test_planned_search_takes_the_place_of_the_first(index):
    events, model = await events_of(index, FOLLOW_UP, json.dumps(PLAN))
    first, planned = searches(events)
    assert (first.planned_by, planned.planned_by) == ("", "scripted/model-1")
    assert planned.query == "remove a Secret"
    assert [event.query for event in events if isinstance(event, SearchStarted)] == [first.query, planned.query]
    assert "kubectl delete secret NAME" in prompt(model)
    assert [event.usage for event in events if isinstance(event, ReplyDone)] == [TWICE]


async def test_search_step_does_not_wait_for_the_plan(index):
    asked = asyncio.Event()

    class Slow(ScriptedModel):
        async def reply(self, _request):
            asked.set()
            await asyncio.Event().wait()
            yield ModelText("")

    planner, model = Planner(Slow(), never), ScriptedModel(["So [1]."])
    async with (
        asyncio.timeout(60),
        aclosing(answer(FOLLOW_UP, index=index, model=model, settings=PLAIN, planner=planner)) as events,
    ):
        assert isinstance(await anext(events), SearchStarted)
        assert isinstance(await anext(events), SearchFinished)
        await asked.wait()
    assert not model.requests


@pytest.mark.parametrize(
    "said",
    [
        "no plan",
        '{"question": "',
        json.dumps(PLAN | {"question": "remove " * 100}),
        json.dumps(PLAN | {"pages": [{"url": "https://evil.example"}]}),
        json.dumps({"tool": "read_page", "path": "/pay"}),
    ],
)
async def test_answer_goes_on_without_a_plan_that_is_none(index, said):
    events, _ = await events_of(index, FOLLOW_UP, said)
    assert len(searches(events)) == 1
    assert events[-1].text.startswith("Run it")
    assert events[-1].usage == TWICE


async def test_answer_goes_on_without_a_plan_that_is_late(index):
    class Late(ScriptedModel):
        async def reply(self, request):
            try:
                await asyncio.Event().wait()
                yield ModelText("")
            finally:
                request.on_usage(PAID)

    events, model = await events_of(index, FOLLOW_UP, Late(), sleep=at_once)
    assert len(searches(events)) == 1
    assert next(event.end.usage for event in events if isinstance(event, CallEnded)) == PAID
    assert events[-1].usage == TWICE
    assert len(model.requests) == 1


@pytest.mark.parametrize("error", [Forbidden("no", code="model_key_refused"), QuotaUsedUp("used up")])
async def test_refused_plan_is_reported_to_operators_alone(index, error):
    events, _ = await events_of(index, FOLLOW_UP, ScriptedModel([error]))
    assert [event for event in events if isinstance(event, ModelFailure)] == [
        ModelFailure("scripted/model", error.code, str(error))
    ]
    assert isinstance(events[-1], ReplyDone)
    assert events[-1].usage == PAID


async def test_plan_beyond_the_cost_bound_is_no_failure(index):
    events, _ = await events_of(index, FOLLOW_UP, ScriptedModel([CostBoundReached()]))
    assert not any(isinstance(event, ModelFailure) for event in events)
    assert isinstance(events[-1], ReplyDone)


async def test_hostile_plan_finds_only_pages_for_the_reader(index):
    plan = {
        "question": "salaries",
        "parts": ["../../etc/passwd"],
        "pages": ["Salaries", "pay.md", "https://evil.example"],
    }
    events, model = await events_of(index, FOLLOW_UP, json.dumps(plan))
    assert "earn" not in prompt(model)
    assert "evil.example" not in prompt(model)
    assert searches(events)[-1].expected == ("Salaries", "pay.md", "https://evil.example")


async def test_expected_pages_and_parts_are_searched(index):
    plan = {"question": "Which one runs to its end?", "parts": ["CronJob"], "pages": ["Secrets"]}
    events, model = await events_of(index, Question("docs", "reply-1", "Job vs CronJob"), json.dumps(plan))
    assert searches(events)[-1].planned == ("CronJob", "Job vs CronJob")
    for text in ("A CronJob makes Jobs", "A Job runs", "holds a password"):
        assert text in prompt(model)


async def test_question_in_another_language_is_planned_behind_the_search(index):
    planner = ScriptedModel([json.dumps(PLAN)])
    asked = Question("docs", "reply-1", "Wie kann ich ein Secret wieder löschen?")
    events, model = await events_of(index, asked, planner)
    assert "<language-of-the-documentation-" in planner.requests[0].messages[1].text
    assert "\nEnglish\n" in planner.requests[0].messages[1].text
    assert "- Secrets" in planner.requests[0].messages[1].text
    assert "kubectl delete secret NAME" in prompt(model)
    assert len(searches(events)) == 2


async def test_search_that_finds_nothing_is_planned(index):
    events, model = await events_of(index, Question("docs", "reply-1", "wipe credentials"), json.dumps(PLAN))
    assert len(searches(events)) == 2
    assert "kubectl delete secret NAME" in prompt(model)


@pytest.mark.parametrize("text", ["How do I remove a Secret?", "Thanks a lot!"])
async def test_plain_question_and_greeting_are_not_planned(index, text):
    planner = ScriptedModel()
    await events_of(index, Question("docs", "reply-1", text), planner)
    assert not planner.requests


async def test_page_that_is_asked_about_needs_no_plan(index):
    planner = ScriptedModel()
    asked = Question("docs", "reply-1", "Can you summarize this page?", BEFORE, current_path="/secret")
    await events_of(index, asked, planner)
    assert not planner.requests


async def test_plan_that_adds_nothing_searches_once(index):
    first = searches((await events_of(index, FOLLOW_UP, "no plan"))[0])[0].query
    events, _ = await events_of(index, FOLLOW_UP, json.dumps(PLAN | {"question": first.upper()}))
    assert len(searches(events)) == 1


async def test_answer_goes_on_from_its_planned_search(index):
    events, _ = await events_of(index, FOLLOW_UP, json.dumps(PLAN))
    record = []
    for event in events[: events.index(searches(events)[-1]) + 1]:
        match event:
            case SearchFinished() as found:
                planned = (found.planned_by, found.planned, found.expected)
                record.append(SourcesFound("reply-1", found.query, found.sources, *planned))
            case CallEnded(raw=raw, end=end):
                record.append(ReplyWritten("reply-1", "", "", raw, end))
    record.append(ReplyWritten("reply-1", "Run ", ""))
    planner, model = ScriptedModel(), ScriptedModel(["Run it [1]."])
    progress = progress_of(record, "reply-1")
    assert (progress.query, progress.usage) == ("remove a Secret", PAID)
    asked = Question("docs", "reply-1", FOLLOW_UP.text, BEFORE, progress=progress)
    again, _ = await events_of(index, asked, planner, model=model)
    assert not planner.requests
    assert "kubectl delete secret NAME" in prompt_of(model)
    assert not searches(again)
    assert again[-1].usage == TWICE


def prompt_of(model):
    return "".join(message.text for message in model.requests[0].messages)
