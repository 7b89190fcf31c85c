"""The benchmark of the agent runs, and its checks tell right from wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.agent.cases import CASES, Case
from scripts.agent.more_cases import SAMPLES
from scripts.agent.plays import PLAYS
from scripts.agent.score import wrongs
from scripts.agent.transcripts import MIN_TASKS, TASKS, Prompts
from scripts.agent.words import WORDS
from service.ports.docs_source import NewCommit, Source
from service.ports.model import AssistantMessage, ModelRequest, SystemMessage, UserMessage
from tests.contracts.docs_source import AT, AUTHOR
from tests.fakes.docs_source import FakeDocsSource

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SOURCE = Source("p1", "", "main", "", "local")
PAGES = {"a.md": "# A\n\nOld words.\n\nMore.\n", "b.md": "# B\n\nSee [A](/a).\n", "c.md": "# C\n"}
CASE = Case(
    "one", "corpus", "Change it", only=("a.md",), has={"a.md": ("new words",)}, lacks={"a.md": ("old words",)}, lines=2
)  # fmt: skip


async def found_wrong(case, changes):
    docs = FakeDocsSource(PAGES)
    base = (await docs.fetch(SOURCE)).base_commit
    written = await docs.write_commit(SOURCE, NewCommit(base, changes, AUTHOR, "docs: x\n", AT))
    await docs.push(SOURCE, branch="docs/x", commit=written.commit)
    job = {"status": "completed", "branch": "docs/x", "prLink": "http://x", "failure": None}
    return " | ".join(await wrongs(case, job, docs, SOURCE))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"a.md": "# A\n\nNew words.\n\nMore.\n"}, ""),
        ({"a.md": "# A\n\nNew and old words.\n\nMore.\n"}, "lacks 'new words' | a.md has 'old words'"),
        ({"a.md": "# A\n\nNew words.\n\nMore.\n", "c.md": "# D\n"}, "c.md was changed"),
        ({"a.md": "# A\n\nNew words.\n\nMore.\nAnd more.\n"}, "3 lines are changed"),
        ({"a.md": "# A\n\nNew words, [there](d.md).\n\nMore.\n"}, "d.md is broken"),
        ({"c.md": "# D\n"}, "a.md was not changed"),
    ],
)
async def test_a_change_is_judged_by_what_is_in_it(changes, said):
    wrong = await found_wrong(CASE, changes)
    assert (said in wrong) if said else wrong == ""


async def test_a_page_that_is_to_go_must_be_gone_and_not_linked_to():
    case = Case("gone", "corpus", "Remove A", only=("a.md", "b.md"), gone=("a.md",), lines=20)
    assert "still there" in await found_wrong(case, {"a.md": "# A\n"})
    assert "/a is broken" in await found_wrong(case, {"a.md": None})
    assert await found_wrong(case, {"a.md": None, "b.md": "# B\n"}) == ""


async def test_pull_request_is_wrong_where_nothing_is_to_be_done():
    case = Case("nothing", "corpus", "Do nothing")
    job = {"status": "completed", "branch": "docs/x", "prLink": None, "failure": None}
    assert await wrongs(case, job, FakeDocsSource(PAGES), SOURCE) == []
    assert await wrongs(case, {**job, "prLink": "http://x"}, FakeDocsSource(PAGES), SOURCE)
    assert await wrongs(CASE, job, FakeDocsSource(PAGES), SOURCE) == ["nothing was changed"]


def test_there_are_thirty_instructions_of_different_names():
    assert len({case.name for case in CASES}) == len(CASES) >= 30


def test_each_task_has_a_play_and_a_name_of_its_own():
    assert len({case.name for case in TASKS}) == len(TASKS) >= MIN_TASKS
    assert {case.name for case in TASKS} == set(PLAYS)
    assert {name for name, play in PLAYS.items() if not play.question} == set(WORDS)


def test_prompts_are_searched_for_facts_and_compared():
    prompts, first = Prompts(), (SystemMessage("Rules"), UserMessage("Change A"))
    prompts.add(ModelRequest(first))
    prompts.look_for(["Rules", "the old words"], [*first, AssistantMessage("the old words")])
    assert (prompts.facts, prompts.missing) == (2, ["the old words"])
    prompts.add(ModelRequest((*first, AssistantMessage("x"))))
    assert prompts.are_prefixes
    assert 0 < prompts.kept < prompts.bytes / 2
    prompts.add(ModelRequest((SystemMessage("Rules now"), UserMessage("Change A"))))
    assert not prompts.are_prefixes


def test_tasks_of_the_sample_site_are_played_without_corpora():
    done = subprocess.run(
        [sys.executable, "scripts/bench_agent.py", "--part", "tasks", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
        env={name: value for name, value in os.environ.items() if name != "DOCSMITH_CORPORA"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [row["what is wrong"] for row in told["rows"] if row["right"] == "no"] == []
    assert len(told["rows"]) == sum(case.corpus == SAMPLES for case in TASKS)
    assert all(goal["met"] for goal in told["goals"])


def test_overhead_is_measured_and_printed_as_json(tmp_path):
    for number in range(90):
        prose = f"A line of prose about browser compatibility and the number {number}, which is long enough."
        text = f"---\ntitle: Page {number}\n---\n\n{prose}\n"
        (tmp_path / "small" / f"folder-{number}").mkdir(parents=True)
        (tmp_path / "small" / f"folder-{number}" / "index.md").write_text(text)
    done = subprocess.run(
        [sys.executable, "scripts/bench_agent.py", "--corpora", str(tmp_path), "--large", "small", "--part", "overhead",
         "--jobs", "1", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bench"] == "agent"
    assert {"name", "goal", "measured", "met"} == told["goals"][0].keys()
    assert {"job: push", "job: whole job"} <= {row["what"] for row in told["rows"]}
