"""The job's loop: what it records, how it goes on after a crash, and what it makes of a model's mistakes."""

from datetime import timedelta

import pytest

from service.agent.loop.budgets import BudgetExhausted, Budgets
from service.agent.loop.checking import MAX_CHECK_ROUNDS
from service.agent.loop.model_call import MAX_ASKED_AGAIN
from service.domain.errors import Conflict, Invalid, ServiceError, Unavailable
from service.domain.jobs.decider import (
    BranchPushed,
    ChecksReported,
    Committed,
    Finished,
    JobCompleted,
    Message,
    ModelReplied,
    PullRequestOpened,
    RecordCommit,
    Todo,
    ToolReturned,
)
from service.domain.model import ToolCall, Usage
from service.ports.docs_source import Source
from service.ports.model import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from tests.agent.journal import AUTHOR, Journal, Killed, run_job, run_work
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, Says, call, calls

FILES = {
    "index.md": "---\ntitle: Home\n---\n\n# Home\n\nSee [start](guides/start.md).\n",
    "guides/start.md": "---\ntitle: Start\n---\n\n# Start\n\nInstall it.\n\n## Retry\n\nTwice.\n",
    "guides/end.md": "# End\n\nBack to [retry](start.md#retry).\n",
}
FINISH = call("finish", title="Explain retries", summary="Retries were not explained.")
EDIT = call("replace", path="guides/start.md", old="Twice.", new="Three times.")


def script():
    return [
        calls(call("plan", todos=[{"content": "Read", "status": "in_progress"}]), call("read", path="guides/start.md")),
        calls(EDIT, call("write", path="guides/new.md", text="# New\n"), text="Now I edit."),
        calls(FINISH),
    ]


def replies(journal):
    return [event for event in journal.events if isinstance(event, ModelReplied)]


def results(journal):
    return [event for event in journal.events if isinstance(event, ToolReturned)]


async def test_job_ends_in_one_commit_and_one_pull_request():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("Explain retries")
    end = await run_job(journal, docs, FakeModel(script()), host=host)
    assert isinstance(end, Finished)
    assert isinstance(end.outcome, JobCompleted)
    assert end.outcome.message == "Retries were not explained."
    assert docs.files("docs/change") == {
        **FILES,
        "guides/start.md": FILES["guides/start.md"].replace("Twice", "Three times"),
        "guides/new.md": "# New\n",
    }
    assert docs.pushes == [("docs/change", end.work.commit.commit)]
    assert [(p.head, p.base, p.title) for p in host.pull_requests] == [("docs/change", "main", "Explain retries")]
    assert end.work.todos == (Todo("1", "Read", "in_progress"),)
    assert journal.replayed() == end


async def test_commit_message_has_what_and_why_and_the_job():
    journal = Journal("Explain retries")
    end = await run_job(journal, FakeDocsSource(FILES), FakeModel(script()))
    made = end.work.commit
    assert made.author == AUTHOR
    assert made.message == "docs: Explain retries\n\nRetries were not explained.\n\nDocsmith-Job: job1\n"
    assert made.committed_at.microsecond == 0


async def test_model_sees_its_words_and_results_and_our_system_text():
    told = [Message("system", "Be brief."), Message("user", "Explain retries")]
    model = FakeModel(script())
    await run_job(Journal(*told), FakeDocsSource({**FILES, "AGENTS.md": "Use British spelling."}), model)
    first, _, last = [request.messages for request in model.requests]
    assert isinstance(first[0], SystemMessage)
    assert not any(isinstance(message, SystemMessage) for message in first[1:])
    assert "British spelling" not in first[0].text
    assert "British spelling" in first[1].text
    assert first[2:] == (UserMessage("Be brief."), UserMessage("Explain retries"))
    assert [type(message) for message in last[4:]] == [
        AssistantMessage, ToolMessage, ToolMessage, AssistantMessage, ToolMessage, ToolMessage
    ]  # fmt: skip
    assert last[7].text == "Now I edit."
    assert {tool.name for tool in model.requests[0].tools} >= {"read", "replace", "plan", "finish", "check_links"}


async def test_change_that_is_undone_is_not_published():
    back = call("replace", path="guides/start.md", old="Three times.", new="Twice.")
    docs = FakeDocsSource(FILES)
    end = await run_job(Journal("x"), docs, FakeModel([calls(EDIT), calls(back), calls(FINISH)]))
    assert isinstance(end.outcome, JobCompleted)
    assert docs.pushes == []


async def test_a_page_that_is_made_and_deleted_again_is_no_change():
    made, gone = call("write", path="a.md", text="x\n"), call("delete", path="a.md")
    docs = FakeDocsSource(FILES)
    await run_job(Journal("x"), docs, FakeModel([calls(made), calls(gone), calls(FINISH)]))
    assert docs.pushes == []


async def test_finish_with_a_failed_call_waits_until_model_sees_it():
    wrong = call("replace", path="guides/start.md", old="nowhere", new="x")
    model = FakeModel([calls(wrong, FINISH), calls(EDIT), calls(FINISH)])
    journal = Journal("x")
    await run_work(journal, FakeDocsSource(FILES), model)
    assert [result.is_error for result in results(journal)] == [True, True, False, False]


async def test_calls_with_the_same_id_are_distinguished():
    model = FakeModel(
        [calls(ToolCall("a", "list", "{}"), ToolCall("a", "list", "{}"), ToolCall("", "list", "{}")), calls(FINISH)]
    )
    journal = Journal("x")
    await run_work(journal, FakeDocsSource(FILES), model)
    assert len({result.call_id for result in results(journal)[:3]}) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "hint"),
    [
        ("read", "{", "not JSON"),
        ("read", "[]", "object"),
        ("read", '{"file": "a"}', "file"),
        ("read", '{"path": 3}', "$.path"),
        ("reed", "{}", "read"),
        ("read", '{"path": "guides/missing.md"}', "File not found"),
        ("read", '{"path": "start.md"}', "guides/start.md"),
        ("read", '{"path": "\\ud800"}', ""),
    ],
)
async def test_a_malformed_call_is_answered_with_what_to_do(name, arguments, hint):
    journal = Journal("x")
    model = FakeModel([calls(ToolCall("1", name, arguments)), calls(FINISH)])
    await run_work(journal, FakeDocsSource(FILES), model)
    result, _ = results(journal)
    assert result.is_error
    assert hint in result.result


async def test_findings_go_back_to_the_model_until_they_are_mended():
    broken = call("write", path="guides/new.md", text="See [it](nowhere.md).\n")
    mended = call("write", path="guides/new.md", text="See [it](start.md).\n")
    model = FakeModel([calls(broken, FINISH), calls(mended, FINISH)])
    host = FakeCodeHost()
    end = await run_job(Journal("x"), FakeDocsSource(FILES), model, host=host)
    assert "nowhere.md is broken" in model.requests[1].messages[-1].text
    assert end.work.remaining_problems == ()
    assert "problems" not in host.asked[0].body


async def test_problems_the_model_leaves_are_in_the_pull_request():
    broken = call("write", path="guides/new.md", text="See [it](nowhere.md).\n")
    host = FakeCodeHost()
    model = FakeModel([calls(broken, FINISH), calls(FINISH)])
    end = await run_job(Journal("x"), FakeDocsSource(FILES), model, host=host)
    assert len(end.work.remaining_problems) == 1
    assert "nowhere.md is broken" in host.asked[0].body


async def test_the_checks_go_back_a_bounded_number_of_times():
    def broken(number):
        return calls(call("write", path="guides/new.md", text=f"[a](nowhere{number}.md)\n"), FINISH)

    journal = Journal("x")
    model = FakeModel([broken(number) for number in range(MAX_CHECK_ROUNDS + 1)])
    await run_work(journal, FakeDocsSource(FILES), model)
    reports = [event.returned for event in journal.events if isinstance(event, ChecksReported)]
    assert reports == [True] * MAX_CHECK_ROUNDS + [False]


async def test_a_secret_is_never_published():
    leak = call("write", path="a.md", text="token: ghp_" + "a1B2c3D4e5F6" * 3 + "\n")
    docs = FakeDocsSource(FILES)
    with pytest.raises(ServiceError) as failed:
        await run_job(Journal("x"), docs, FakeModel([calls(leak, FINISH), calls(FINISH)]))
    assert failed.value.code == "secret_in_changes"
    assert "ghp_" not in str(failed.value)
    assert docs.pushes == []


@pytest.mark.parametrize(
    "budgets",
    [Budgets(steps=2), Budgets(tokens=25), Budgets(cost_usd=0.002), Budgets(minutes=0.05)],
)
async def test_a_budget_ends_the_job_before_the_next_call(budgets):
    model = FakeModel([calls(call("list")) for _ in range(9)])
    with pytest.raises(BudgetExhausted) as failed:
        await run_work(Journal("x"), FakeDocsSource(FILES), model, budgets=budgets)
    assert failed.value.code == "budget_exhausted"
    assert 1 <= len(model.requests) <= 3


async def test_a_clock_that_steps_forward_is_no_time_of_a_job():
    journal = Journal("x")
    journal.steps_forward = timedelta(minutes=45)
    model = FakeModel([calls(call("list")), calls(call("list")), calls(FINISH)])
    await run_work(journal, FakeDocsSource(FILES), model, budgets=Budgets(minutes=30))
    assert len(model.requests) == 3


async def test_finished_work_is_published_with_a_used_up_budget():
    broken = call("write", path="guides/new.md", text="See [it](nowhere.md).\n")
    host = FakeCodeHost()
    model = FakeModel([calls(broken, FINISH)])
    await run_job(Journal("x"), FakeDocsSource(FILES), model, host=host, budgets=Budgets(steps=1))
    assert "nowhere.md is broken" in host.asked[0].body


async def test_an_unknown_price_is_no_reason_to_stop():
    model = FakeModel([Says(calls=(call("list"),), usage=Usage(1, 1)), calls(FINISH)])
    await run_work(Journal("x"), FakeDocsSource(FILES), model, budgets=Budgets(cost_usd=0.0001))
    assert len(model.requests) == 2


async def test_a_reply_cut_off_at_its_greatest_length_is_not_the_end():
    model = FakeModel([Says("I shall now wri", reason="length"), calls(FINISH)])
    journal = Journal("x")
    state = await run_work(journal, FakeDocsSource(FILES), model)
    assert "cut off" in model.requests[1].messages[-1].text
    assert state.work.finish.summary == "Retries were not explained."


async def test_a_model_that_refuses_fails_the_job():
    with pytest.raises(ServiceError) as failed:
        await run_work(Journal("x"), FakeDocsSource(FILES), FakeModel([Says("No.", reason="refused")]))
    assert failed.value.code == "model_refused"


async def test_broken_reply_is_not_recorded_and_its_iterator_closed():
    model = FakeModel([Says("I am", breaks_off=Unavailable("gone"))] * 9)
    journal = Journal("x")
    with pytest.raises(Unavailable):
        await run_work(journal, FakeDocsSource(FILES), model)
    assert replies(journal) == []
    assert model.closed == len(model.requests) == 1 + MAX_ASKED_AGAIN


async def test_a_named_branch_that_exists_is_worked_on():
    docs = FakeDocsSource(FILES)
    journal = Journal("x", branch="docs/mine", branch_named=True)
    first = await run_job(Journal("y", branch="docs/mine"), docs, FakeModel(script()))
    more = call("replace", path="guides/start.md", old="Three times.", new="Four times.")
    second = await run_job(journal, docs, FakeModel([calls(more), calls(FINISH)]))
    assert second.work.base_commit == first.work.commit.commit
    assert "Four times." in docs.files("docs/mine")["guides/start.md"]


async def test_branch_of_the_documentation_is_not_a_working_branch():
    with pytest.raises(Invalid) as refused:
        await run_work(Journal("x", branch="main", branch_named=True), FakeDocsSource(FILES), FakeModel())
    assert refused.value.code == "branch_is_base"


@pytest.mark.parametrize("after_keeping", [False, True])
async def test_a_job_killed_at_any_record_ends_as_if_it_had_not_been(after_keeping):
    reference = Journal("Explain retries")
    whole = await run_job(reference, FakeDocsSource(FILES), FakeModel(script()))
    for step in range(1, reference.records + 1):
        docs, host, journal, model = (
            FakeDocsSource(FILES),
            FakeCodeHost(),
            Journal("Explain retries"),
            FakeModel(script()),
        )
        journal.dies_at, journal.dies_after_keeping = step, after_keeping
        with pytest.raises(Killed):
            await run_job(journal, docs, model, host=host)
        kept = len(replies(journal))
        model.script = script()[kept:]
        if not isinstance(journal.state, Finished):
            journal.dies_at = None
            await run_job(journal, docs, model, host=host)
        assert len(replies(journal)) == len(replies(reference))  # none is paid for twice
        assert journal.state.work.changes == whole.work.changes
        assert docs.files("docs/change")["guides/new.md"] == "# New\n"
        assert len({commit for _, commit in docs.pushes}) == 1
        assert len(host.pull_requests) == 1
        for kind in (Committed, BranchPushed, PullRequestOpened, JobCompleted):
            assert sum(isinstance(event, kind) for event in journal.events) == 1


async def test_the_recorded_changes_give_the_recorded_commit_again():
    journal, docs = Journal("Explain retries"), FakeDocsSource(FILES)
    journal.dies_on, journal.dies_after_keeping = RecordCommit, True
    with pytest.raises(Killed):
        await run_job(journal, docs, FakeModel(script()))
    journal.dies_on = None
    again = FakeDocsSource(FILES)  # a clone made anew
    end = await run_job(journal, again, FakeModel())
    assert again.branches["docs/change"] == end.work.commit.commit


async def test_job_fails_when_a_conflict_with_others_remains():
    docs = FakeDocsSource(FILES)
    docs.branches["docs/change"] = docs._commit({}, None, AUTHOR, "theirs\n", Journal("x").now())
    with pytest.raises(Conflict):
        await run_job(Journal("x"), docs, FakeModel([*script(), *script()[-1:] * 2]))


async def test_a_code_host_that_is_down_does_not_cost_the_work():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("x")
    host.errors = [Unavailable("down")]
    with pytest.raises(Unavailable):
        await run_job(journal, docs, FakeModel(script()), host=host)
    end = await run_job(journal, docs, FakeModel(), host=host)
    assert isinstance(end.outcome, JobCompleted)
    assert len(docs.pushes) == 1


async def test_template_of_the_repository_shapes_the_pull_request():
    template = "## Summary\n<!-- say what -->\n\n## Checklist\n- [ ] read\n"
    host = FakeCodeHost()
    docs = FakeDocsSource({**FILES, ".github/pull_request_template.md": template})
    await run_job(Journal("x"), docs, FakeModel(script()), host=host)
    body = host.asked[0].body
    assert body.startswith("## Summary\n\nRetries were not explained.\n\n## Checklist\n- [ ] read")
    assert "say what" not in body
    assert "`guides/new.md` (added)" in body
    assert "`fake/model`" in body


async def test_summary_mentions_no_one_in_the_pull_request():
    finish = call("finish", title="x" * 150, summary="Thanks to @octocat\x1b[2J and a@b.c.")
    host, journal = FakeCodeHost(), Journal("x")
    await run_job(journal, FakeDocsSource(FILES), FakeModel([calls(EDIT), calls(finish)]), host=host)
    assert "Thanks to `@octocat`[2J and a@b.c." in host.asked[0].body
    subject = journal.state.work.commit.message.partition("\n")[0]
    assert len(subject) <= 72


async def test_paths_start_at_the_repository_root_with_a_docs_folder():
    docs = FakeDocsSource({"docs/a.md": "A\n", "src/kite.py": "x\n", "mkdocs.yml": "nav: [a.md]\n"})
    model = FakeModel(
        [
            calls(call("read", "1", path="src/kite.py"), call("read", "2", path="docs/a.md"), call("list", "3")),
            calls(call("list", "4", folder="/"), call("search", "5", query="x", folder="src")),
            calls(FINISH),
        ]
    )
    journal = Journal("x")
    await run_work(journal, docs, model, source=Source("p1", "", "main", "docs", "local"))
    outside, inside, listed, everything, found, _ = results(journal)
    assert "x" in outside.result
    assert not inside.is_error
    assert "src/kite.py" in everything.result
    assert "src/kite.py (1)" in found.result
    assert "docs/a.md" in listed.result
    assert "mkdocs.yml" in listed.result
    assert "kite" not in listed.result
