"""How a job's end is presented: what makes a draft, and what its caller reads of it."""

import pytest

from service.domain.jobs.decider import JobCompleted
from tests.agent.journal import Journal, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

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
        (call("finish", title="Add a link", summary="x", pull_request_title="Add and link"), "Add and link"),
    ],
)  # fmt: skip
async def test_title_covers_all_rounds(finish, title):
    host, docs, journal = FakeCodeHost(), FakeDocsSource(FILES), Journal("x")
    await run_job(journal, docs, FakeModel([calls(MORE, FINISH)]), host=host)
    journal.say("Link it")
    await run_job(journal, docs, FakeModel([calls(MENDED, finish)]), host=host)
    assert host.pull_requests[0].title == title
