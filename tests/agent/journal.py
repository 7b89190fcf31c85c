"""A job's log in memory: commands are decided and folded as the event store does it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from service.agent.commit_files import KnownCommits
from service.agent.loop.budgets import Budgets
from service.agent.loop.job_context import JobContext
from service.agent.loop.loop import work
from service.agent.publishing import publish
from service.domain.errors import Conflict
from service.domain.jobs.decider import (
    Absent,
    AddMessage,
    Finished,
    Job,
    JobCommand,
    JobEvent,
    Message,
    RequestJob,
    Running,
    StartJob,
    decide,
    evolve,
)
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource, Source
from service.ports.model import Model
from service.ports.search_index import SearchIndex
from tests.fakes.code_host import FakeCodeHost

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
SOURCE = Source("p1", "", "main", "", "local")
AUTHOR = "Docsmith <docsmith@localhost>"


class Killed(Exception):
    """The process is gone."""


class Journal:
    """Records for one job, and dies when told to: at the k-th record or one of a kind, before or after it is kept."""

    def __init__(self, *messages: str | Message, branch: str = "docs/change", branch_named: bool = False) -> None:
        self.job_id = "job1"
        self.events: list[JobEvent] = []
        self.state: Job = Absent()
        self.records = 0
        self.dies_at: int | None = None
        self.dies_on: type | None = None
        self.dies_after_keeping = False
        self.steps_forward = timedelta()
        """How far the clock is set forward at each look, beside the second that passes."""
        self.is_held: Callable[[], bool] | None = None
        """Whether the job is still ours; None: always."""
        self._seconds = 0
        self._set_forward = timedelta()
        told = tuple(m if isinstance(m, Message) else Message("user", m) for m in messages)
        self._execute(
            RequestJob("o1", "p1", "", "main", "", "fake/model", told, "A title", branch, branch_named, False, 2, START)
        )

    def now(self) -> datetime:
        self._set_forward += self.steps_forward
        return START + timedelta(seconds=self.seconds()) + self._set_forward

    def seconds(self) -> float:
        """One passes at each look."""
        self._seconds += 1
        return self._seconds

    def start(self) -> Running:
        if not isinstance(self.state, Running):
            self._execute(StartJob("i1", self.now()))
        assert isinstance(self.state, Running)
        return self.state

    async def record(self, command: JobCommand) -> Running | Finished:
        self.records += 1
        dies = self.records == self.dies_at or (self.dies_on is not None and isinstance(command, self.dies_on))
        if dies and not self.dies_after_keeping:
            raise Killed
        self._execute(command)
        if dies:
            raise Killed
        assert isinstance(self.state, Running | Finished)
        return self.state

    async def confirm(self) -> None:
        if self.is_held is not None and not self.is_held():
            raise Conflict("Another instance runs it by now.", code="not_held")

    def replayed(self) -> Job:
        state: Job = Absent()
        for event in self.events:
            state = evolve(state, event)
        return state

    def say(self, text: str) -> None:
        """A message of the caller."""
        self._execute(AddMessage(text, self.now()))

    def _execute(self, command: JobCommand) -> None:
        for event in decide(command, self.state):
            self.events.append(event)
            self.state = evolve(self.state, event)


def context_of(journal: Journal, docs: DocsSource, model: Model) -> JobContext:
    return JobContext(
        model, docs, SOURCE, FakeCodeHost(), None, "docs", journal, journal.now, Budgets(), AUTHOR, KnownCommits(),
        seconds=journal.seconds,
    )  # fmt: skip


async def run_work(
    journal: Journal,
    docs: DocsSource,
    model: Model,
    *,
    host: CodeHost | None = None,
    source: Source = SOURCE,
    contexts: tuple[Source, ...] = (),
    index: SearchIndex | None = None,
    budgets: Budgets = Budgets(),  # noqa: B008  (immutable)
) -> Running:
    context = replace(context_of(journal, docs, model), source=source, index=index, budgets=budgets, contexts=contexts)
    return await work(journal.start(), replace(context, host=host) if host else context)


async def run_job(
    journal: Journal,
    docs: DocsSource,
    model: Model,
    *,
    host: CodeHost | None = None,
    source: Source = SOURCE,
    contexts: tuple[Source, ...] = (),
    budgets: Budgets = Budgets(),  # noqa: B008
) -> Running | Finished:
    """From any recorded state to the job's end, as the job runner does it."""
    context = replace(context_of(journal, docs, model), source=source, budgets=budgets, contexts=contexts)
    context = replace(context, host=host) if host else context
    state: Running | Finished = journal.start()
    while isinstance(state, Running):
        state = await publish(await work(state, context), context)
    return state
