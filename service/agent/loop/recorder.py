"""How the parts of a job's work record their steps."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from service.domain.jobs.decider import Finished, JobCommand, Running

Clock = Callable[[], datetime]


class Recorder(Protocol):
    @property
    def job_id(self) -> str: ...

    async def record(self, command: JobCommand) -> Running | Finished:
        """Record what the command leads to; gives the job's state after it, with the messages that came meanwhile.

        Raises Conflict when the job has ended meanwhile, or another instance has taken it up.
        """

    async def confirm(self) -> None:
        """Make sure that the job is still this instance's, before something that is paid for, or that others see.

        Raises Conflict when it has ended meanwhile, or another instance has taken it up.
        """
