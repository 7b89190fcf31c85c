"""A round that begins with a merge of the documentation's branch: what merges, what conflicts, and how it ends."""

import pytest
from msgspec.structs import replace

from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    Committed,
    Finished,
    JobCompleted,
    OpenWorkspace,
    RecordCommit,
    RecordPush,
    SetMergeAside,
    WorkRebased,
)
from service.ports.docs_source import MergedCommit, NewCommit
from service.ports.model import UserMessage
from tests.agent.journal import AUTHOR, SOURCE, START, Journal, Killed, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, Says, call, calls

PAGE = "# Start\n\nRetries: twice.\n\n## More\n\nThe end.\n"
OLD = "# Old\n\nOne.\n\nTwo.\n\nThree.\n"
FILES = {"index.md": "# Home\n", "start.md": PAGE, "logo.png": "\0one", "docs/old.md": OLD}
BRANCH = "docs/change"


def finish(title="Resolve the conflicts", summary="Both sides are kept."):
    return call("finish", title=title, summary=summary)


def edit(path="start.md", old="twice", new="again and again"):
    return call("replace", path=path, old=old, new=new)


class Case:
    """A job whose pull request is open, and others who change both branches."""

    def __init__(self) -> None:
        self.docs, self.host, self.journal = FakeDocsSource(FILES), FakeCodeHost(), Journal("Explain retries")

    @classmethod
    async def opened(cls, *first) -> "Case":
        case = cls()
        await case.run(calls(*(first or (edit(),))), calls(finish("Explain retries")))
        return case

    async def run(self, *script) -> Finished:
        self.model = FakeModel(list(script))
        end = await run_job(self.journal, self.docs, self.model, host=self.host)
        assert self.journal.replayed() == end
        return end

    async def others(self, changes, branch="main") -> str:
        parent = self.docs.branches[branch]
        written = await self.docs.write_commit(SOURCE, NewCommit(parent, changes, AUTHOR, "theirs\n", START))
        self.docs.branches[branch] = written.commit
        return written.commit

    async def message(self, *script) -> Finished:
        self.journal.say("Merge the documentation's branch")
        return await self.run(*script)

    def parents(self) -> tuple[str, str | None]:
        head = self.docs.branches[BRANCH]
        return self.docs.parents[head], self.docs.second_parents.get(head)

    def file(self, path="start.md") -> str:
        return self.docs.files(BRANCH)[path]

    def shown(self) -> str:
        return "\n".join(
            m.text for m in self.model.requests[0].messages if getattr(m, "purpose", "") in ("merge", "note")
        )

    async def reproduced(self) -> str:
        recorded = next(event for event in reversed(self.journal.events) if isinstance(event, Committed))
        changes = self.journal.state.work.changes
        new = NewCommit(recorded.parent, changes, recorded.author, recorded.message, recorded.committed_at)
        if recorded.merged:
            new = replace(new, merged=MergedCommit(recorded.merged, recorded.merge_base))
        return (await self.docs.write_commit(SOURCE, new)).commit


def kinds(case, *wanted):
    return [type(event) for event in case.journal.events if isinstance(event, wanted)]


async def test_round_begins_with_a_merge_of_what_merges_by_itself():
    case = await Case.opened()
    head = case.docs.branches[BRANCH]
    theirs = await case.others({"start.md": PAGE.replace("The end.", "That is all."), "new.md": "# New\n"})
    end = await case.message(calls(finish()))
    assert isinstance(end.outcome, JobCompleted)
    assert case.parents() == (head, theirs)
    assert case.file() == PAGE.replace("twice", "again and again").replace("The end.", "That is all.")
    assert case.file("new.md") == "# New\n"
    assert await case.reproduced() == case.docs.branches[BRANCH]
    assert len(case.host.pull_requests) == 1
    assert "no conflicts" in case.shown().replace("\n", " ")


async def test_round_without_news_has_no_merge():
    case = await Case.opened()
    await case.message(calls(edit("index.md", "Home", "House")), calls(finish()))
    assert kinds(case, BaseMerged, BaseNotMerged) == []
    assert case.parents()[1] is None


async def test_later_round_merges_only_what_came_since():
    case = await Case.opened()
    await case.others({"index.md": "# One\n"})
    await case.message(calls(finish()))
    first = case.docs.branches[BRANCH]
    theirs = await case.others({"index.md": "# Two\n"})
    end = await case.message(calls(finish()))
    assert case.parents() == (first, theirs)
    assert case.file("index.md") == "# Two\n"
    assert [event.merge_base for event in case.journal.events if isinstance(event, BaseMerged)][1] != end.request.ref
    assert await case.reproduced() == case.docs.branches[BRANCH]


async def test_conflict_is_shown_with_both_sides_and_base():
    case = await Case.opened()
    theirs = await case.others({"start.md": PAGE.replace("twice", "five times")})
    whole = call("write", path="start.md", text=PAGE.replace("twice", "three to five times"))
    end = await case.message(calls(whole), calls(finish()))
    for part in ("start.md, line 3", "again and again", "||||||| before\nRetries: twice.", "five times", "<data "):
        assert part in case.shown()
    assert case.parents()[1] == theirs
    assert case.file() == PAGE.replace("twice", "three to five times")
    assert end.work.remaining_problems == ()
    assert await case.reproduced() == case.docs.branches[BRANCH]


async def test_markers_are_returned_to_the_model_once_more():
    case = await Case.opened()
    await case.others({"start.md": PAGE.replace("twice", "five times")})
    whole = call("write", path="start.md", text=PAGE.replace("twice", "often"))
    await case.message(calls(finish()), calls(whole), calls(finish()))
    assert "marker of a conflict" in case.model.requests[1].messages[-1].text
    assert case.file() == PAGE.replace("twice", "often")


async def test_unresolved_conflict_is_named_and_other_work_kept():
    case = await Case.opened()
    head = case.docs.branches[BRANCH]
    await case.others({"start.md": PAGE.replace("twice", "five times"), "new.md": "# New\n"})
    more = call("write", path="more.md", text="# More\n")
    title = edit("start.md", "# Start", "# The start")
    end = await case.message(calls(more, title), calls(finish()), calls(finish()))
    assert kinds(case, BaseMerged, BaseNotMerged) == [BaseMerged, BaseNotMerged]
    assert case.parents() == (head, None)
    assert case.file() == PAGE.replace("twice", "again and again").replace("# Start", "# The start")
    assert case.file("more.md") == "# More\n"
    assert "new.md" not in case.docs.files(BRANCH)
    problems = [(problem.gate, problem.path, problem.is_error) for problem in end.work.remaining_problems]
    assert problems == [("conflicts", "start.md", True)]
    assert await case.reproduced() == case.docs.branches[BRANCH]


async def test_markers_are_never_committed():
    case = await Case.opened()
    await case.others({"start.md": PAGE.replace("twice", "five times")})
    await case.message(calls(finish()), calls(finish()))
    assert not any("<<<<<<<" in text for text in case.docs.files(BRANCH).values())
    end = await case.message(Says("Still no idea."), Says("None."))
    assert isinstance(end.outcome, JobCompleted)


async def test_change_follows_a_page_that_others_renamed():
    case = await Case.opened(edit("docs/old.md", "Two.", "2."))
    await case.others({"docs/old.md": None, "docs/new.md": OLD.replace("Three", "Drei")})
    await case.message(calls(finish()))
    assert case.file("docs/new.md") == "# Old\n\nOne.\n\n2.\n\nDrei.\n"
    assert "docs/old.md" not in case.docs.files(BRANCH)


async def test_change_of_others_follows_a_page_that_the_job_renamed():
    case = await Case.opened(call("move", path="docs/old.md", to="docs/new.md"))
    await case.others({"docs/old.md": OLD.replace("Three", "Drei")})
    await case.message(calls(finish()))
    assert case.file("docs/new.md") == "# Old\n\nOne.\n\nTwo.\n\nDrei.\n"
    assert "docs/old.md" not in case.docs.files(BRANCH)


async def test_page_that_both_renamed_has_the_documentation_s_name():
    case = await Case.opened(call("move", path="docs/old.md", to="docs/ours.md"))
    await case.others({"docs/old.md": None, "docs/theirs.md": OLD.replace("Three", "Drei")})
    await case.message(calls(finish()))
    assert sorted(path for path in case.docs.files(BRANCH) if path.startswith("docs/")) == ["docs/theirs.md"]
    assert "Drei" in case.file("docs/theirs.md")


@pytest.mark.parametrize("keep", [True, False])
async def test_page_that_others_deleted_is_a_conflict_to_decide(keep):
    case = await Case.opened()
    await case.others({"start.md": None})
    decision = call("write", path="start.md", text="# Kept\n") if keep else call("delete", path="start.md")
    await case.message(calls(decision), calls(finish()))
    assert f"{BRANCH}: changed" in case.shown()
    assert "main: deleted" in case.shown()
    assert case.docs.files(BRANCH).get("start.md") == ("# Kept\n" if keep else None)
    assert await case.reproduced() == case.docs.branches[BRANCH]


async def test_page_that_both_added_agrees_on_common_lines():
    case = await Case.opened(call("write", path="new.md", text="# New\n\nOurs.\n"))
    await case.others({"new.md": "# New\n\nTheirs.\n"})
    await case.message(calls(call("write", path="new.md", text="# New\n\nBoth.\n")), calls(finish()))
    assert "new.md, line 3" in case.shown()
    assert case.file("new.md") == "# New\n\nBoth.\n"


async def test_binary_file_of_both_sides_is_left_to_people():
    case = await Case.opened()
    head = case.docs.branches[BRANCH]
    await case.others({"logo.png": "\0two"}, BRANCH)
    await case.others({"logo.png": "\0three"})
    end = await case.message(calls(edit("index.md", "Home", "House")), calls(finish()))
    assert kinds(case, BaseMerged, BaseNotMerged) == [BaseNotMerged]
    assert case.docs.parents[case.docs.branches[BRANCH]] != head
    assert [problem.path for problem in end.work.remaining_problems] == ["logo.png"]
    assert "logo.png: Both sides changed this file" in end.outcome.message
    assert "logo.png" in case.shown()
    assert case.file("index.md") == "# House\n"


async def test_link_that_the_merge_breaks_goes_to_the_model():
    case = await Case.opened(edit("start.md", "twice", "[twice](docs/old.md)"))
    await case.others({"docs/old.md": None})
    mend = edit("start.md", "[twice](docs/old.md)", "twice")
    await case.message(calls(finish()), calls(mend), calls(finish()))
    assert "docs/old.md" in case.model.requests[1].messages[-1].text
    assert "docs/old.md" not in case.file()


async def test_commits_of_others_on_the_branch_are_merged_too():
    case = await Case.opened()
    await case.others({"review.md": "# Review\n", "start.md": PAGE.replace("twice", "thrice")}, BRANCH)
    await case.others({"index.md": "# Theirs\n"})
    await case.message(calls(finish()))
    assert case.docs.files(BRANCH) | {"logo.png": ""} == {
        **FILES, "logo.png": "", "index.md": "# Theirs\n", "review.md": "# Review\n",
        "start.md": PAGE.replace("twice", "thrice"),
    }  # fmt: skip


@pytest.mark.parametrize("dies_on", [OpenWorkspace, SetMergeAside, RecordCommit, RecordPush])
@pytest.mark.parametrize("after", [True, False])
async def test_merge_survives_a_killed_process(dies_on, after):
    case = await Case.opened()
    await case.others({"start.md": PAGE.replace("twice", "five times")})
    unresolved = dies_on is SetMergeAside
    whole = call("write", path="start.md", text=PAGE.replace("twice", "often"))
    more = call("write", path="more.md", text="# More\n")
    script = [calls(more), calls(finish()), calls(finish())] if unresolved else [calls(whole), calls(finish())]
    case.journal.dies_on, case.journal.dies_after_keeping = dies_on, after
    case.journal.say("Merge")
    model = FakeModel(script)
    with pytest.raises(Killed):
        await run_job(case.journal, case.docs, model, host=case.host)
    case.journal.dies_on = None
    end = await run_job(case.journal, case.docs, model, host=case.host)
    assert isinstance(end.outcome, JobCompleted)
    assert case.file() == PAGE.replace("twice", "again and again" if unresolved else "often")
    assert len(case.host.pull_requests) == 1
    assert len(kinds(case, Committed)) == 2


async def test_branch_that_moves_during_a_merge_round_is_merged_again():
    case = await Case.opened()
    theirs = await case.others({"index.md": "# Theirs\n"})
    pushed = case.docs.push

    async def push(source, *, branch, commit):
        case.docs.push = pushed
        await case.others({"start.md": PAGE.replace("twice", "again and again").replace("The end.", "Fin.")}, BRANCH)
        await pushed(source, branch=branch, commit=commit)

    case.docs.push = push
    await case.message(calls(edit("start.md", "## More", "## Even more")), calls(finish()))
    assert case.file() == PAGE.replace("twice", "again and again").replace("The end.", "Fin.").replace(
        "## M", "## Even m"
    )
    assert case.file("index.md") == "# Theirs\n"
    assert case.parents()[1] == theirs
    assert kinds(case, BaseMerged, WorkRebased) == [BaseMerged, WorkRebased]
    assert await case.reproduced() == case.docs.branches[BRANCH]


async def test_work_is_merged_with_what_others_pushed_meanwhile():
    case = Case()
    fetched, count = case.docs.fetch, 0

    async def fetch(source, *, branch=""):
        nonlocal count
        count += 1
        if count == 2:
            await case.others({"start.md": PAGE.replace("The end.", "Fin.")})
        return await fetched(source, branch=branch)

    case.docs.fetch = fetch
    await case.run(calls(edit()), calls(finish()))
    assert case.file() == PAGE.replace("twice", "again and again").replace("The end.", "Fin.")
    assert kinds(case, WorkRebased) == [WorkRebased]


async def test_conflict_with_what_others_pushed_goes_to_the_model():
    case = Case()
    fetched, count = case.docs.fetch, 0

    async def fetch(source, *, branch=""):
        nonlocal count
        count += 1
        if count == 2:
            await case.others({"start.md": PAGE.replace("twice", "five times")})
        return await fetched(source, branch=branch)

    case.docs.fetch = fetch
    whole = call("write", path="start.md", text=PAGE.replace("twice", "often"))
    await case.run(calls(edit()), calls(finish()), calls(whole), calls(finish()))
    last = [message for message in case.model.requests[2].messages if isinstance(message, UserMessage)][-1]
    assert (last.purpose, "five times" in last.text) == ("merge", True)
    assert case.file() == PAGE.replace("twice", "often")
