"""Finds the home among instances: the one whose data folder has the repositories of the embedded code host.

The settings say so. Where they do not, it is the instance that has repositories already; and as long as no project has
one, the first that claims it in the log's database. Of two that start at once, only one gets it.
"""

from pathlib import Path

from eventstore import Views
from service.cli.runtime import Runtime
from service.ports.shared.instances import Instances
from service.queries.projects import list_projects
from service.queries.read_models import catch_up
from service.runtime.hosted_place import HOSTED


async def find_home(runtime: Runtime, instances: Instances) -> None:
    """Note whether the hosted repositories are in this instance's data folder, where it may have others."""
    place, setting = runtime.hosted_place, runtime.settings.instances.home
    if place.is_shared:
        return
    place.is_here = _is_declared_home(runtime.data, setting)
    if place.is_here or setting is not None or any(other.is_home for other in instances.others()):
        return
    await catch_up(runtime.views)
    if await _has_hosted(runtime.views) or not await instances.claim_home():
        return
    await catch_up(runtime.views)  # another one may have been home before, and have ended
    place.is_here = not await _has_hosted(runtime.views)


async def find_home_of_command(runtime: Runtime) -> None:
    """Note whether the hosted repositories are in the data folder that a command works on."""
    place, setting = runtime.hosted_place, runtime.settings.instances.home
    if not place.is_shared and not _is_declared_home(runtime.data, setting):
        place.is_here = setting is None and not await _has_hosted(runtime.views)


def _is_declared_home(data: Path, setting: bool | None) -> bool:
    """Return whether the settings or the data folder say that the hosted repositories are in this data folder."""
    return any((data / HOSTED).glob("*.git")) if setting is None else setting


async def _has_hosted(views: Views) -> bool:
    return any(project.code_host == "local" for project in await list_projects(views))
