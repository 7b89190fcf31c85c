"""Context repositories in a job: what its model reads of them, and what happens when they cannot be read."""

from msgspec.structs import replace

from service.agent.sources import Passage, passages
from service.domain.jobs.decider import ContextsOpened, OpenedContext, ToolReturned
from tests.agent.journal import SOURCE, Journal, Killed, run_work
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

CODE = replace(SOURCE, repository="https://github.com/acme/kite", ref="", context="code", guarded=True)
DONE = calls(call("finish", "done", title="Look", summary="Nothing is to be changed."))
LOST = replace(CODE, repository="/srv/lost", context="lost")


def repositories():
    docs = FakeDocsSource({"index.md": "# Kites\n"})
    docs.contexts = {"code": FakeDocsSource({"kite.py": "def fly(height, wind=3):\n    ...\n", ".env": "SECRET=1\n"})}
    return docs


def results(journal):
    returned = [event for event in journal.events if isinstance(event, ToolReturned)]
    return [event for event in returned if event.name != "finish"]


def opened(journal):
    return [event for event in journal.events if isinstance(event, ContextsOpened)]


async def test_model_lists_reads_and_searches_a_context():
    docs, journal = repositories(), Journal("x")
    asked = calls(
        call("list", "1", folder="@code"), call("read", "2", path="@code/kite.py"),
        call("search", "3", query="wind=3", folder="@code", exact=True), call("read", "4", path="@code/.env"),
        call("read", "5", path="@code/gone.py"),
    )  # fmt: skip
    model = FakeModel([asked, DONE])
    await run_work(journal, docs, model, contexts=(CODE,))
    listed, read, found, hidden, missing = (result.result for result in results(journal))
    assert "@code/kite.py" in listed
    assert "@code/kite.py, lines 1 to 2 of 2:" in read
    assert "def fly(height, wind=3)" in read
    assert "@code/kite.py (1)" in found
    assert "@code/.env is a hidden file" in hidden
    assert "File not found: @code/gone.py." in missing
    commit = docs.contexts["code"].branches["main"]
    value = results(journal)[1].value
    assert (value.path, value.first_line, value.commit) == ("@code/kite.py", 1, commit)
    assert opened(journal)[0].contexts == (OpenedContext("code", CODE.repository, "main", commit),)
    facts = model.requests[0].messages[1].text
    assert f"@code/ is at commit {commit[:12]} of main" in facts


async def test_last_change_of_a_context_is_in_reach():
    docs, journal = repositories(), Journal("x")
    commit = docs.contexts["code"].change("main", {"kite.py": "def fly(height, wind=5):\n    ...\n"})
    asked = calls(call("history", "1", path="@code/kite.py"), call("diff", "2", path="@code"), call("diff", "3"))
    await run_work(journal, docs, FakeModel([asked, DONE]), contexts=(CODE,))
    history, diff, own = results(journal)
    assert f"{commit[:10]} 2026-01-01 Ada: Change" in history.result
    assert "--- @code/kite.py\n+++ @code/kite.py\n" in diff.result
    assert "-def fly(height, wind=3):\n+def fly(height, wind=5):\n" in diff.result
    assert own.result == "You have changed nothing."
    read = list(passages(journal.state.work))
    assert read == [Passage("@code/kite.py", commit, 1, ("def fly(height, wind=5):", "    ..."))]


async def test_context_is_never_written():
    docs, journal = repositories(), Journal("x")
    model = FakeModel(
        [calls(call("write", "1", path="@code/new.md", text="x"), call("move", "2", path="index.md", to="@code/x.md"),
               call("delete", "3", path="@code/kite.py")), DONE]
    )  # fmt: skip
    await run_work(journal, docs, model, contexts=(CODE,))
    assert [result.is_error for result in results(journal)] == [True] * 3
    assert all("is in a context repository, which is only read." in result.result for result in results(journal))
    assert journal.state.work.changes == {}


async def test_context_that_cannot_be_fetched_is_a_note():
    docs, journal = repositories(), Journal("x")
    model = FakeModel([calls(call("read", path="@lost/x.py"), call("list", "2", folder="@none")), DONE])
    await run_work(journal, docs, model, contexts=(CODE, LOST))
    lost, unknown = results(journal)
    assert lost.is_error
    assert lost.result == "@lost cannot be read now: @lost cannot be reached. Go on without it."
    assert unknown.result == "Context repository not found: @none. There are: @code."
    assert "- @lost cannot be read now: @lost cannot be reached." in model.requests[0].messages[1].text


async def test_own_path_may_begin_as_a_context_does():
    docs, journal = repositories(), Journal("x")
    asked = calls(call("write", "1", path="@scope/new.md", text="# New\n"))
    await run_work(journal, docs, FakeModel([asked, DONE]))
    assert journal.state.work.changes == {"@scope/new.md": "# New\n"}


async def test_resumed_job_reads_the_same_commit():
    docs, journal = repositories(), Journal("x")
    journal.dies_at = 4  # after its first reply
    script = [calls(call("read", path="@code/kite.py")), DONE]
    try:
        await run_work(journal, docs, FakeModel(script), contexts=(CODE,))
    except Killed:
        journal.dies_at = None
    docs.contexts["code"].change("main", {"kite.py": "def fly():\n    ...\n"})
    await run_work(journal, docs, FakeModel(script), contexts=(CODE,))
    assert "wind=3" in results(journal)[0].result
    assert len(opened(journal)) == 1


async def test_context_removed_meanwhile_is_a_note():
    docs, journal = repositories(), Journal("x")
    journal.dies_at = 4
    script = [calls(call("read", path="@code/kite.py")), DONE]
    try:
        await run_work(journal, docs, FakeModel(script), contexts=(CODE,))
    except Killed:
        journal.dies_at = None
    await run_work(journal, docs, FakeModel(script))
    assert "It is no context repository of the project any more." in results(journal)[0].result


async def test_context_with_a_file_that_was_not_sent_is_refused():
    docs, journal = repositories(), Journal("x")
    docs.contexts["code"].blobs.clear()
    asked = calls(call("search", "1", folder="@code", query="wind"), call("read", "2", path="@code/kite.py"))
    await run_work(journal, docs, FakeModel([asked, DONE]), contexts=(CODE,))
    for result in results(journal):
        assert result.is_error
        assert "@code/ cannot be read in full" in result.result
