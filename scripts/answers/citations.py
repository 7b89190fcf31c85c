"""Whether each citation leads to a place that exists, and what the builtin model takes on itself.

Each corpus becomes a project of a data folder of its own, imported and indexed as the service does it. Then each
labelled question is answered by the builtin model on its own site and on another one, and by a model that cites at
random (numbers that exist and numbers that do not, ranges, links of its own, numbers in code).

- Every citation that was sent must lead to a page of the index, to an anchor of it, and to lines of a file that is in
  the repository at the commit that the answer recorded, with the section's heading on the first of them; and no number
  that was not found may be left in the text.
- Of the builtin model: the share of questions that it answers on their own site (more is better), and on another one
  (fewer is better; some questions are so general that any site may answer them).
- How soon the search step is sent, warm, one question after the other.
"""

import asyncio
import json
import random
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt

from scripts.bench_search import at_least, at_most, corpora_in, questions
from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.assistant.question import AnswerSettings, Question
from service.cli.runtime import Runtime
from service.domain.model import Usage
from service.domain.threads.replies import ReplyBroken, ReplyDone, SearchFinished, TextDelta
from service.main.folder import open_for_command
from service.ports.model import Model, ModelChunk, ModelEnd, ModelRequest, ModelText
from service.queries.projects import project_of_domain, source_of
from service.queries.sites import get_site
from service.retrieval.index.site_index import PAGES_FILE
from service.runtime.settings.settings import Settings
from service.views.projects import ProjectView

ROOT = Path(__file__).parents[2]
FIRST_EVENT_MS = 100.0
OWN_ANSWERED, OTHERS_ANSWERED = 95.0, 15.0
"""Percent of questions. Before the model compared passages with each other it was 96 and 25."""
NUMBER_LEFT = re.compile(r"\[(?:[1-9]\d*|\d+[\s,;–-]+\d+(?:[\s,;–-]+\d+)*)\]|(?:^|(?<=\s))\[0\]")  # noqa: RUF001
"""A zero right behind something is an index, as in ``argv[0]``."""
MARKDOWN = MarkdownIt("commonmark")


class CitesAtRandom:
    """Writes words and numbers, as models do that mean well."""

    name = "scripted/random"

    def __init__(self) -> None:
        self._chance = random.Random(5)

    async def window_tokens(self) -> int | None:
        return None

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:  # noqa: ARG002
        chance = self._chance
        for _ in range(chance.randint(5, 60)):
            number, other = chance.randint(0, 12), chance.randint(0, 400)
            written = chance.choice(
                ["word ", "Words. ", "\n\n", f"[{number}]", f" [{number}, {other}]", f"[{other}]", f"[{number}][1]",
                 f" [{number}-{other}]", f"[{number}](https://elsewhere.example/x)", f"`[{number}]`", "[", "]", "- ",
                 f"\n```\n[{number}]\n```\n", f" [{number};{number + 1}]. ", f"![{number}](x.png)", f"\\[{number}]"]
            )  # fmt: skip
            at = chance.randint(0, len(written))
            for piece in (written[:at], written[at:]):
                if piece:
                    yield ModelText(piece)
        yield ModelEnd("stop", (), Usage(), self.name)


class Site:
    """A project whose documentation is one corpus."""

    def __init__(self, runtime: Runtime, project: ProjectView) -> None:
        self.runtime, self.project = runtime, project
        self._files: dict[str, dict[str, str]] = {}
        self._lines: dict[str, list[str]] = {}
        self._anchors: dict[str, tuple[str, set[str]]] = {}

    def read_index(self, file: Path) -> None:
        with closing(sqlite3.connect(file)) as db:
            for path, url, anchors in db.execute("SELECT path, url, anchors FROM pages"):
                self._anchors[path] = url, set(json.loads(anchors))

    async def problem_of(self, source: Any, url: str) -> str:
        """Why a citation does not hold; empty when it does."""
        page, _, anchor = url.partition("#")
        known = self._anchors.get(source.path)
        if known is None or known[0] != page:
            return f"{url} is not the page {source.path}"
        if anchor and anchor not in known[1]:
            return f"{url} lacks that anchor"
        docs, where = self.runtime.docs, source_of(self.project)
        if source.commit not in self._files:
            files = await docs.list_files(where, source.commit)
            self._files[source.commit] = {file.path: file.blob for file in files}
        blob = self._files[source.commit].get(source.path)
        if blob is None:
            return f"{source.path} is not in {source.commit}"
        if blob not in self._lines:
            self._lines[blob] = (await docs.read_file(where, blob)).decode("utf-8", "replace").splitlines()
        lines = self._lines[blob]
        if not 1 <= source.start_line <= source.end_line <= max(1, len(lines)):
            return f"{source.path} has no lines {source.start_line} to {source.end_line}"
        words = re.findall(r"\w{3,}", source.heading)
        above = lines[: source.start_line + 1]  # of a long section's later parts the heading is further up
        if source.heading != source.title and not any(all(word in line for word in words) for line in above):
            return f"{source.path}:{source.start_line} is not under the heading {source.heading!r}"
        return ""


def read(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the links that are named by a number, and prose with a number in brackets that leads nowhere."""
    links: list[tuple[str, str]] = []
    left: list[str] = []
    for block in MARKDOWN.parse(text.replace("\\[", "(")):
        href, named, prose = "", "", ""
        for token in block.children or ():
            match token.type:
                case "link_open":
                    href, named = str(token.attrGet("href")), ""
                case "link_close":
                    links += [(named, href)] if named.isdigit() and named != "0" else []
                    href = ""
                    prose += "x"
                case "text" if href:
                    named += token.content
                case "text":
                    prose += token.content
                case _:
                    prose += "`"
        if NUMBER_LEFT.search(prose):
            left.append(f"{prose} in {block.content}")
    return links, left


async def judged(site: Site, asked: str, number: int, model: Model) -> dict[str, Any]:
    began = time.perf_counter()
    first = 0.0
    sources: dict[int, Any] = {}
    text = resolution = ""
    cited: tuple[int, ...] = ()
    asking = Question(site.project.domain, f"msg_{number}", asked)
    async for event in answer(asking, index=site.runtime.index, model=model, settings=AnswerSettings()):
        match event:
            case SearchFinished(sources=found):
                first = first or 1000 * (time.perf_counter() - began)
                sources.update((source.number, source) for source in found)
            case TextDelta(text=delta):
                text += delta
            case ReplyDone() as done:
                resolution, cited = done.resolution, done.cited
            case ReplyBroken(message=message):
                raise SystemExit(f"no answer to {asked!r}: {message}")
            case _:
                pass
    links, left = read(text)
    problems = [f"a number is left: {words!r}" for words in left]
    problems += [f"cited {number} is not in the text" for number in cited if str(number) not in dict(links)]
    for told, url in links:
        source = sources.get(int(told))
        if source is None:
            problems.append(f"[{told}] was not found")
        elif unquote(source.url) != unquote(url):
            problems.append(f"[{told}] leads to {url} instead of {source.url}")
        elif problem := await site.problem_of(source, source.url):
            problems.append(problem)
    return {"first_ms": first, "answered": resolution == "answered", "links": len(links), "problems": problems}


async def measure(corpora: Path, names: list[str], wanted: int, scratch: Path) -> tuple[list[Any], list[Any]]:
    data = await asyncio.to_thread(set_up, corpora, names, scratch)
    async with open_for_command(data, Settings()) as runtime:
        sites = {name: await opened(runtime, name) for name in names}
        asked = [(name, question["query"]) for name in names for question in questions(corpora, name)]
        random.Random(3).shuffle(asked)
        builtin, scripted = BuiltinAnswer(), CitesAtRandom()
        rounds: list[tuple[str, Site, str, Model]] = []
        others = {name: [other for other in names if other != name] for name in names}
        for number, (name, query) in enumerate(asked):
            rounds.append(("builtin, own site", sites[name], query, builtin))
            if others[name]:
                rounds.append(
                    ("builtin, another site", sites[others[name][number % len(others[name])]], query, builtin)
                )
            rounds.append(("random citations", sites[name], query, scripted))
        rows: dict[str, list[dict[str, Any]]] = {}
        for number, (kind, site, query, model) in enumerate(rounds[:wanted]):
            rows.setdefault(kind, []).append(await judged(site, query, number, model))
    return told(rows)


def docsmith(data: Path, *arguments: str) -> Any:
    command = [sys.executable, "-m", "service", *arguments, "--data", str(data), "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)


def set_up(corpora: Path, names: list[str], scratch: Path) -> Path:
    """A data folder with a project for each corpus, made by the command line."""
    data = scratch / "data"
    docsmith(data, "organization", "create", "--name", "Bench")
    for name in names:
        folder = corpora / name
        if not folder.is_dir():
            folder = scratch / "corpora" / name
            with tarfile.open(corpora / f"{name}.tar.xz", "r:xz") as packed:
                packed.extractall(scratch / "corpora", filter="data")
        docsmith(data, "project", "create", "--name", name, "--domain", name, "--repository", str(folder))
        docsmith(data, "index", name)
    return data


async def opened(runtime: Runtime, name: str) -> Site:
    project, row = await project_of_domain(runtime.views, name), await get_site(runtime.views, name)
    assert project is not None
    assert row is not None
    assert row.file is not None
    await runtime.index.use(name, row.file)
    site = Site(runtime, project)
    site.read_index(runtime.index.path_of(name, row.file) / PAGES_FILE)
    return site


def told(rows: dict[str, list[dict[str, Any]]]) -> tuple[list[Any], list[Any]]:
    times = [row["first_ms"] for kind in rows.values() for row in kind]
    table, first = [], sorted(times[5:] or times)
    problems = [problem for kind in rows.values() for row in kind for problem in row["problems"]]
    for kind, judgements in rows.items():
        answered = sum(row["answered"] for row in judgements)
        table.append(
            {
                "answers": len(judgements),
                "kind": kind,
                "answered_%": round(100 * answered / len(judgements), 1),
                "citations": sum(row["links"] for row in judgements),
                "problems": sum(len(row["problems"]) for row in judgements),
            }
        )
    table += [{"kind": f"problem: {problem}"} for problem in problems[:20]]
    total = sum(row["links"] for kind in rows.values() for row in kind)
    goals = [
        at_most(f"of {total} citations in {sum(map(len, rows.values()))} answers, do not hold", 0, len(problems)),
        at_most("search step told, p95 ms", FIRST_EVENT_MS, round(first[int(0.95 * len(first))], 1)),
    ]  # fmt: skip
    own, other = (
        [row["answered"] for row in rows.get(f"builtin, {kind}", [])] for kind in ("own site", "another site")
    )
    if own and other:
        goals.append(
            at_least("builtin answers on their own site, %", OWN_ANSWERED, round(100 * sum(own) / len(own), 1))
        )
        goals.append(
            at_most("builtin answers on another site, %", OTHERS_ANSWERED, round(100 * sum(other) / len(other), 1))
        )
    return table, goals


def run(corpora: Path, names: list[str], answers: int) -> tuple[list[Any], list[Any]]:
    """Return rows and goals for the report: the given corpora, or all that have labelled questions."""
    labelled = [name for name in names or corpora_in(corpora) if questions(corpora, name)]
    if not labelled:
        print(f"no labelled questions in {corpora / 'queries'}: citations are not judged", file=sys.stderr)
        return [], []
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
        return asyncio.run(measure(corpora, labelled, answers, Path(scratch)))
