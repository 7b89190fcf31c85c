"""The builtin editor in a round that begins with a merge: it resolves what is plain, and names the rest."""

import pytest

from service.adapters.builtin.editor import BuiltinEditor
from service.domain.jobs.decider import BaseMerged, BaseNotMerged, Committed, Finished
from service.ports.docs_source import NewCommit
from tests.agent.journal import AUTHOR, SOURCE, START, Journal, Killed, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

FILES = {
    "docs.json": '{\n  "navigation": {"pages": [\n    "start",\n    "more"\n  ]}\n}\n',
    "more.md": "# More\n\nMore text.\n",
    "start.md": "# Start\n\nGet Acme.\n\n- One\n- Two\n",
}
BRANCH = "docs/change"


async def merged(first, theirs, message="Merge main", files=FILES):
    """A job with a pull request, a commit of others on main, and a message."""
    docs, host, journal = FakeDocsSource(files), FakeCodeHost(), Journal(first)
    await run_job(journal, docs, BuiltinEditor(), host=host)
    new = NewCommit(docs.branches["main"], theirs, AUTHOR, "theirs\n", START)
    docs.branches["main"] = (await docs.write_commit(SOURCE, new)).commit
    journal.say(message)
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert journal.replayed() == end
    return end, docs, host, journal


async def test_merge_without_conflicts_is_all_that_was_asked():
    end, docs, host, _ = await merged('replace "Acme" with "Apex"', {"more.md": "# Even more\n"})
    assert docs.files(BRANCH)["more.md"] == "# Even more\n"
    assert docs.second_parents[docs.branches[BRANCH]] == docs.branches["main"]
    assert (end.outcome.outcome, end.outcome.message) == ("pull_request", "Merged the documentation's branch.")
    assert host.pull_requests[0].title == 'Replace "Acme" with "Apex"'


@pytest.mark.parametrize(
    ("first", "path", "theirs", "result"),
    [
        ('add "- Three" to start.md', "start.md", FILES["start.md"] + "- Vier\n", "- Two\n- Vier\n\n- Three\n"),
        ('replace "- One" with "- 1"', "start.md", FILES["start.md"].replace("- Two", "- 2"), "- 1\n- 2\n"),
    ],
)
async def test_plain_conflict_is_resolved_as_both_meant(first, path, theirs, result):
    end, docs, _, _ = await merged(first, {path: theirs})
    assert docs.files(BRANCH)[path].endswith(result)
    assert "Resolved 1 conflict in start.md" in end.outcome.message
    assert end.work.remaining_problems == ()


async def test_pages_that_both_put_into_the_navigation_are_kept():
    navigation = FILES["docs.json"].replace('    "more"\n', '    "more",\n    "theirs"\n')
    end, docs, _, _ = await merged(
        'create page ours with title "Ours"', {"theirs.md": "# Theirs\n", "docs.json": navigation}
    )
    assert end.work.remaining_problems == ()
    assert '"theirs"' in docs.files(BRANCH)["docs.json"]
    assert '"ours"' in docs.files(BRANCH)["docs.json"]


async def test_conflict_shows_where_long_lines_differ():
    line = "The first answer and the first pull request of a whole team take {} minutes.\n"
    start = {**FILES, "start.md": line.format("five")}
    end, *_ = await merged('replace "five" with "ten"', {"start.md": line.format("six")}, files=start)
    assert '"…ten minutes." in the pull request, "…six minutes." in the documentation' in end.outcome.message


async def test_conflict_that_needs_judgement_is_named():
    end, docs, host, journal = await merged(
        'replace "Acme" with "Apex"', {"start.md": FILES["start.md"].replace("Acme", "Zenith")}
    )
    assert "<<<<<<<" not in docs.files(BRANCH)["start.md"]
    assert docs.files(BRANCH)["start.md"] == FILES["start.md"].replace("Acme", "Apex")
    assert end.outcome.outcome == "needs_input"
    said = 'start.md: both sides changed the same text: "Get Apex." in the pull request, "Get Zenith."'
    assert said in end.outcome.message
    assert 'Say "keep ours" for the text of the pull request' in end.outcome.message
    assert [problem.path for problem in end.work.remaining_problems] == ["start.md"]
    assert host.pull_requests[0].draft
    assert [type(event) for event in journal.events if isinstance(event, BaseMerged | BaseNotMerged)] == [
        BaseMerged, BaseNotMerged
    ]  # fmt: skip
    journal.say("Merge again")
    again = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert again.outcome.outcome == "needs_input"
    journal.say("keep main")
    last = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert (last.outcome.outcome, host.pull_requests[0].draft) == ("pull_request", False)


@pytest.mark.parametrize(("said", "kept"), [("keep main", "Zenith"), ("Merge main and keep ours", "Apex")])
async def test_caller_says_which_side_to_keep(said, kept):
    end, docs, _, _ = await merged(
        'replace "Acme" with "Apex"', {"start.md": FILES["start.md"].replace("Acme", "Zenith")}, said
    )
    assert f"Get {kept}." in docs.files(BRANCH)["start.md"]
    assert (end.outcome.outcome, end.work.remaining_problems) == ("pull_request", ())


@pytest.mark.parametrize(("said", "there"), [("Merge, keep main", False), ("Merge, keep ours", True)])
async def test_caller_decides_on_a_deleted_page(said, there):
    end, docs, _, _ = await merged('replace "Acme" with "Apex"', {"start.md": None}, said)
    assert ("start.md" in docs.files(BRANCH)) is there
    assert end.outcome.outcome == "pull_request"


async def test_words_that_each_side_changed_are_merged():
    page = {"more.md": "# More\n\nA longer text of many words.\n"}
    docs, host, journal = FakeDocsSource({**FILES, **page}), FakeCodeHost(), Journal('replace "longer" with "long"')
    await run_job(journal, docs, BuiltinEditor(), host=host)
    new = NewCommit(docs.branches["main"], {"more.md": page["more.md"].replace("many", "few")}, AUTHOR, "t\n", START)
    docs.branches["main"] = (await docs.write_commit(SOURCE, new)).commit
    journal.say("Merge")
    await run_job(journal, docs, BuiltinEditor(), host=host)
    assert docs.files(BRANCH)["more.md"] == "# More\n\nA long text of few words.\n"


async def test_other_instructions_are_carried_out_despite_a_conflict():
    end, docs, host, _ = await merged(
        'replace "Acme" with "Apex"',
        {"start.md": FILES["start.md"].replace("Acme", "Zenith")},
        'replace "More text" with "Less text"',
    )
    assert docs.files(BRANCH)["more.md"] == "# More\n\nLess text.\n"
    assert end.outcome.outcome == "pull_request"
    assert [problem.path for problem in end.work.remaining_problems] == ["start.md"]
    assert host.pull_requests[0].draft


async def test_nothing_to_merge_is_said():
    docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal('replace "Acme" with "Apex"')
    await run_job(journal, docs, BuiltinEditor(), host=host)
    journal.say("Merge main and resolve the conflicts")
    end = await run_job(journal, docs, BuiltinEditor(), host=host)
    assert end.outcome.outcome == "nothing_changed"
    assert "no commit of the documentation's branch to merge" in end.outcome.message


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("said", ["keep main", 'Merge main\nreplace "More text" with "Less text"'])
async def test_merge_killed_at_each_step_ends_the_same(said, keeps):
    theirs = {"start.md": FILES["start.md"].replace("Acme", "Zenith"), "new.md": "# New\n"}
    ends = []
    for at in range(100):
        docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal('replace "Acme" with "Apex"')
        await run_job(journal, docs, BuiltinEditor(), host=host)
        new = NewCommit(docs.branches["main"], theirs, AUTHOR, "theirs\n", START)
        docs.branches["main"] = (await docs.write_commit(SOURCE, new)).commit
        journal.say(said)
        journal.dies_at, journal.dies_after_keeping = journal.records + at if at else None, keeps
        try:
            end = await run_job(journal, docs, BuiltinEditor(), host=host)
            was_killed = False
        except Killed:
            was_killed, journal.dies_at = True, None
            done = journal.state
            end = done if isinstance(done, Finished) else await run_job(journal, docs, BuiltinEditor(), host=host)
        commits = sum(isinstance(event, Committed) for event in journal.events)
        ends.append((docs.files(BRANCH), end.outcome.outcome, commits, len(host.pull_requests), len(set(docs.pushes))))
        if at and not was_killed:
            break
    assert len(ends) > 8
    assert [end for end in ends if end != ends[0]] == []
