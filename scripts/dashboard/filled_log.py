"""A log of the size that the dashboard's figures are for: jobs, questions, and counted requests up to a number.

One job and one reply of a real service are the pattern, as for ``scripts/bench growth``. Here their words and times
differ, over the last four weeks: lists, groups of questions and charts by day have something to tell apart.
"""

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from eventstore import Append, SQLiteEventStore
from scripts.bench_growth import BATCH, Patterns, encoded, renamed
from scripts.bench_streaming import WORDS
from service.domain.access.usage import RequestAccepted
from service.domain.jobs.events import (
    JobCompleted,
    JobFailed,
    JobRequested,
    JobStarted,
    Message,
    ModelReplied,
    ToolReturned,
    WorkspaceOpened,
)
from service.domain.model import ToolCall, Usage
from service.domain.threads.recorded_reply import ReplyCompleted
from service.domain.threads.threads import MessagePosted
from service.runtime.system import new_capability, new_id, new_job_id
from service.streams import JOBS, THREADS, USAGE
from service.workers.admission.admissions import STREAM

PERIOD = timedelta(days=28)
ONE_IN = 10
"""One in so many jobs has failed, and one in so many questions is unanswered."""
SAID = "The page says in two places how long a worker waits, and the two disagree. I read both before I change one."


class Sizes(Struct, frozen=True):
    jobs: int
    questions: int
    events: int


async def fill(data: Path, pattern: Patterns, sizes: Sizes) -> int:
    """Append jobs, questions and counted requests; return the log's head."""
    words, since = random.Random(5), datetime.now(UTC) - PERIOD
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        version = await store.stream_version(STREAM)

        def job(at: datetime, number: int) -> Append:
            return Append(JOBS.stream(new_job_id()), encoded(JOBS, _job(pattern.job, at, number, words)), 0)

        def question(at: datetime, number: int) -> Append:
            turn = _question(pattern.thread, at, number, words)
            return Append(THREADS.stream(new_capability()), encoded(THREADS, turn), 0)

        async def append_all(writes: Iterator[Append]) -> None:
            while batch := list(islice(writes, BATCH)):
                await store.append_all(batch)

        await append_all(job(at, number) for number, at in enumerate(_times(since, sizes.jobs)))
        await append_all(question(at, number) for number, at in enumerate(_times(since, sizes.questions)))
        counted = iter(_times(since, max(sizes.events - await store.head(), 0)))
        while batch := list(islice(counted, BATCH)):
            requests: list[RequestAccepted] = [replace(pattern.request, accepted_at=at) for at in batch]
            await store.append_all([Append(STREAM, encoded(USAGE, requests), version)])
            version += len(requests)
        return await store.head()


async def add_long_job(data: Path, pattern: Patterns, steps: int) -> str:
    """Append a job with this number of steps of its agent; return its id."""
    job_id, at = new_job_id(), datetime.now(UTC)
    events = list(_moved(pattern.job, at))
    start = 1 + max(place for place, one in enumerate(events) if isinstance(one, JobStarted | WorkspaceOpened))
    events[start:start] = _work(at, steps)
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        await store.append(JOBS.stream(job_id), encoded(JOBS, events), expected_version=0)
    return job_id


def _times(since: datetime, count: int) -> Iterator[datetime]:
    return (since + PERIOD * number / count for number in range(count))


def _moved(events: Iterable[Any], at: datetime) -> Iterator[Any]:
    """Yield the events as if the first had happened at this time."""
    shift: timedelta | None = None
    for event in events:
        times = {name: value for name, value in asdict(event).items() if isinstance(value, datetime)}
        if times and shift is None:
            shift = at - min(times.values())
        yield replace(event, **{name: value + (shift or timedelta()) for name, value in times.items()})


def _job(events: Iterable[Any], at: datetime, number: int, words: random.Random) -> Iterator[Any]:
    for event in _moved(events, at):
        match event:
            case JobRequested():
                text = f"Say how to set the {words.choice(WORDS)} of a {words.choice(WORDS)} {number}"
                yield replace(event, messages=(Message("user", text),), title=text)
            case JobCompleted(completed_at=ended) if number % ONE_IN == 0:
                yield JobFailed("stuck", "The agent made no progress.", ended)
            case _:
                yield event


def _question(events: Iterable[Any], at: datetime, number: int, words: random.Random) -> Iterator[Any]:
    for event in renamed(_moved(events, at), chat=new_id()):
        match event:
            case MessagePosted():
                text = f"How do I set the {words.choice(WORDS)} of a {words.choice(WORDS)}?"
                yield replace(event, text=text)
            case ReplyCompleted() if number % ONE_IN == 0:
                yield replace(event, resolution="unanswered", cited=())
            case _:
                yield event


def _work(at: datetime, steps: int) -> Iterator[Any]:
    """Yield what a model says and what its tools return, by turns."""
    for number in range(steps // 2):
        call, path = f"call-{number}", f"{WORDS[number % len(WORDS)]}.md"
        asked = ToolCall(call, "read_file", f'{{"path": "{path}"}}')
        yield ModelReplied("builtin/editor", f"{SAID} This is page {number}.", (asked,), Usage(900, 60, 0.0), at)
        read = "\n".join(f"{line}: {SAID}" for line in range(1, 21))
        yield ToolReturned(call, "read_file", read, False, at)
