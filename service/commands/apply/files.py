"""A file of entries: plan the changes that it takes, and make them.

Every entry is planned before the first change is made, so a mistake in the file changes nothing. Then each entry is
planned again and its change made, one after the other: what was made stays, whatever happens next, and a second run
finds it and goes on. What the file does not name is left as it is.
"""

import fcntl
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from service.commands.apply.entries import Declared
from service.commands.apply.installation import Installation, Step
from service.commands.apply.keys import plan_key
from service.commands.apply.organizations import plan_organization, plan_site
from service.commands.apply.people import plan_person
from service.commands.apply.projects import plan_project
from service.commands.apply.webhooks import plan_webhook
from service.domain.errors import Conflict, ServiceError
from service.views.apply import AppliedView, ChangeView

PLANNERS: dict[str, Callable[[Installation, Any], Awaitable[Step]]] = {
    "organization": plan_organization,
    "person": plan_person,
    "project": plan_project,
    "site": plan_site,
    "key": plan_key,
    "webhook": plan_webhook,
}
"""By the tables of a file, in the order in which they are applied: each may refer to those before it."""


async def planned(installation: Installation, declared: Declared) -> AppliedView:
    """Return the changes that the entries take, and make none. Raise what is wrong with an entry, with its place."""
    steps = [await _planned(installation, table, number, entry) for table, number, entry in _entries(declared)]
    return applied_view([step.change for step in steps], dry_run=True)


async def apply(
    installation: Callable[[], Installation],
    declared: Declared,
    data: Path,
    on_change: Callable[[ChangeView], None],
) -> AppliedView:
    """Make the changes that the entries take, with a call for each when it is made. Raise as ``planned``, as the
    commands that make the changes do, and Conflict where another process applies a file to the data folder.
    """
    with _alone(data):
        await planned(installation(), declared)
        at, changes = installation(), []
        for table, number, entry in _entries(declared):
            step = await _planned(at, table, number, entry)
            change = step.change
            if step.act is not None:
                with _placed(table, number, entry):
                    done = await step.act()
                await at.views.catch_up()
                change = replace(change, id=done.id, notes=(*change.notes, *done.notes))
            on_change(change)
            changes.append(change)
    return applied_view(changes, dry_run=False)


def applied_view(changes: list[ChangeView], *, dry_run: bool) -> AppliedView:
    shown = tuple(change for change in changes if change.action != "none" or change.notes)
    unchanged = sum(change.action == "none" for change in changes)
    return AppliedView(dry_run, shown, unchanged)


def _entries(declared: Declared) -> Iterator[tuple[str, int, Struct]]:
    for table in PLANNERS:
        for number, entry in enumerate(getattr(declared, table), 1):
            yield table, number, entry


async def _planned(installation: Installation, table: str, number: int, entry: Struct) -> Step:
    with _placed(table, number, entry):
        return await PLANNERS[table](installation, entry)


@contextmanager
def _placed(table: str, number: int, entry: Struct) -> Iterator[None]:
    """Begin the message of an error with the place of its entry."""
    try:
        yield
    except ServiceError as error:
        named = getattr(entry, entry.__struct_fields__[0])
        place = f"[[{table}]] {number} ({named})" if named else f"[[{table}]] {number}"
        error.args = (f"{place}: {error}", *error.args[1:])
        raise


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Hold a lock of the data folder itself. The kernel releases it when this process dies."""
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Another process applies a file to {data}. Wait for it, and apply again.") from None
        yield
    finally:
        os.close(descriptor)
