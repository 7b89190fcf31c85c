"""How many of the instructions of ``cases.py`` a model carries out, as the pull requests show it.

The service runs as its users run it, a process of its own asked over HTTP; what it pushed is then read and checked.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from scripts.agent.cases import CASES, Case
from scripts.agent.overhead import command, set_up
from service.adapters.git.dulwich_docs import DulwichDocs
from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.workspace import Workspace
from service.ports.docs_source import Source


class Api:
    """The service's HTTP API, as far as it is needed here."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)

    def finished(self, project_id: str, job_id: str) -> dict[str, Any]:
        while True:
            job: dict[str, Any] = self.ask(f"/v2/agent/{project_id}/job/{job_id}?wait=30")
            if job["status"] != "active":
                return job


@contextmanager
def served(data: Path, model: str, config: Path | None) -> Iterator[str]:
    """The service on a data folder, while it runs; its address."""
    environment = {name: value for name, value in os.environ.items() if name != "DOCSMITH_CORPORA"}
    environment["DOCSMITH_AGENT__MODEL"] = model
    words = [sys.executable, "-m", "service", "serve", "--port", "0", "--data", str(data)]
    if config is not None:
        words += ["--config", str(config)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit("the service does not start: try docsmith serve with the same settings")
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


async def score(
    corpora: dict[str, Path], scratch: Path, model: str, config: Path | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    data = scratch / "scored"
    projects = {name: set_up(data, folder, name) for name, folder in corpora.items()}
    key = command(data, "key", "create", "--kind", "admin")["token"]
    rows, used, passed = [], set(), {True: 0, False: 0}
    with served(data, model, config) as url:
        api = Api(url, key)
        asked = [
            api.ask(f"/v2/agent/{projects[case.corpus]}/job", {"prompt": case.instruction})["id"] for case in CASES
        ]
        docs = DulwichDocs(data, env={})
        for case, job_id in zip(CASES, asked, strict=True):
            job = api.finished(projects[case.corpus], job_id)
            wrong = await wrongs(case, job, docs, Source(projects[case.corpus], "", "main", "", "local"))
            passed[case.form] += not wrong
            used.add(job["model"])
            rows.append(
                {"what": f"instruction: {case.name}", "corpus": case.corpus, "right": "no" if wrong else "yes",
                 "what is wrong": "; ".join(wrong)[:160]}
            )  # fmt: skip
    forms = sum(case.form for case in CASES)
    name = ", ".join(sorted(used))
    right = passed[True] + passed[False]
    wanted = forms if model == "builtin" else -(-len(CASES) * 4 // 5)
    goal = "all of the forms that it knows" if model == "builtin" else "4 in 5"
    measured = passed[True] if model == "builtin" else right
    goals = [
        {"name": f"instructions carried out by {name}", "goal": f"{goal}: {wanted}",
         "measured": f"{measured}; of all {len(CASES)}: {right}", "met": measured >= wanted}
    ]  # fmt: skip
    return rows, goals


async def wrongs(case: Case, job: dict[str, Any], docs: DulwichDocs, source: Source) -> list[str]:
    """What is wrong with a job's outcome, in words; none when every check holds."""
    if not case.only:
        return [] if job["prLink"] is None else ["something was changed"]
    if job["status"] != "completed":
        return [f"failed: {job['failure']['code']}"]
    if job["prLink"] is None:
        return ["nothing was changed"]
    fetched = await docs.fetch(source, branch=job["branch"])
    assert fetched.branch_commit is not None
    before = {file.path: file.blob for file in await docs.list_files(source, fetched.base_commit)}
    after = {file.path: file.blob for file in await docs.list_files(source, fetched.branch_commit)}
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    blobs = await docs.read_files(source, [blob for tree in (before, after) for p in changed if (blob := tree.get(p))])

    def text(tree: dict[str, str], path: str) -> str | None:
        return blobs[tree[path]].decode() if path in tree and tree[path] in blobs else None

    found = [f"{path} was changed" for path in changed if not any(fnmatchcase(path, each) for each in case.only)]
    found += [] if case.only[0] in changed else [f"{case.only[0]} was not changed"]
    found += [f"{path} is still there" for path in case.gone if path in after]
    wanted = [after[path] for path in (*case.has, *case.lacks) if path in after]
    blobs = {**blobs, **await docs.read_files(source, wanted)}
    for path, texts in case.has.items():
        now = (text(after, path) or "").lower()
        found += [f"{path} lacks {each!r}" for each in texts if each.lower() not in now]
    for path, texts in case.lacks.items():
        now = (text(after, path) or "").lower()
        found += [f"{path} has {each!r}" for each in texts if each.lower() in now]
    lines = sum(_lines(text(before, path), text(after, path)) for path in changed)
    found += [f"{lines} lines are changed, more than {case.lines}"] if lines > case.lines else []
    workspace = await Workspace.open(docs, source, fetched.base_commit, {path: text(after, path) for path in changed})
    problems = await gates.check(workspace, Links(workspace), asked=[case.instruction])
    return found + [f"{problem.path}: {problem.message}" for problem in problems]


def _lines(before: str | None, after: str | None) -> int:
    diff = unified_diff((before or "").splitlines(), (after or "").splitlines(), n=0, lineterm="")
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in diff)
