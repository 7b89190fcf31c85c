"""The ports, the clock and the limits that one attempt at a job works with."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from service.agent.loop.budgets import Budgets
from service.agent.loop.recorder import Clock, Recorder
from service.agent.loop.sent import Sent
from service.domain.errors import Conflict
from service.domain.jobs.decider import JobCommand, Running
from service.ports.code_host import CodeHost
from service.ports.docs_source import DocsSource, Source, TreeFile
from service.ports.link_checker import LinkChecker
from service.ports.model import Model
from service.ports.search_index import SearchIndex

if TYPE_CHECKING:  # it comes with the first job, as all that reads sites: a start does without
    from service.agent.commit_files import KnownCommits


class JobContext(Struct, frozen=True):
    model: Model
    docs: DocsSource
    source: Source
    host: CodeHost
    index: SearchIndex | None
    domain: str
    recorder: Recorder
    now: Clock
    """The times of events."""
    budgets: Budgets
    author: str
    known: "KnownCommits"
    """Shared by all jobs of the process."""
    contexts: tuple[Source, ...] = ()
    """The project's context repositories."""
    link_checker: LinkChecker | None = None
    """Asks other sites whether links to them work; None: no one asks."""
    project: str = ""
    """The project's name."""
    mention: str = ""
    """The name by which comments on the pull request address the agent; empty where none are read."""
    on_text: Callable[[str], None] | None = None
    seconds: Callable[[], float] = time.monotonic
    """The clock for the job's budget: a wall clock that is set forward does not count as time spent."""

    sent: Sent = field(default_factory=Sent)
    listings: dict[str, Sequence[TreeFile]] = field(default_factory=dict)
    """The files of the commits that a merge is made of, read once."""

    async def record(self, command: JobCommand) -> Running:
        """Record the command, and return the job's state after it.

        Raises:
            Conflict: the job has ended meanwhile, or another instance has taken it up (``not_held``).
        """
        state = await self.recorder.record(command)
        if not isinstance(state, Running):
            raise Conflict("The job has ended.", code="not_held")
        return state
