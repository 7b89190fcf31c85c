"""The servers that three instances work with: a model provider and two code hosts, which count what reaches them.

The provider and Gitea with its git server are in a thread of this process, which outlives every fault. The embedded
code host is files of the home.
"""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web
from dulwich.refs import Ref
from dulwich.repo import Repo

from scripts.outages.jobs import START_SECONDS
from scripts.outages.replies import goes_on
from service.adapters.git.folder import import_folder
from service.adapters.git.repositories import create
from tests.fakes.git_server import GitServer, git
from tests.fakes.gitea import FakeGitea
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider
from tests.service_process import DOCS, Service, write_docs

STEP_PIECES, STEP_SECONDS = 5, 0.06
GIT_PATH = "octo/guide.git"
TOKEN = "gt-s3cret-t0ken"
TOKEN_VARIABLE = "GUIDE_TOKEN"
_PAGE = re.compile(r"Write page (\d+) please")


def page_of(asked: Asked) -> int | None:
    """Return the number of the page that a request of a job is about; None for a reply."""
    found = _PAGE.search(json.dumps(asked.body["messages"]))
    return int(found[1]) if found else None


def step_of(asked: Asked) -> int:
    """Return the number of replies that came before it in the job."""
    return sum(message["role"] == "assistant" for message in asked.body["messages"])


def answers(asked: Asked) -> Reply | Failure:
    """Return the next step of a job, by how many came before, or of a reply."""
    number = page_of(asked)
    if number is None:
        return goes_on(asked)
    page = {"path": f"scripted-{number}.md", "text": f"# Page {number}\n\nSee [the installer](/install).\n"}
    finish = {"title": f"Add page {number}", "summary": "Done."}
    steps = [
        (Call("write", (json.dumps(page),), id="c1"),),
        (Call("read", ('{"path": "retry.md"}',), id="c2"),),
        (Call("check_links", ('{"changed": true}',), id="c3"),),
        (Call("finish", (json.dumps(finish),), id="c4"),),
    ]
    return Reply(("One ",) * STEP_PIECES, steps[min(step_of(asked), len(steps) - 1)], delay_seconds=STEP_SECONDS)


class CodeHost(Protocol):
    """Where the pull requests of the jobs are."""

    def project(self) -> Sequence[str]:
        """Return the options of ``docsmith project create``."""

    def pulls(self, branch: str) -> Sequence[int]:
        """Return the numbers of the pull requests of a branch."""

    def branches(self) -> Mapping[str, str]:
        """Return the commit of each branch."""

    def requests(self, branch: str) -> Sequence["Wanted"]:
        """Return the requests for a pull request of a branch, as far as they are counted."""


@dataclass
class Wanted:
    """A request for a pull request."""

    instance: str
    looks: int
    """How often the instance had looked for pull requests by then."""
    requests: int
    """How many the instance had asked for by then, this one included."""
    status: int = 0
    """That of the answer; 0 before."""


class CountingGitea(FakeGitea):
    """Notes which instance sends a request for a pull request, also one that is refused since there is one already.

    Each instance has a token of its own, which begins with ``TOKEN``.
    """

    def __init__(self, served: Path) -> None:
        super().__init__(self.served_branches, token=TOKEN)
        self._served = served
        self.wanted: dict[str, list[Wanted]] = {}
        """By branch."""
        self._looks, self._requests = Counter[str](), Counter[str]()

    def served_branches(self) -> dict[str, str]:
        listed = git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads", cwd=self._served)
        return dict(line.split() for line in listed.splitlines())

    @web.middleware
    async def _enter(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if (given := _token_of(request)).startswith(TOKEN):
            self.token = given  # compared before another request is looked at
        return await super()._enter(request, handler)

    async def _list(self, request: web.Request) -> web.Response:
        self._looks[_token_of(request)] += 1
        return await super()._list(request)

    async def _create(self, request: web.Request) -> web.Response:
        instance, branch = _token_of(request), (await request.json())["head"]
        self._requests[instance] += 1
        wanted = Wanted(instance, self._looks[instance], self._requests[instance])
        self.wanted.setdefault(branch, []).append(wanted)
        answer = await super()._create(request)
        wanted.status = answer.status
        return answer


def _token_of(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("token ")


class Gitea:
    """CodeHost: Gitea with a git server, which ask an instance for no password but its own token."""

    def __init__(self, root: Path) -> None:
        served = root / "served" / GIT_PATH
        docs = write_docs(root / "docs", DOCS)
        create(served, lambda made: import_folder(made, docs, "main"), branch="main")
        self.api, self.git = CountingGitea(served), GitServer(root / "served")

    def project(self) -> Sequence[str]:
        return (
            "--repository", self.git.url(GIT_PATH), "--code-host", "gitea", "--api-url", f"{self.api.url}/api/v1",
            "--git-token-env", TOKEN_VARIABLE,
        )  # fmt: skip

    def pulls(self, branch: str) -> Sequence[int]:
        return [pull["number"] for pull in self.api.pulls if pull["head"] == branch]

    def branches(self) -> Mapping[str, str]:
        return self.api.served_branches()

    def requests(self, branch: str) -> Sequence[Wanted]:
        return self.api.wanted.get(branch, ())


class Embedded:
    """CodeHost: the embedded one, as files of its home."""

    def __init__(self, root: Path, home: Service) -> None:
        self._docs, self._home = write_docs(root / "docs", DOCS), home

    def project(self) -> Sequence[str]:
        return ("--repository", str(self._docs))

    def pulls(self, branch: str) -> Sequence[int]:
        found = [json.loads(file.read_text()) for file in self._repository.glob("docsmith/pulls/*.json")]
        return [pull["number"] for pull in found if pull["head"] == branch]

    def branches(self) -> Mapping[str, str]:
        with Repo(str(self._repository)) as repository:
            found = repository.refs.as_dict(Ref(b"refs/heads"))
        return {name.decode(): commit.decode() for name, commit in found.items()}

    def requests(self, branch: str) -> Sequence[Wanted]:  # noqa: ARG002 - it is no server that could count them
        return ()

    @property
    def _repository(self) -> Path:
        return self._home.data / "hosted" / f"{self._home.project_id}.git"


class World:
    """The servers, in a thread that outlives every fault."""

    def __init__(self, root: Path) -> None:
        self.gitea, self.provider = Gitea(root), ScriptedProvider(answers)
        self._began, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        async with self.provider, self.gitea.git.server, self.gitea.api.server:
            self._began.set()
            await asyncio.to_thread(self._stop.wait)

    def asked(self) -> Mapping[int, Counter[int]]:
        """Return how often the model was asked for each step of the job of each page."""
        found: dict[int, Counter[int]] = {}
        for one in list(self.provider.asked):
            if (page := page_of(one)) is not None:
                found.setdefault(page, Counter())[step_of(one)] += 1
        return found

    def __enter__(self) -> "World":
        self._thread.start()
        self._began.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(START_SECONDS)
