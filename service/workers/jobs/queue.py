"""Choose the next job: jobs wait for a slot of the service, of their organization, of their project, of their branch.

The next slot goes to the organization that has the fewest jobs under way, and of its jobs to the one that came first.
So a thousand jobs of one organization, or some that stand still, do not delay another organization's for long.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple


class _Place(NamedTuple):
    organization_id: str
    project_id: str
    branch: str


class JobQueue:
    """The jobs that wait. One that fits begins: one whose branch or project is busy does not delay the others."""

    def __init__(self, *, in_all: int, per_project: int, per_organization: int | None = None) -> None:
        self._in_all, self._per_project = in_all, per_project
        self._per_organization = in_all if per_organization is None else per_organization
        self._waiting: dict[asyncio.Future[None], _Place] = {}  # in order
        self._running: list[_Place] = []

    @asynccontextmanager
    async def turn(self, project_id: str, branch: str, organization_id: str = "") -> AsyncIterator[None]:
        """Wait for it; leaving gives it to others."""
        wanted = _Place(organization_id, project_id, branch)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = wanted
        self._admit()
        try:
            await turn
            yield
        finally:
            if self._waiting.pop(turn, None) is None:  # it had been admitted, perhaps just when it was cancelled
                self._running.remove(wanted)
            self._admit()

    def _admit(self) -> None:
        while len(self._running) < self._in_all:
            turn = self._next()
            if turn is None:
                return
            self._running.append(self._waiting.pop(turn))
            turn.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        by_organization = Counter(place.organization_id for place in self._running)
        by_project = Counter(place.project_id for place in self._running)
        found, fewest = None, self._per_organization
        for turn, place in self._waiting.items():
            theirs = by_organization[place.organization_id]
            fits = theirs < fewest and by_project[place.project_id] < self._per_project
            if fits and place not in self._running and not turn.done():
                found, fewest = turn, theirs
                if not theirs:
                    break
        return found
