"""Tasks played by a scripted model that calls the tools as a good model would, and what its prompts held.

The whole service runs in this process, as for the overhead: real tools, gates, git and pull requests. Of each task are
measured: whether its result is right by the rules of its case; whether the prompt of each call that writes held what
the call needs (the text that it replaces, and the facts that the play names); its prompts' tokens, estimated as the
service does; and the share of them that a provider's cache can keep, because the prompt before began the same.
"""

import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from eventstore import Metadata
from scripts.agent.cases import CASES, Case
from scripts.agent.more_cases import MORE_CASES, SAMPLES
from scripts.agent.overhead import ScriptedModels, set_up
from scripts.agent.plays import PLAYS, Call, Play
from scripts.agent.score import wrongs
from scripts.agent.words import WORDS
from service.agent.loop.window import BYTES_PER_TOKEN
from service.cli.runtime import Runtime
from service.commands.jobs.jobs import NewJob, request_job
from service.domain.jobs.decider import Message
from service.domain.model import ToolCall, Usage
from service.main.folder import open_runtime
from service.main.process.listening import Address
from service.main.process.reloading import CurrentModels
from service.main.server import Server
from service.ports.docs_source import Source
from service.ports.model import AssistantMessage, ModelChunk, ModelEnd, ModelMessage, ModelRequest, ToolMessage
from service.queries.jobs.jobs import find_job, slots_of
from service.queries.projects import get_project
from service.runtime.data_folder import only_server
from service.runtime.settings.settings import Settings
from service.workers.instances import Instance

TASKS = (*CASES, *MORE_CASES)
SAMPLE_SITE = Path(__file__).parents[2] / "tests" / "samples" / "site"
WRITING = frozenset({"replace", "edit", "insert", "write", "move", "delete", "revert"})
MIN_TASKS = 40
MIN_CACHED = 50
"""Percent of the prompts' tokens."""


class Prompts:
    """The prompts of one job, as they come."""

    def __init__(self) -> None:
        self.count = self.bytes = self.largest = self.kept = 0
        self.are_prefixes = True
        """Each begins with the whole prompt before it."""
        self.missing: list[str] = []
        """Facts that were not there at a call that writes."""
        self.facts = 0
        self.failed: list[str] = []
        """Results of calls that are errors."""
        self._last = b""

    def add(self, request: ModelRequest) -> None:
        whole = b"".join(_encoded(request))
        self.count += 1
        self.bytes += len(whole)
        self.largest = max(self.largest, len(whole))
        self.kept += _common(self._last, whole)
        self.are_prefixes = self.are_prefixes and whole.startswith(self._last)
        self._last = whole
        self.failed = [m.text for m in request.messages if isinstance(m, ToolMessage) and m.is_error]

    def look_for(self, facts: Iterable[str], messages: Sequence[ModelMessage]) -> None:
        shown = "\n".join(message.text for message in messages if not isinstance(message, AssistantMessage))
        for fact in facts:
            self.facts += 1
            if fact not in shown:
                self.missing.append(fact)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two prompts begin with together."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


def _encoded(request: ModelRequest) -> Iterable[bytes]:
    """Yield a prompt as providers read it: the tools first, then message after message."""
    yield msgspec.json.encode(request.tools)
    for message in request.messages:
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        yield msgspec.json.encode((type(message).__name__, message.text, calls))


class Player:
    """``Model`` that plays the calls of a task, known by its instruction."""

    name = "scripted/player"

    def __init__(self, tasks: Iterable[Case]) -> None:
        self._plays = {case.instruction: (case, PLAYS[case.name]) for case in tasks}
        self.prompts: dict[str, Prompts] = {}

    async def window_tokens(self) -> int | None:
        return None

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        said = next(message.text for message in request.messages if message.text in self._plays)
        case, play = self._plays[said]
        step = sum(isinstance(message, AssistantMessage) for message in request.messages)
        prompts = self.prompts.setdefault(case.name, Prompts())
        prompts.add(request)
        calls = _calls(case, play, step)
        if any(name in WRITING for name, _ in calls):
            is_first = not any(name in WRITING for earlier in play.replies[:step] for name, _ in earlier)
            prompts.look_for([*(play.facts if is_first else ()), *_copied(calls)], request.messages)
        made = tuple(ToolCall(f"{step}-{at}", name, json.dumps(given)) for at, (name, given) in enumerate(calls))
        yield ModelEnd("tool_calls", made, Usage(), self.name)


def _calls(case: Case, play: Play, step: int) -> Sequence[Call]:
    if step < len(play.replies):
        return play.replies[step]
    if play.question:
        return [("ask", {"question": play.question})]
    if step == len(play.replies) and case.only:
        return [("check", {})]
    title, summary = WORDS[case.name]
    return [("finish", {"title": title, "summary": summary})]


def _copied(calls: Iterable[Call]) -> list[str]:
    """Return the lines that the calls replace: a model copies them from what it was shown."""
    return [line for _, given in calls for line in given.get("old", "").splitlines() if line.strip()]


async def tasks(
    corpora: Mapping[str, Path], scratch: Path, only: str, show: Path | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Play the tasks of these corpora, or those whose names contain ``only``; return rows and goals. ``show``: a folder
    for the pull requests, as a maintainer reads them.
    """
    chosen = [case for case in TASKS if case.corpus in corpora and only in case.name]
    data = scratch / "played"
    projects = {name: set_up(data, corpora[name], name) for name in dict.fromkeys(case.corpus for case in chosen)}
    player = Player(chosen)
    rows: list[dict[str, Any]] = []
    models: Any = ScriptedModels(player)
    with only_server(data), Instance(data) as instance:
        async with open_runtime(data, Settings(), models) as runtime:
            server = Server(runtime, instance, Address("http://localhost"), CurrentModels(models, 0), b"secret")
            await server.start()
            server.announced.set()
            for case in chosen:
                job = await _finished_job(runtime, projects[case.corpus], case.instruction)
                wrong = await wrongs(case, job, runtime.docs, Source(projects[case.corpus], "", "main", "", "local"))
                rows.append(_row(case, job, wrong, player.prompts.get(case.name, Prompts())))
                if show is not None:
                    text = await _as_read(runtime, projects[case.corpus], case, job)
                    (show / f"{case.name.replace(' ', '-')}.md").write_text(text, encoding="utf-8")
                print(".", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            await server.stop()
            await server.close()
    shutil.rmtree(data)
    return rows, _goals(rows, player.prompts.values(), is_whole=not only and len(corpora) > 1)


async def _finished_job(runtime: Runtime, project_id: str, instruction: str) -> dict[str, Any]:
    project = await get_project(runtime.views, project_id)
    assert project is not None
    new = NewJob((Message("user", instruction),), 2)
    created = await request_job(runtime.store, runtime.models, project, new, Metadata(actor="cli:bench"))
    async with aclosing(runtime.store.subscribe(stream=f"job-{created.id}", after=0)) as recorded:
        async for event in recorded:
            if event.type in ("job-completed", "job-failed"):
                await runtime.views.wait_for(event.position)
                break
    job = await find_job(runtime.views, created.id, slots_of(Settings().agent))
    shown: dict[str, Any] = msgspec.to_builtins(job)
    return shown


async def _as_read(runtime: Runtime, project_id: str, case: Case, job: Mapping[str, Any]) -> str:
    """Return a task's pull request: what was asked, title, description, commits and diff."""
    parts = [f"Asked: {case.instruction}"]
    if job["prLink"] is None:
        return "\n\n".join([*parts, f"No pull request ({job['outcome']}): {job['message']}\n"])
    number, _, token = str(job["prLink"]).rpartition("/")[2].partition("-")
    page = await runtime.hosted.page(project_id, int(number), token)
    parts += [f"# {page.pull_request.title}", f"{page.pull_request.head}{', a draft' * page.pull_request.draft}"]
    parts += [page.body, *(f"Commit:\n\n{commit.message}" for commit in page.commits)]
    marks = {"same": " ", "added": "+", "removed": "-"}
    for file in page.files:
        lines = [marks[line.side] + line.text for hunk in file.hunks or () for line in hunk.lines]
        parts.append("\n".join([f"{file.kind}: {file.old_path} -> {file.path}", *lines[:200]]))
    return "\n\n".join(parts) + "\n"


def _row(case: Case, job: dict[str, Any], wrong: Sequence[str], prompts: Prompts) -> dict[str, Any]:
    said = [*wrong, *(f"not in the prompt: {fact!r}" for fact in prompts.missing)]
    said += [f"a call failed: {result[:80]}" for result in prompts.failed]
    if PLAYS[case.name].question and job["outcome"] != "needs_input":
        said.append(f"it ended as {job['outcome']}, not needs_input")
    return {
        "what": f"task: {case.name}",
        "corpus": case.corpus,
        "right": "no" if said else "yes",
        "facts": f"{prompts.facts - len(prompts.missing)} of {prompts.facts}",
        "replies": prompts.count,
        "prompt tokens": prompts.bytes // BYTES_PER_TOKEN,
        "largest prompt": prompts.largest // BYTES_PER_TOKEN,
        "cacheable %": round(100 * prompts.kept / max(1, prompts.bytes)),
        "what is wrong": "; ".join(said)[:200],
    }


def _goals(rows: Sequence[dict[str, Any]], prompts: Iterable[Prompts], *, is_whole: bool) -> list[dict[str, Any]]:
    every = list(prompts)
    right = sum(row["right"] == "yes" for row in rows)
    facts, missing = sum(one.facts for one in every), sum(len(one.missing) for one in every)
    whole = sum(one.are_prefixes for one in every)
    cached = 100 * sum(one.kept for one in every) / max(1, sum(one.bytes for one in every))
    goals = [
        {"name": "tasks whose result is right", "goal": f"all {len(rows)}", "measured": str(right),
         "met": right == len(rows)},
        {"name": "facts in the prompt at the call that writes", "goal": f"all {facts}",
         "measured": str(facts - missing), "met": not missing},
        {"name": "tasks of which each prompt begins with the whole one before it", "goal": f"all {len(every)}",
         "measured": str(whole), "met": whole == len(every)},
        {"name": "share of the prompts' tokens that a cache can keep", "goal": f"at least {MIN_CACHED} %",
         "measured": f"{cached:.0f} %", "met": cached >= MIN_CACHED},
    ]  # fmt: skip
    if is_whole:
        goals.insert(0, {"name": "tasks", "goal": f"at least {MIN_TASKS}", "measured": str(len(rows)),
                         "met": len(rows) >= MIN_TASKS})  # fmt: skip
    return goals


def sample_corpus(scratch: Path) -> dict[str, Path]:
    """The site of this repository's own samples, for where there are no others."""
    folder = scratch / "corpora" / SAMPLES
    shutil.copytree(SAMPLE_SITE, folder)
    return {SAMPLES: folder}
