"""Three instances of one log in PostgreSQL, of which one is killed or paused while all of them work.

In each round every instance has jobs of both models and replies; each reply has a reader at the instance that writes it
and one at another. Then one instance is killed with SIGKILL, and started again before or after its lease has ended, or
paused with SIGSTOP for longer than its lease, and continued. Readers whose connection ends come back at another
instance; others stay. The code host and the model provider are servers of their own, which count what reaches them.
"""

import asyncio
import http.client
import itertools
import json
import os
import random
import re
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from eventstore.postgres.connections import Address, Connections
from scripts.outages.jobs import START_SECONDS
from scripts.outages.replies import Reader, goes_on
from scripts.outages.site import Count, Lost, Site
from service.adapters.git.folder import import_folder
from service.adapters.git.repositories import create
from service.ports.shared.instances import LEASE_SECONDS
from tests.fakes.git_server import GitServer, git
from tests.fakes.gitea import FakeGitea
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider
from tests.instances import Instances, databases
from tests.service_process import DOCS, Service, write_docs

COUNT = 3
PAUSE_SECONDS = float(os.environ.get("FAULTS_PAUSE_SECONDS", LEASE_SECONDS + 5))
REPLIES_EACH = 2
"""For each instance and round: one of each protocol."""
ONCE = ("committed", "branch-pushed", "pull-request-opened", "job-completed")
"""Events that each job has once."""
STEP_PIECES, STEP_SECONDS = 5, 0.06
RETURN_SECONDS = float(os.environ.get("FAULTS_RETURN_SECONDS", "180"))
"""For a reader to get the rest of a reply, and for a job to end: leases and pauses included. A machine with much other
work takes longer.
"""
GIT_PATH = "octo/guide.git"
TOKEN = "gt-s3cret-t0ken"
MODELS = {
    "asked": "openai/gpt-5.2",  # is asked for the rest of a reply, and repeats a few words
    "prefilled": "deepseek/deepseek-chat",  # is given its own text to continue
    "builtin": "",
}


def answers(asked: Asked) -> Reply | Failure:
    """Return the next step of a job, by how many came before, or of a reply."""
    messages = asked.body["messages"]
    found = re.search(r"Write page (\d+) please", json.dumps(messages))
    if found is None:
        return goes_on(asked)
    name = found[1]
    page = {"path": f"scripted-{name}.md", "text": f"# Page {name}\n\nSee [the installer](/install).\n"}
    finish = {"title": f"Add page {name}", "summary": "Done."}
    steps = [
        (Call("write", (json.dumps(page),), id="c1"),),
        (Call("read", ('{"path": "retry.md"}',), id="c2"),),
        (Call("check_links", ('{"changed": true}',), id="c3"),),
        (Call("finish", (json.dumps(finish),), id="c4"),),
    ]
    before = sum(message["role"] == "assistant" for message in messages)
    return Reply(("One ",) * STEP_PIECES, steps[min(before, len(steps) - 1)], delay_seconds=STEP_SECONDS)


class CountingGitea(FakeGitea):
    """Notes each request for a pull request, also one that is refused since there is one already."""

    def __init__(self, served: Path) -> None:
        super().__init__(self._branches, token=TOKEN)
        self._served, self.wanted = served, list[str]()

    def _branches(self) -> dict[str, str]:
        listed = git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads", cwd=self._served)
        return dict(line.split() for line in listed.splitlines())

    async def _create(self, request: web.Request) -> web.Response:
        self.wanted.append((await request.json())["head"])
        return await super()._create(request)


class World:
    """The code host, its git server and the model provider, in a thread that outlives every fault."""

    def __init__(self, root: Path) -> None:
        served = root / "served" / GIT_PATH
        docs = write_docs(root / "docs", DOCS)
        create(served, lambda made: import_folder(made, docs, "main"), branch="main")
        self.gitea = CountingGitea(served)
        self.git = GitServer(root / "served", password=TOKEN)
        self.provider = ScriptedProvider(answers)
        self._began, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        async with self.provider, self.git.server, self.gitea.server:
            self._began.set()
            await asyncio.to_thread(self._stop.wait)

    def __enter__(self) -> "World":
        self._thread.start()
        self._began.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(START_SECONDS)


@dataclass
class Totals:
    """The figures of all rounds."""

    rounds: int = 0
    held: int = 0
    jobs: int = 0
    taken_over: int = 0
    """Jobs that another instance went on with."""
    pull_requests: int = 0
    steps: int = 0
    repeated: int = 0
    """Calls of the model that were made again: those under way at a fault, whose replies were on no record."""
    readers: int = 0
    characters: int = 0
    returned: int = 0
    """Readers who came back once or more."""
    recorded: int = 0
    """Those of them who found that their reply had ended, and took it from the thread."""
    refused: int = 0
    """Questions without an answer's first byte, and so without a thread."""
    lost: list[str] = field(default_factory=list)


class Several(Site):
    """Three instances and what they work for."""

    def __init__(self, root: Path, world: World, model: str, stores: Mapping[str, str]) -> None:
        self.root, self.world, self.jobs, self.threads = root, world, [], {}
        environment = {
            "DOCSMITH_LIMITS__PROJECT_HOUR": "0",
            "DOCSMITH_AGENT__MODEL": "builtin",
            "DOCSMITH_AGENT__CONCURRENT_JOBS": "8",
            "DOCSMITH_THREADS__GRACE_SECONDS": "600",
            "DOCSMITH_ASSISTANT__PLANNER": "off",
            "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
            "DOCSMITH_ASSISTANT__MODEL": "scripted" if MODELS[model] else "builtin",
            "DOCSMITH_MODELS__SCRIPTED__MODEL": MODELS[model] or MODELS["asked"],
            "DOCSMITH_MODELS__SCRIPTED__API_BASE": world.provider.openai_base,
            "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
            "SCRIPTED_KEY": "sk-scripted",
            "GUIDE_TOKEN": TOKEN,
        }
        several = Instances(root / "data", environment, count=COUNT, stores=dict(stores))
        self.service = self.several = several
        several.organization_id = several.cli("organization", "create", "--name", "Acme")["id"]
        project = several.cli(
            "project", "create", "--name", "Guide", "--repository", world.git.url(GIT_PATH), "--domain", "guide",
            "--code-host", "gitea", "--api-url", f"{world.gitea.url}/api/v1", "--git-token-env", "GUIDE_TOKEN",
        )  # fmt: skip
        several.project_id, several.domain = project["id"], "guide"
        several.cli("index", "guide")
        several.admin_key = several.cli("key", "create", "--kind", "admin")["token"]
        several.assistant_key = several.cli("key", "create", "--kind", "assistant", "--domain", "guide")["token"]
        several.start()
        for member in several.members:
            whole = self._answered(member)
        self.text = whole.text
        job_id = self.create_job(several.members[0], {"prompt": "Write page 999 please", "model": "scripted"})
        self.ended(job_id)
        self.steps = Counter(self.types(job_id))["model-replied"]
        """Calls of the model in a job of the scripted model: the checks send it back once."""

    def _answered(self, member: Service) -> "Returning":
        """Return a reader who got a whole reply there, once the site is indexed there."""
        until, number = time.monotonic() + RETURN_SECONDS, 0
        while True:
            number += 1
            whole = Returning(self, f"whole-{member.data.name}-{number}", 2, member, patience=RETURN_SECONDS)
            whole.begin(asks=True)
            whole.wait(RETURN_SECONDS)
            if whole.is_over:
                return whole
            if time.monotonic() > until:
                raise Lost(f"without a fault there is no answer: {whole.raw[-300:]!r}")

    def create_job(self, member: Service, body: Mapping[str, Any]) -> str:
        path = f"{member.url}/v2/agent/{self.service.project_id}/job"
        headers = {**self.service.admin, "Content-Type": "application/json"}
        status, text, _ = self._open(urllib.request.Request(path, json.dumps(body).encode(), headers))
        if status != 201:
            raise Lost(f"a job was answered with {status} before the fault: {text[-300:]}")
        job_id: str = json.loads(text)["id"]
        return job_id

    def ended(self, job_id: str) -> dict[str, Any]:
        """Return a job once it has ended. Raise Lost."""
        until = time.monotonic() + RETURN_SECONDS
        job: dict[str, Any] = {"status": "active"}
        while job["status"] == "active" and time.monotonic() < until:
            status, job = self.anywhere(f"/v2/agent/{self.service.project_id}/job/{job_id}?wait=10")
            if status != 200:
                raise Lost(f"job {job_id}: {status} {str(job)[:300]}")
        return job

    def types(self, job_id: str) -> list[str]:
        with closing(Connections.open(Address(self.several.stores["DOCSMITH_STORE"]), read_only=True)) as log:
            return [str(type_) for (type_,) in log.fetch("SELECT type FROM events WHERE stream = $1", f"job-{job_id}")]

    def anywhere(self, path: str) -> tuple[int, Any]:
        """Return the answer of an instance that answers, and its status."""
        until, status, body = time.monotonic() + RETURN_SECONDS, 0, ""
        for member in itertools.cycle(self.several.members):
            if member.process is not None:
                status, body, _ = self._open(urllib.request.Request(f"{member.url}{path}", headers=self.service.admin))
                if status not in (0, 502, 503):
                    break
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        return status, json.loads(body) if body.startswith(("{", "[")) else body


class Returning(Reader):
    """A reader who comes back, each time at the next instance, until the reply is whole."""

    def __init__(self, there: Several, chat: str, version: int, member: Service, *, patience: float) -> None:
        super().__init__(there, chat, version)
        self._several, self.url, self._patience = there, member.url, patience
        self._next = itertools.cycle(range(COUNT))
        self.connections = 0
        self.wrong = ""
        """Texts that a connection gave and that are no beginning of the answer."""
        self.is_recorded = False
        self.begun = threading.Event()

    def begin(self, *, asks: bool) -> None:
        body = {"fp": "anonymous", "messages": [self.message()], "id": self.chat} if asks else None
        path = self._path if asks else f"{self._path}/{self.chat}/stream"
        self._thread = threading.Thread(target=self._until_whole, args=[path, body], daemon=True)
        self._thread.start()

    def _until_whole(self, path: str, body: Mapping[str, Any] | None) -> None:
        until = time.monotonic() + RETURN_SECONDS
        self._once(path, body)
        while not self.is_over and time.monotonic() < until and not self.wrong:
            if not self.thread_id:
                return  # the question was not accepted
            members = self._several.several.members
            member = members[next(self._next)]
            if member.process is None:
                continue
            time.sleep(0.3)
            self.url = member.url
            self._once(f"{self._path}/{self.chat}/stream", None)
            self.is_recorded = self.status == 204
            if self.is_recorded:
                return

    def _once(self, path: str, body: Mapping[str, Any] | None) -> None:
        self.raw, self.status, self.connections = b"", 0, self.connections + 1
        headers = {**self._there.service.assistant, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body and json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=self._patience) as answer:
                self.thread_id = answer.headers.get("X-Thread-Id") or self.thread_id
                self.status = answer.status
                self.begun.set()
                while piece := answer.read1(65_536):
                    self.raw += piece
        except urllib.error.HTTPError as error:
            with error:
                self.status = error.code
        except (OSError, http.client.HTTPException):  # the instance was killed, or is silent for too long
            pass
        text = getattr(self._several, "text", None)
        if text is not None and not text.startswith(self.text):
            self.wrong = self.text


class Round:
    """Work at all instances, a fault of one, and what came of it."""

    def __init__(self, there: Several, number: int, chance: random.Random, totals: Totals) -> None:
        self._there, self._number, self._chance, self._totals = there, number, chance, totals
        self._members = there.several.members
        self._jobs: list[str] = []
        self._pages: dict[str, int] = {}
        """For the jobs of the scripted model."""
        self._readers: list[Returning] = []

    def run(self, kind: str) -> None:
        """Raise Lost."""
        self._begin()
        time.sleep(self._chance.uniform(0.0, 1.5))
        victim = self._members[self._chance.randrange(COUNT)]
        if kind == "kill":
            victim.kill()
            time.sleep(self._chance.choice((0.0, 5.0, LEASE_SECONDS + 5.0)))
            victim.start()
        else:
            assert victim.process is not None
            victim.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(PAUSE_SECONDS)
            finally:
                victim.process.send_signal(signal.SIGCONT)
        self._check_readers()
        self._check_jobs()
        self._check_threads()

    def _begin(self) -> None:
        page = 1_000 + self._number * COUNT
        for at, member in enumerate(self._members):
            prompt = f'create page page-{page + at}.md with title "Page {page + at}" and text "This is {page + at}."'
            self._jobs.append(self._there.create_job(member, {"prompt": prompt}))
            body = {"prompt": f"Write page {page + at} please", "model": "scripted"}
            self._jobs.append(self._there.create_job(member, body))
            self._pages[self._jobs[-1]] = page + at
        asking = []
        for at, member in enumerate(self._members):
            for which in range(REPLIES_EACH):
                chat, version = f"chat-{self._number}-{at}-{which}", 1 + which % 2
                asking.append(self._reader(chat, version, member, asks=True))
                time.sleep(self._chance.uniform(0.0, 0.2))
        for at, reader in enumerate(asking):
            if reader.begun.wait(20) and reader.thread_id:
                other = self._members[(at // REPLIES_EACH + 1 + at % REPLIES_EACH) % COUNT]
                self._reader(reader.chat, reader.version, other, asks=False, thread_id=reader.thread_id)

    def _reader(self, chat: str, version: int, member: Service, *, asks: bool, thread_id: str = "") -> Returning:
        patience = self._chance.choice((5.0, RETURN_SECONDS))
        reader = Returning(self._there, chat, version, member, patience=patience)
        reader.thread_id = thread_id
        self._readers.append(reader)
        reader.begin(asks=asks)
        return reader

    def _check_readers(self) -> None:
        """Each reader gets each character once: on each connection, and of the whole reply at the end."""
        until, text = time.monotonic() + RETURN_SECONDS, self._there.text
        for reader in self._readers:
            reader.wait(max(0.0, until - time.monotonic()))
            what = f"{reader.chat} of protocol {reader.version}, connection {reader.connections}"
            if reader.wrong:
                raise Lost(f"{what}: {reader.wrong!r} is no beginning of the answer")
            if not reader.thread_id:
                self._totals.refused += 1
                continue
            if not reader.is_recorded and (not reader.is_over or reader.text != text):
                raise Lost(f"{what}: the reader got {reader.status} and ...{reader.raw[-200:]!r}")
            self._totals.readers += 1
            self._totals.characters += len(text)
            self._totals.returned += reader.connections > 1
            self._totals.recorded += reader.is_recorded

    def _check_jobs(self) -> None:
        """Each job has one pull request, one branch, each step once; no step on record is asked for again."""
        for job_id in self._jobs:
            job = self._there.ended(job_id)
            if job["status"] != "completed" or not job["prLink"]:
                raise Lost(f"job {job_id} ended as {job['status']}: {job.get('failure')}")
            gitea = self._there.world.gitea
            opened = [pull["number"] for pull in gitea.pulls if pull["head"] == job["branch"]]
            if len(opened) != 1 or not job["prLink"].endswith(f"/pulls/{opened[0]}"):
                raise Lost(f"job {job_id} has the pull requests {opened}, and says {job['prLink']}")
            found = Counter(self._there.types(job_id))
            twice = {name: found[name] for name in ONCE if found[name] != 1}
            if twice:
                raise Lost(f"job {job_id} has {twice}")
            self._totals.taken_over += found["job-interrupted"] > 0
            if job_id in self._pages:
                self._check_steps(job_id, found["model-replied"])
        self._totals.jobs += len(self._jobs)
        self._totals.pull_requests += len(self._jobs)

    def _check_steps(self, job_id: str, replied: int) -> None:
        name, asked = f"Write page {self._pages[job_id]} please", Counter[int]()
        for one in list(self._there.world.provider.asked):
            messages = one.body["messages"]
            if name in json.dumps(messages):
                asked[sum(message["role"] == "assistant" for message in messages)] += 1
        steps = self._there.steps
        if replied != steps or set(asked) != set(range(steps)):
            raise Lost(f"job {job_id} has {replied} steps on record, and asked for {dict(asked)}")
        if asked.total() > steps + 1:  # one was under way at the fault
            raise Lost(f"job {job_id} paid twice: {dict(asked)}")
        self._totals.steps += steps
        self._totals.repeated += asked.total() - steps

    def _check_threads(self) -> None:
        for thread in {reader.thread_id for reader in self._readers if reader.thread_id}:
            path = f"/v1/analytics/{self._there.service.project_id}/assistant/threads/{thread}"
            status, found = self._there.anywhere(path)
            last = found["messages"][-1] if status == 200 else {}
            if (last.get("state"), last.get("content")) != ("completed", self._there.text):
                raise Lost(f"thread {thread} has {status}, {last.get('state')}, {last.get('content')!r}")


def _rounds(kind: str, root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    totals, model = Totals(), chance.choice(list(MODELS))
    with World(root) as world, databases() as stores:
        there = Several(root, world, model, stores)
        try:
            for number in range(rounds):
                count.rounds += 1
                totals.rounds += 1
                began = time.monotonic()
                try:
                    Round(there, number, chance, totals).run(kind)
                    totals.held += 1
                except Lost as error:
                    totals.lost.append(f"round {number}: {error}")
                    print(f"{kind}, {model}: {totals.lost[-1]}", file=sys.stderr, flush=True)
                shown = {name: value for name, value in asdict(totals).items() if name != "lost"}
                shown["seconds"] = round(time.monotonic() - began)
                print(f"{kind}, {model}: {json.dumps(shown)}", file=sys.stderr, flush=True)
            count.acknowledged += totals.jobs + totals.readers
            count.refused += totals.refused
            if not there.several.place.verify().is_sound:
                totals.lost.append("the log is not sound")
        finally:
            there.several.kill()
    if totals.lost:
        raise Lost(f"{len(totals.lost)} of {rounds}: {totals.lost[0]}")


def kill_instance(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 of one of three instances over PostgreSQL while all work on jobs and replies"""
    _rounds("kill", root, rounds, chance, count)


def pause_instance(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """SIGSTOP of one of three instances for longer than its lease while all work on jobs and replies"""
    _rounds("pause", root, rounds, chance, count)
