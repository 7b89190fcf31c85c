"""How a job ends: what makes a draft, when a model is stuck, and what the caller reads of it."""

import pytest

from service.agent.prompts import prompt
from service.domain.jobs.decider import JobCompleted, ModelReminded, ModelReplied
from service.ports.model import UserMessage
from tests.agent.journal import Journal, Killed, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, Says, call, calls

FILES = {"index.md": "# Home\n"}
BROKEN = call("write", path="new.md", text="See [it](nowhere.md).\n")
MENDED = call("write", path="new.md", text="See [it](index.md).\n")
MORE = call("write", path="more.md", text="# More\n")
FINISH = call("finish", title="Add a page", summary="It was missing.")


async def job_with_an_error(host, docs):
    journal = Journal("x")
    end = await run_job(journal, docs, FakeModel([calls(BROKEN, FINISH), calls(FINISH)]), host=host)
    assert end.outcome == JobCompleted("It was missing.", end.outcome.completed_at, "pull_request")
    return journal


async def test_pull_request_with_an_error_is_a_draft():
    host = FakeCodeHost()
    await job_with_an_error(host, FakeDocsSource(FILES))
    (shown,) = host.pull_requests
    assert shown.draft
    assert shown.body.startswith(
        "**The checks found errors. Correct them before merging:**\n\n- `new.md`, line 1: nowhere"
    )
    assert "\n\n**What was done:**\n\nIt was missing." in shown.body


async def test_draft_is_made_ready_when_a_round_clears_errors():
    host, docs = FakeCodeHost(), FakeDocsSource(FILES)
    journal = await job_with_an_error(host, docs)
    journal.say("Mend the link")
    end = await run_job(journal, docs, FakeModel([calls(MENDED, FINISH)]), host=host)
    (shown,) = host.pull_requests
    assert not shown.draft
    assert shown.body.startswith("It was missing.")
    assert end.work.remaining_problems == ()


async def test_errors_of_an_earlier_round_keep_the_draft():
    host, docs = FakeCodeHost(), FakeDocsSource(FILES)
    journal = await job_with_an_error(host, docs)
    journal.say("Add another page")
    model = FakeModel([calls(MORE, FINISH), calls(FINISH)])
    end = await run_job(journal, docs, model, host=host)
    (shown,) = host.pull_requests
    assert shown.draft
    assert "nowhere.md is broken" in shown.body
    assert [problem.path for problem in end.work.remaining_problems] == ["new.md"]


async def test_draft_of_a_person_is_left_a_draft():
    host, docs, journal = FakeCodeHost(), FakeDocsSource(FILES), Journal("x")
    await run_job(journal, docs, FakeModel([calls(MORE, FINISH)]), host=host)
    await host.update_pull_request(None, 1, title="Theirs", body="", draft=True)
    journal.say("Add another page")
    await run_job(journal, docs, FakeModel([calls(MENDED, FINISH)]), host=host)
    assert host.pull_requests[0].draft


@pytest.mark.parametrize(
    ("finish", "title"),
    [
        (FINISH, "Add a page"),
        (call("finish", title="docs: Add a link", summary="x"), "Add a page; add a link"),
        (call("finish", title="Add " + "long " * 20, summary="x"), "Add a page and 1 more change"),
        (call("finish", title="Add a link", summary="x", change="Link it"), "Add a link"),
    ],
)  # fmt: skip
async def test_title_covers_all_rounds(finish, title):
    host, docs, journal = FakeCodeHost(), FakeDocsSource(FILES), Journal("x")
    await run_job(journal, docs, FakeModel([calls(MORE, FINISH)]), host=host)
    journal.say("Link it")
    await run_job(journal, docs, FakeModel([calls(MENDED, finish)]), host=host)
    assert host.pull_requests[0].title == title


WORDS = Says("Which version?")
FAILS = calls(call("replace", path="index.md", old="nowhere", new="x"))
ASKS = calls(call("ask", question="Which version?"))


def reasons(journal):
    return [event.reason for event in journal.events if isinstance(event, ModelReminded)]


async def test_reply_in_words_is_reminded_once_then_needs_input():
    journal, host, model = Journal("x"), FakeCodeHost(), FakeModel([WORDS, WORDS])
    end = await run_job(journal, FakeDocsSource(FILES), model, host=host)
    assert (end.outcome.outcome, end.outcome.message) == ("needs_input", "Which version?")
    assert host.pull_requests == []
    assert model.requests[1].messages[-1] == UserMessage(prompt("reminder-words"), "nudge")
    assert reasons(journal) == ["words"]


async def test_empty_replies_need_input_too():
    end = await run_job(Journal("x"), FakeDocsSource(FILES), FakeModel([Says(""), Says("")]))
    assert (end.outcome.outcome, end.outcome.message) == ("needs_input", "The model ended its turn without a word.")


async def test_reminded_model_that_goes_on_is_not_stuck():
    journal = Journal("x")
    end = await run_job(journal, FakeDocsSource(FILES), FakeModel([WORDS, calls(MORE), WORDS, calls(FINISH)]))
    assert end.outcome.outcome == "pull_request"
    assert reasons(journal) == ["words", "words"]


async def test_equal_failures_are_reminded_once_then_needs_input():
    journal, model = Journal("x"), FakeModel([FAILS] * 4)
    end = await run_job(journal, FakeDocsSource(FILES), model)
    assert end.outcome.outcome == "needs_input"
    assert end.outcome.message.startswith("The agent is stuck: its call of replace failed 4 times with: ")
    assert model.requests[3].messages[-1] == UserMessage(prompt("reminder-failures"), "nudge")
    assert reasons(journal) == ["failures"]


READS = calls(call("read", path="index.md"))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([FAILS, FAILS, calls(MORE), FAILS, FAILS], []),
        ([calls(call("read", path=f"{number}.md")) for number in range(9)], []),
        ([FAILS, READS, FAILS, READS, FAILS, READS], ["failures"]),
        ([FAILS, calls(call("read", path="no.md")), FAILS, calls(call("read", path="no.md")), FAILS], ["failures"]),
    ],
)
async def test_equal_failures_count_until_a_file_changes(script, expected):
    journal, model = Journal("x"), FakeModel([*script, calls(FINISH)])
    end = await run_job(journal, FakeDocsSource(FILES), model)
    assert end.work.finish.ending == "done"
    assert reasons(journal) == expected


async def test_changes_of_a_stuck_model_become_a_draft():
    host = FakeCodeHost()
    end = await run_job(Journal("x"), FakeDocsSource(FILES), FakeModel([calls(MORE), WORDS, WORDS]), host=host)
    (shown,) = host.pull_requests
    assert shown.draft
    assert "Its last words:**\n\nWhich version?\n" in shown.body
    assert (end.outcome.outcome, end.outcome.message) == ("pull_request", "Which version?")


@pytest.mark.parametrize("script", [[calls(BROKEN), WORDS, WORDS], [calls(MORE), ASKS]])
async def test_changes_are_kept_for_the_answer(script):
    journal, docs, host = Journal("x"), FakeDocsSource(FILES), FakeCodeHost()
    end = await run_job(journal, docs, FakeModel(script), host=host)
    assert (end.outcome.outcome, end.outcome.message) == ("needs_input", "Which version?")
    assert (host.pull_requests, docs.pushes) == ([], [])
    assert bool(end.work.remaining_problems) == (ASKS not in script)
    journal.say("Version 2")
    end = await run_job(journal, docs, FakeModel([calls(MENDED, FINISH)]), host=host)
    assert end.outcome.outcome == "pull_request"
    assert not host.pull_requests[0].draft


@pytest.mark.parametrize("script", [[FAILS] * 4, [calls(MORE), WORDS, WORDS]])
async def test_job_killed_at_any_record_is_stuck_all_the_same(script):
    journal = Journal("x")
    whole = await run_job(journal, FakeDocsSource(FILES), FakeModel(script))
    for record in range(1, journal.records + 1):
        journal, docs, host = Journal("x"), FakeDocsSource(FILES), FakeCodeHost()
        journal.dies_at = record
        with pytest.raises(Killed):
            await run_job(journal, docs, FakeModel(script), host=host)
        asked = sum(isinstance(step, ModelReplied) for step in journal.state.work.transcript)
        journal.dies_at = None
        end = await run_job(journal, docs, FakeModel(script[asked:]), host=host)
        assert (end.outcome.outcome, end.outcome.message) == (whole.outcome.outcome, whole.outcome.message)
        assert len(reasons(journal)) == 1


async def test_mended_draft_is_made_ready_when_killed_at_any_record():
    script = [calls(MENDED, FINISH)]
    host, docs = FakeCodeHost(), FakeDocsSource(FILES)
    journal = await job_with_an_error(host, docs)
    first = journal.records
    journal.say("Mend the link")
    await run_job(journal, docs, FakeModel(script), host=host)
    for record in range(first + 1, journal.records + 1):
        host, docs = FakeCodeHost(), FakeDocsSource(FILES)
        again = await job_with_an_error(host, docs)
        again.say("Mend the link")
        again.dies_at = record
        with pytest.raises(Killed):
            await run_job(again, docs, FakeModel(script), host=host)
        again.dies_at = None
        asked = any(isinstance(step, ModelReplied) for step in again.state.work.round_steps())
        await run_job(again, docs, FakeModel(script[asked:]), host=host)
        (shown,) = host.pull_requests
        assert (shown.draft, again.state.outcome.outcome) == (False, "pull_request")
