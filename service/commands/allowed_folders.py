"""The folders that an operator allows in a browser: what is allowed, allow one, take one back."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from eventstore import EventStore, Metadata, StoreUnavailable, execute, load
from service.domain.allowed_folders import AllowedFolders, AllowFolder, DisallowFolder
from service.domain.errors import Invalid
from service.runtime.system import now
from service.streams import FOLDERS

INSTALLATION = "installation"
"""There is one list, for all organizations and instances."""


async def allowed_folders(store: EventStore) -> Sequence[str]:
    """Return their full paths; none while the log cannot be read, when nothing could be made of them."""
    try:
        return (await known_folders(store)).folders
    except StoreUnavailable:
        return ()


async def known_folders(store: EventStore) -> AllowedFolders:
    """Return them, and those that are not allowed any more. Raises StoreUnavailable."""
    return (await load(store, FOLDERS, INSTALLATION)).state


async def allow_folder(store: EventStore, text: str, data: Path, metadata: Metadata) -> str:
    """Let people make projects of a folder and what is below it, and return its full path.

    Raises Invalid for what is no folder of this machine, for the root and for what holds the service's own data, and
    Conflict.
    """
    folder = await asyncio.to_thread(_checked, text, data)
    await execute(store, FOLDERS, INSTALLATION, AllowFolder(folder, now()), metadata=metadata)
    return folder


async def disallow_folder(store: EventStore, folder: str, metadata: Metadata) -> None:
    """Take a permission back; again does nothing."""
    await execute(store, FOLDERS, INSTALLATION, DisallowFolder(folder, now()), metadata=metadata)


def _checked(text: str, data: Path) -> str:
    if not text.startswith("/") or "\0" in text:
        raise Invalid(f"{text[:100]!r} is not the full path of a folder: it begins with a slash.")
    try:
        folder, own = Path(text).resolve(), data.resolve()
        is_folder = folder.is_dir()
    except OSError:
        is_folder = False
    if not is_folder:
        raise Invalid(f"There is no folder {text[:100]!r} on the machine of this service, or it cannot read it.")
    if folder.is_relative_to(own) or own.is_relative_to(folder):
        raise Invalid(f"{str(folder)[:100]!r} holds the service's own data. Name the folder of the documentation.")
    return str(folder)
