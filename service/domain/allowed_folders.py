"""The folders of the service's machine that an operator lets people make projects of, beside those of the settings."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.errors import Conflict, Invalid
from service.domain.events import Event

MAX_FOLDERS, MAX_CHARACTERS = 100, 1_000


class FolderAllowed(Event, frozen=True, tag="folder-allowed"):
    folder: str
    """Its full path; what is below it is allowed, too."""
    allowed_at: datetime


class FolderDisallowed(Event, frozen=True, tag="folder-disallowed"):
    """Projects that were made of it stay, for their documentation was copied; it is not read again."""

    folder: str
    disallowed_at: datetime


FolderEvent = FolderAllowed | FolderDisallowed


class AllowFolder(Struct, frozen=True):
    folder: str
    now: datetime


class DisallowFolder(Struct, frozen=True):
    folder: str
    now: datetime


FolderCommand = AllowFolder | DisallowFolder


class AllowedFolders(Struct, frozen=True):
    folders: tuple[str, ...] = ()
    """In the order in which they were allowed."""
    taken_back: tuple[str, ...] = ()
    """Those that are not allowed any more: projects may have been made of them."""


def decide(command: FolderCommand, state: AllowedFolders) -> list[FolderEvent]:
    """Return the events of a command; none where it changes nothing. Raise Invalid, and Conflict for too many."""
    match command:
        case AllowFolder(folder=folder, now=now):
            if folder in state.folders:
                return []
            _require_folder(folder)
            if len(state.folders) >= MAX_FOLDERS:
                raise Conflict(f"{MAX_FOLDERS} folders are allowed already. Take one back first, or name one above.")
            return [FolderAllowed(folder, now)]
        case DisallowFolder(folder=folder, now=now):
            return [FolderDisallowed(folder, now)] if folder in state.folders else []
        case _:
            assert_never(command)


def _require_folder(folder: str) -> None:
    """Raise Invalid for what is no full path, and for the root, which would allow every folder."""
    if not folder.startswith("/") or not folder.isprintable() or len(folder) > MAX_CHARACTERS:
        raise Invalid(f"{folder[:100]!r} is not the full path of a folder: it begins with a slash.")
    if not folder.strip("/"):
        raise Invalid("This would allow the whole machine. Name the folder that holds the documentation.")


def evolve(state: AllowedFolders, event: FolderEvent) -> AllowedFolders:
    match event:
        case FolderAllowed(folder=folder):
            return AllowedFolders((*state.folders, folder), tuple(one for one in state.taken_back if one != folder))
        case FolderDisallowed(folder=folder):
            kept = tuple(one for one in state.folders if one != folder)
            return AllowedFolders(kept, (*state.taken_back, folder))
        case _:
            assert_never(event)
