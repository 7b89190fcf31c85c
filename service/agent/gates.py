"""Checks before a pull request."""

from service.agent.workspace import Workspace
from service.domain.jobs import Problem


async def check(workspace: Workspace) -> tuple[Problem, ...]:
    del workspace
    return ()
