"""The benchmark of the dashboard asks for every page, on a log of the size that it was given."""

from collections import Counter
from datetime import UTC, datetime

from eventstore import SQLiteEventStore
from scripts.bench_growth import Patterns
from scripts.dashboard.filled_log import Sizes, add_long_job, fill
from scripts.dashboard.pages import paths, shares
from service.domain.access.usage import RequestAccepted
from service.domain.jobs.events import JobCompleted, JobRequested, JobStarted, Message
from service.domain.model import Usage
from service.domain.search import SearchFilter
from service.domain.threads.recorded_reply import ReplyCompleted, ReplyStarted
from service.domain.threads.threads import MessagePosted, ThreadStarted
from service.queries.jobs.job_transcript import read_transcript
from tests.dashboard.served import LEAST

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NAMES = (
    "organizationId", "domain", "jobId", "keyId", "threadId", "messageId", "webhookId", "number", "position",
)  # fmt: skip
PATTERN = Patterns(
    job=[
        JobRequested(
            "org", "project", "/docs", "main", "", "builtin/editor", (Message("user", "Look"),), "Look", "docs/x",
            False, False, 2, NOW,
        ),
        JobStarted(1, "here", NOW),
        JobCompleted("Nothing to change.", NOW),
    ],
    thread=[
        ThreadStarted("org", "project", "kite", "anonymous", "0" * 64, NOW),
        MessagePosted("m", "m", "How?", (), "", SearchFilter(), 5, 2, NOW),
        ReplyStarted("r", "m", "here", NOW),
        ReplyCompleted("r", "So.", (1,), "answered", "builtin", Usage(), NOW),
    ],
    request=RequestAccepted("assistant", NOW, "org", "project", "key", "address"),
)  # fmt: skip


def test_every_page_is_asked_for():
    asked = {path.partition("?")[0] for path in paths({name: f"{{{name}}}" for name in NAMES})}
    pages = {
        path
        for method, _, path in (route.partition(" ") for route in LEAST)
        if method == "GET" and path.startswith(("/dashboard", "/operator")) and not path.endswith(("/live", "/export"))
    }
    assert pages <= asked


async def test_log_is_filled_to_its_size(tmp_path):
    assert await fill(tmp_path, PATTERN, Sizes(jobs=20, questions=30, events=500)) == 500
    job_id = await add_long_job(tmp_path, PATTERN, 100)
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        found = Counter(event.type for event in await store.read_all(limit=1_000))
        assert (found["job-requested"], found["job-failed"]) == (21, 2)
        assert (found["thread-started"], found["reply-completed"]) == (30, 30)
        assert len((await read_transcript(store, job_id)).entries) >= 100


def test_one_value_in_twenty_may_be_above_p95():
    assert shares([1.0] * 19 + [100.0]) == (1.0, 1.0)
