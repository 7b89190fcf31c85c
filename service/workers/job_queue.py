"""Whose turn it is: jobs wait, in the order in which they came, for room in all, in their project, on their branch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class JobQueue:
    """Of the jobs that wait, the first that fits begins: one whose branch or project is taken holds up no other."""

    def __init__(self, *, in_all: int, per_project: int) -> None:
        self._in_all, self._per_project = in_all, per_project
        self._waiting: dict[asyncio.Future[None], tuple[str, str]] = {}  # in order; project and branch
        self._running: list[tuple[str, str]] = []

    @asynccontextmanager
    async def turn(self, project_id: str, branch: str) -> AsyncIterator[None]:
        """Wait for it; leaving gives it to others."""
        wanted = (project_id, branch)
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
        for turn, (project_id, branch) in list(self._waiting.items()):
            if len(self._running) >= self._in_all:
                return
            in_project = sum(project == project_id for project, _ in self._running)
            if in_project < self._per_project and (project_id, branch) not in self._running and not turn.done():
                del self._waiting[turn]
                self._running.append((project_id, branch))
                turn.set_result(None)
