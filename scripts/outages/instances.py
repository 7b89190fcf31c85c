"""A fault of one of three instances of one log in PostgreSQL, while all of them work.

In each round every instance has jobs of both models and replies; each reply has a reader at the instance that writes it
and one at another. Then one instance is killed with SIGKILL, and started again before or after its lease has ended, or
paused with SIGSTOP for longer than its lease, and continued; or the database server is away meanwhile. Readers whose
connection ends come back at another instance; others stay.

What must hold is looked at after each round, and once more after the last one: an instance that was paused, or whose
request was under way, may do something late.
"""

import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.outages.several import COUNT, MODELS, RETURN_SECONDS, Returning, Several
from scripts.outages.site import Count, Lost
from scripts.outages.world import World
from service.ports.shared.instances import LEASE_SECONDS
from tests.eventstore.cluster import started_cluster
from tests.instances import databases
from tests.service_process import Service

PAUSE_SECONDS = LEASE_SECONDS + 5
REPLIES_EACH = 2
"""For each instance and round: one of each protocol."""
ONCE = ("committed", "branch-pushed", "pull-request-opened", "job-completed")
"""Events that each job has once."""
AGAIN = ("job-interrupted", "job-waiting")
"""Events after which a job is taken up again: the call of the model that was under way is made once more."""
LATE_SECONDS = 10.0
"""After the last round, for what comes late."""


@dataclass
class Totals:
    """The figures of all rounds."""

    rounds: int = 0
    held: int = 0
    jobs: int = 0
    taken_over: int = 0
    """Jobs that another instance went on with."""
    pull_requests: int = 0
    refused_requests: int = 0
    """Requests for a pull request that came late, from an instance that was paused, or from the one that took over from
    it: the code host refused them.
    """
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


@dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    name: str
    strike: Callable[[Several, Service, random.Random], None]
    """Do it to an instance, and undo it."""
    pauses: bool = False
    """The instance lives on, and may do late what it was about to do."""
    embedded: bool = False
    """The code host is the embedded one, and its home is the instance of every other round."""


class Round:
    """Work at all instances, a fault of one, and what came of it."""

    def __init__(self, there: Several, kind: Kind, number: int, chance: random.Random, totals: Totals) -> None:
        self._there, self._kind, self._number, self._chance, self._totals = there, kind, number, chance, totals
        self._members = there.several.members
        self._jobs: list[str] = []
        self._pages: dict[str, int] = {}
        """For the jobs of the scripted model."""
        self._readers: list[Returning] = []

    def run(self) -> None:
        """Raise Lost."""
        self._begin()
        time.sleep(self._chance.uniform(0.0, 1.5))
        is_home = self._kind.embedded and self._number % 2 == 0
        victim = self._members[0 if is_home else self._chance.randrange(COUNT)]
        self._kind.strike(self._there, victim, self._chance)
        self._check_readers()
        self._count_jobs()
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

    def _count_jobs(self) -> None:
        for job_id, (events, refused, calls) in self._checked().items():
            self._totals.taken_over += events["job-interrupted"] > 0
            self._totals.refused_requests += refused
            if job_id in self._pages:
                self._totals.steps += self._there.steps
                self._totals.repeated += calls - self._there.steps
        self._totals.jobs += len(self._jobs)
        self._totals.pull_requests += len(self._jobs)

    def check_again(self) -> None:
        """Raise Lost where something was done late."""
        self._checked()
        self._check_threads()

    def _checked(self) -> Mapping[str, tuple[Counter[str], int, int]]:
        """Return of each job its events, its refused requests for a pull request, and the calls of the model.

        Raise Lost unless it has one pull request, one branch, each step once, and no step on record was asked for
        again.
        """
        found = {}
        for job_id in self._jobs:
            job = self._there.ended(job_id)
            if job["status"] != "completed" or not job["prLink"]:
                raise Lost(f"job {job_id} ended as {job['status']}: {job.get('failure')}")
            opened = self._there.code_host.pulls(job["branch"])
            if len(opened) != 1 or not re.search(rf"/pulls/{opened[0]}(?:-|$)", job["prLink"]):
                raise Lost(f"job {job_id} has the pull requests {opened}, and says {job['prLink']}")
            events = self._there.types(job_id)
            if twice := {name: events[name] for name in ONCE if events[name] != 1}:
                raise Lost(f"job {job_id} has {twice}")
            refused = self._refused_requests(job_id, job["branch"], events)
            found[job_id] = events, refused, self._calls(job_id, events) if job_id in self._pages else 0
        return found

    def _refused_requests(self, job_id: str, branch: str, events: Counter[str]) -> int:
        """Return how many requests for the job's pull request came late. Raise Lost where that was not due to a pause.

        Each instance looks before it asks, so one that takes over from a killed one finds what that had opened. One
        that was paused between the two asks without another look, or has taken that moment from the one that took over:
        then the code host refuses the later request.
        """
        requests = self._there.code_host.requests(branch)
        if not requests:
            return 0
        what = f"job {job_id}, with {dict(events)}, asked for a pull request: {requests}"
        if sum(request.status == 201 for request in requests) != 1 or any(
            request.looks < request.requests for request in requests
        ):
            raise Lost(f"{what}; one is to succeed, and each to follow a look")
        senders = {request.instance for request in requests}
        is_taken_over = self._kind.pauses and events["job-interrupted"] > 0
        if len(requests) > (min(len(senders), events["job-started"]) if is_taken_over else 1):
            raise Lost(f"{what}; that is too often")
        return len(requests) - 1

    def _calls(self, job_id: str, events: Counter[str]) -> int:
        """Return how often the model was asked in a job. Raise Lost where that was too often."""
        asked, steps = self._there.world.asked().get(self._pages[job_id], Counter[int]()), self._there.steps
        if events["model-replied"] != steps or set(asked) != set(range(steps)):
            raise Lost(f"job {job_id} has {events['model-replied']} steps on record, and asked for {dict(asked)}")
        if asked.total() > steps + sum(events[name] for name in AGAIN):
            raise Lost(f"job {job_id} paid twice: {dict(asked)}, with {dict(events)}")
        return asked.total()

    def _check_threads(self) -> None:
        for thread in {reader.thread_id for reader in self._readers if reader.thread_id}:
            path = f"/v1/analytics/{self._there.service.project_id}/assistant/threads/{thread}"
            status, found = self._there.anywhere(path)
            last = found["messages"][-1] if status == 200 else {}
            if (last.get("state"), last.get("content")) != ("completed", self._there.text):
                raise Lost(f"thread {thread} has {status}, {last.get('state')}, {last.get('content')!r}")


def _rounds(
    kind: Kind, root: Path, rounds: int, chance: random.Random, count: Count, stores: Mapping[str, str]
) -> None:
    totals, model = Totals(), chance.choice(list(MODELS))
    with World(root) as world:
        there = Several(root, world, model, stores, embedded=kind.embedded)
        held: list[Round] = []
        try:
            for number in range(rounds):
                count.rounds += 1
                totals.rounds += 1
                began, one = time.monotonic(), Round(there, kind, number, chance, totals)
                with _noted(totals, kind, f"round {number}"):
                    one.run()
                    held.append(one)
                totals.held = len(held)
                _show(totals, kind, model, time.monotonic() - began)
            time.sleep(LATE_SECONDS)
            for one in held:
                with _noted(totals, kind, "after the last round"):
                    one.check_again()
            with _noted(totals, kind, "after the last round"):
                _check_branches(there)
            _show(totals, kind, model, LATE_SECONDS)
            count.acknowledged += totals.jobs + totals.readers
            count.refused += totals.refused
            if not there.several.place.verify().is_sound:
                totals.lost.append("the log is not sound")
        finally:
            there.several.kill()
    if totals.lost:
        raise Lost(f"{len(totals.lost)} of {rounds}: {totals.lost[0]}")


@contextmanager
def _noted(totals: Totals, kind: Kind, when: str) -> Iterator[None]:
    """Note what was lost, and go on."""
    try:
        yield
    except Lost as error:
        totals.lost.append(f"{when}: {error}")
        print(f"{kind.name}: {totals.lost[-1]}", file=sys.stderr, flush=True)


def _show(totals: Totals, kind: Kind, model: str, seconds: float) -> None:
    shown = {name: value for name, value in asdict(totals).items() if name != "lost"}
    shown |= {"lost": len(totals.lost), "seconds": round(seconds)}
    print(f"{kind.name}, {model}: {json.dumps(shown)}", file=sys.stderr, flush=True)


def _check_branches(there: Several) -> None:
    """Raise Lost unless each branch is one of a job, and ends where the job's record says."""
    found, pushed = dict(there.code_host.branches()), there.pushed()
    found.pop("main", None)
    if found != pushed:
        differ = {name: (found.get(name), pushed.get(name)) for name in found.keys() | pushed.keys()}
        raise Lost(
            f"branches differ from the record: { ({name: at for name, at in differ.items() if at[0] != at[1]}) }"
        )


def _kill(_there: Several, victim: Service, chance: random.Random) -> None:
    victim.kill()
    time.sleep(chance.choice((0.0, 5.0, LEASE_SECONDS + 5.0)))
    victim.start()


def kill_instance(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 of one of three instances over PostgreSQL while all work on jobs and replies"""
    with databases() as stores:
        _rounds(Kind("kill", _kill), root, rounds, chance, count, stores)


def kill_home(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """the same with the embedded code host, whose home is killed in every other round"""
    with databases() as stores:
        _rounds(Kind("kill-home", _kill, embedded=True), root, rounds, chance, count, stores)


def pause_instance(
    root: Path, rounds: int, chance: random.Random, count: Count, *, pause_seconds: float = PAUSE_SECONDS
) -> None:
    """SIGSTOP of one of three instances for longer than its lease while all work on jobs and replies"""

    def pause(_there: Several, victim: Service, _chance: random.Random) -> None:
        assert victim.process is not None
        victim.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(pause_seconds)
        finally:
            victim.process.send_signal(signal.SIGCONT)

    with databases() as stores:
        _rounds(Kind("pause", pause, pauses=True), root, rounds, chance, count, stores)


def kill_with_log_away(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 of one of three instances while PostgreSQL is away for some seconds"""
    cluster = started_cluster()

    def strike(_there: Several, victim: Service, chance: random.Random) -> None:
        if chance.random() < 0.5:
            victim.kill()
            time.sleep(chance.uniform(0.0, 3.0))
        cluster.kill()
        try:
            time.sleep(chance.uniform(0.0, 3.0))
            victim.kill()  # unless it was already
            time.sleep(chance.uniform(1.0, 8.0))
        finally:
            cluster.start()
        time.sleep(chance.choice((0.0, LEASE_SECONDS + 5.0)))
        victim.start()

    try:
        with databases(cluster.address) as stores:
            _rounds(Kind("kill-log-away", strike), root, rounds, chance, count, stores)
    finally:
        cluster.remove()
