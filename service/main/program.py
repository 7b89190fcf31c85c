"""The ``docsmith`` command: the command line, with the parts that only the composition root may name."""

import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.main import run
from service.cli.runtime import Program, Runtime
from service.domain.errors import NotFound

if TYPE_CHECKING:  # imported where a command needs them: together they take longer than most commands run
    from service.queries.models import AddedModels
    from service.runtime.settings.settings import Settings
    from service.runtime.settings.settings_shown import SettingsReader


def _open(data: Path, settings: "Settings") -> AbstractAsyncContextManager[Runtime]:
    from service.main.folder import open_for_command

    return open_for_command(data, settings)


def _import_structlog() -> None:
    """Import structlog without rich, which it would import wherever it is installed, for tracebacks that are not used
    here: 52 modules, 25 ms of a start.
    """
    known = sys.modules.get("rich")
    sys.modules["rich"] = None  # type: ignore[assignment]  # as the language has it: its import fails
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
        if known is not None:
            sys.modules["rich"] = known


async def _serve(data: Path, settings: "Settings", reread: "SettingsReader", drill: bool) -> None:
    _import_structlog()
    from service.main.process.serving import serve  # late: no other command needs what serves

    await serve(data, settings, reread, drill=drill)


async def _check(data: Path, settings: "Settings") -> None:
    from service.main.folder import configured_models
    from service.main.process.listening import admission_settings

    try:
        configured_models(settings)
    except NotFound:  # it may name a model that was added, which only the log knows
        configured_models(settings, added=await _added(data))
    admission_settings(settings)


async def _added(data: Path) -> "AddedModels":
    """Return the models that were added, without their keys; none where there is no log to read."""
    import asyncio

    from eventstore import EventStoreError
    from service.integrity.log_place import log_place
    from service.queries.models import AddedModels, read_profiles

    with suppress(EventStoreError, OSError):
        place = log_place(data)
        if await asyncio.to_thread(place.exists):
            store = await place.open(read_only=True)
            try:
                return AddedModels(await read_profiles(store))
            finally:
                await store.close()
    return AddedModels()


def _description() -> dict[str, Any]:
    from service.web.api.description.description import description

    return description()


def _find_damages(repositories: list[Path]) -> dict[str, str]:
    from service.adapters.hosted.soundness import find_damages

    return find_damages(repositories)


SCHEMAS = {
    "log": {"log": "eventstore.postgres.migrations", "service_log": "service.adapters.postgres.migrations"},
    "vault": {"vault": "eventstore.postgres.migrations", "service_vault": "service.adapters.postgres.migrations"},
}


def main(arguments: Sequence[str]) -> int:
    """Run the ``docsmith`` command; return its exit code."""
    program = Program(
        open=_open, serve=_serve, openapi=_description, check=_check, find_damages=_find_damages, schemas=SCHEMAS
    )
    return run(arguments, program)
