"""A log that cannot be written for a while stops nobody for good."""

import asyncio
import errno
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import pytest

from eventstore import OutcomeUnknown, SQLiteEventStore, StoreFull, StoreUnavailable, Views, execute
from service.adapters.builtin.answer import BuiltinAnswer
from service.agent.loop.budgets import Budgets
from service.domain.errors import DiskFull
from service.domain.jobs.decider import Message, RequestJob
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.domain.search import SearchFilter
from service.domain.threads.replies import ReplyBroken, ReplyDone
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.projections import all_projections
from service.streams import JOBS, PROJECTS, THREADS, decoded
from service.workers.jobs.runner import JobPorts, JobRunner, JobSettings
from service.workers.replies.broadcast import Broadcast
from service.workers.replies.replier import Replier
from service.workers.replies.reply_context import ReplyContext
from tests.fakes.clock import MovedClock
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.instances import FakeInstances
from tests.fakes.model import FakeModel, Says, call, calls
from tests.fakes.search_index import FakeSearchIndex

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class FillingStore:
    """The store, on a disk that is full for the next few appends of some streams."""

    def __init__(self, store):
        self._store = store
        self.refuses = {}
        self.error = StoreFull
        self.stores = False
        """What it refuses, it has stored: the answer is lost."""

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, stream, events, *, expected_version):
        category = stream.partition("-")[0]
        if self.refuses.get(category, 0) > 0:
            self.refuses[category] -= 1
            if self.stores:
                await self._store.append(stream, events, expected_version=expected_version)
                raise OutcomeUnknown("the answer was lost")
            raise self.error("it cannot be written")
        return await self._store.append(stream, events, expected_version=expected_version)


class OneModel:
    def __init__(self, model):
        self._model = model

    def for_agent(self, _alias):
        return self._model

    def for_assistant(self):
        return self._model

    def builtin_for_assistant(self):
        return BuiltinAnswer()

    def for_planning(self):
        return None


@pytest.fixture
async def store(tmp_path):
    real = await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db")
    yield FillingStore(real)
    await real.close()


@pytest.fixture
async def views(store, tmp_path):
    views = await Views.open(tmp_path / "views.db", store, all_projections())
    following = asyncio.create_task(views.run())
    yield views
    following.cancel()
    await asyncio.wait([following])
    await views.close()


async def done(store, views, docs, host, *, refused=0):
    """The types of the events of a job, to its end."""
    await execute(
        store, PROJECTS, "p", CreateProject(ProjectSettings("o", "Guide", "repo", "main", "", "guide", "local"), NOW)
    )
    write = calls(call("write", path="new.md", text="# New\n"))
    done = calls(call("finish", title="Add a page", summary="Added."))
    ports = JobPorts(OneModel(FakeModel([write, done])), docs, FakeSearchIndex(), {"local": host}, clock=MovedClock())
    settings = JobSettings(1, 1, Budgets(), "D <d@example.com>", retry_seconds=0)
    runner = JobRunner(store, views, ports, settings, FakeInstances())
    request = RequestJob(
        "o", "p", "repo", "main", "", "fake/model", (Message("user", "Add a page"),), "Add a page", "docs/x",
        branch_named=False, as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip
    await execute(store, JOBS, "j", request)
    store.refuses = {"job": refused}
    running = asyncio.create_task(runner.run())
    types = []
    async with asyncio.timeout(60), aclosing(store.subscribe(stream="job-j")) as events:
        async for recorded in events:
            for _, event in decoded(JOBS, [recorded]):
                types.append(event.__struct_config__.tag)
            if types[-1] in ("job-completed", "job-failed"):
                break
    running.cancel()
    await asyncio.wait([running])
    return types


@pytest.mark.parametrize("refused", [1, 2, 5])
async def test_job_waits_for_disk_space_and_goes_on(store, views, refused):
    host = FakeCodeHost()
    types = await done(store, views, FakeDocsSource({"index.md": "# Hi\n"}), host, refused=refused)
    assert types[-1] == "job-completed"
    assert types.count("committed") == types.count("pull-request-opened") == 1
    assert len(host.pull_requests) == 1


@pytest.mark.parametrize("lost", [1, 3, 1000])
async def test_job_records_each_step_once_when_answers_are_lost(store, views, lost):
    host, store.stores = FakeCodeHost(), True
    types = await done(store, views, FakeDocsSource({"index.md": "# Hi\n"}), host, refused=lost)
    assert types[-1] == "job-completed"
    for once in ("job-requested", "job-started", "committed", "pull-request-opened", "job-completed"):
        assert types.count(once) == 1
    assert types.count("model-replied") == 2
    assert len(host.pull_requests) == 1


class FillingDocs(FakeDocsSource):
    """Documents whose next few uses of a kind find no room, on the disk or in memory."""

    def __init__(self, kind, times, error=DiskFull):
        super().__init__({"index.md": "# Hi\n"})
        self.kind, self.times, self._error = kind, times, error

    def use(self, kind):
        if kind == self.kind and self.times > 0:
            self.times -= 1
            raise self._error

    async def fetch(self, source, *, branch=""):
        self.use("fetch")
        return await super().fetch(source, branch=branch)

    async def write_commit(self, source, new):
        self.use("commit")
        return await super().write_commit(source, new)

    async def push(self, source, *, branch, commit):
        self.use("push")
        await super().push(source, branch=branch, commit=commit)


@pytest.mark.parametrize("kind", ["fetch", "commit", "push"])
async def test_job_on_a_full_repository_disk_continues_with_space(store, views, kind):
    host, docs = FakeCodeHost(), FillingDocs(kind, 7)
    types = await done(store, views, docs, host)
    assert docs.times == 0
    assert types[-1] == "job-completed"
    assert types.count("job-waiting") == 7  # more often than a job is tried that crashes
    assert types.count("committed") == types.count("pull-request-opened") == len(host.pull_requests) == 1


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")],
    ids=["files", "threads"],
)
async def test_job_without_descriptors_continues_when_there_are_some(store, views, error):
    host, docs = FakeCodeHost(), FillingDocs("fetch", 7, error)
    assert (await done(store, views, docs, host))[-1] == "job-completed"
    assert len(host.pull_requests) == 1


@pytest.mark.parametrize(("times", "end"), [(4, "job-completed"), (5, "job-failed")])
async def test_job_without_memory_is_tried_a_few_times(store, views, times, end):
    host, docs = FakeCodeHost(), FillingDocs("fetch", times, MemoryError)
    types = await done(store, views, docs, host)
    assert (types[-1], types.count("job-waiting"), docs.times) == (end, 4, 0)
    assert len(host.pull_requests) == types.count("pull-request-opened") == (end == "job-completed")


class Replying:
    """A replier over a store, and what it tells of each reply."""

    def __init__(self, store, broadcast):
        self.store, self._broadcast = store, broadcast

    async def ask(self, thread_id, reply_id, refused):
        message = PostMessage(
            "m", "", "How to install?", (), "", SearchFilter(), 5, 2, reply_id, "here", "guide", "x", NOW
        )
        topic = self._broadcast.open(reply_id)
        await execute(self.store, THREADS, thread_id, StartThread("o", "p", "guide", "x", digest_of("k"), message))
        self.store.refuses = {"thread": refused}
        async with asyncio.timeout(60):
            return [event async for event in topic.listen()]


@asynccontextmanager
async def replying(store, views):
    broadcast, index = Broadcast(), FakeSearchIndex()
    index.put("guide", {"install.md": "# Install\n\nRun the installer.\n"})
    context = ReplyContext(OneModel(FakeModel([Says("Run it [1]."), Says("Run it [1].")])), index)
    replier = Replier(store, views, broadcast, context, instance="here", is_alive=lambda _: False)
    ready = asyncio.Event()
    running = asyncio.create_task(replier.run(ready=ready))
    await ready.wait()
    yield Replying(store, broadcast)
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])


async def test_unrecordable_reply_is_reported_and_the_next_is_fine(store, views):
    async with replying(store, views) as replies:
        broken = await replies.ask("one", "r1", 1000)
        assert isinstance(broken[-1], ReplyBroken)
        assert broken[-1].code == "unavailable"
        store.refuses = {}
        done = await replies.ask("two", "r2", 0)
        assert isinstance(done[-1], ReplyDone)


async def test_reply_is_whole_when_the_log_was_away_at_its_end(store, views):
    """As when a database restarts, or this process was paused for longer than a statement may take."""
    store.error = StoreUnavailable
    async with replying(store, views) as replies:
        done = await replies.ask("one", "r1", 2)
        assert isinstance(done[-1], ReplyDone)


@pytest.mark.parametrize("lost", range(5))
async def test_reply_is_recorded_once_when_answers_are_lost(store, views, lost):
    store.stores = True
    async with replying(store, views) as replies:
        await replies.ask("one", "r1", lost)
        async with asyncio.timeout(60), aclosing(store.subscribe(stream="thread-one")) as events:
            types = []
            async for recorded in events:
                types.append(recorded.type)
                if recorded.type in ("reply-completed", "reply-failed"):
                    break
        assert len(types) == len(set(types)), types
