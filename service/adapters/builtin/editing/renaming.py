"""Rename a page, and mend the links to it."""

from collections.abc import Generator, Sequence
from pathlib import PurePosixPath

from service.adapters.builtin.editing.forms import Rename
from service.adapters.builtin.editing.mending import mend_broken_by_changes
from service.adapters.builtin.editing.navigation_files.sidebars import document_id, rename_in_sidebars
from service.adapters.builtin.editing.navigation_files.sphinx import rename_in_toctrees
from service.adapters.builtin.editing.pages import is_index, is_page
from service.adapters.builtin.editing.steps import Editing, Step, Steps, Turn, named
from service.adapters.builtin.editing.tool_results import docs_folder


def rename_page(editing: Editing, asked: Rename) -> Steps:
    page = yield from editing.page(asked.path)
    if not page:
        return
    to = yield from _target(editing, page, asked)
    if not to:
        return
    own_id = yield from document_id(editing, page)
    result = yield from editing.one(f"Moving {page}. ", "move", path=page, to=to)
    if docs := docs_folder(result):
        to = f"{docs}/{to}"
        result = yield from editing.one("", "move", path=page, to=to)
    if result.is_error:
        editing.report_errors([result])
        return
    editing.say(f"Renamed {page} to {to}.")
    yield from rename_in_sidebars(editing, page, to, own_id)
    yield from rename_in_toctrees(editing, page, to)
    yield from mend_broken_by_changes(editing, "Fixed the links to it")


def _target(editing: Editing, page: str, asked: Rename) -> Generator[Step, Turn, str]:
    """Return the whole path that a page is to have; empty, with a message, where that is unclear.

    A folder is found by its short form as a page is: among those that exist, the nearest. What follows one that exists
    is made.
    """
    to = asked.to.strip("/").removeprefix("./")
    parts = to.split("/")
    into = asked.to.endswith("/")
    depths = range(len(parts), 0, -1)
    found = yield from editing.folders(["/".join(parts[:depth]) for depth in depths])
    known = dict(zip(depths, found, strict=True))
    if not into and asked.is_move and known[len(parts)] and not is_page(to):
        into = True
    if not into:
        parts, name = parts[:-1], _file_name(page, asked, parts[-1])
    else:
        name = PurePosixPath(page).name
    if not parts:
        return f"{_folder_of(page, asked)}{name}"
    for depth in range(len(parts), 0, -1):
        wanted = "/".join(parts[:depth])
        nearest = _nearest(wanted, known[depth], page)
        if len(nearest) > 1:
            editing.ask_people(f"{wanted} could be {named(nearest)}: give more of the path.")
            return ""
        if nearest:
            return "/".join([*nearest, *parts[depth:], name])
    written = asked.path.strip("/").removeprefix("./")
    for end in (written, written + PurePosixPath(page).suffix):
        if page == end or (page.endswith(f"/{end}") and "/" in written):
            return "/".join([page[: -len(end)] + "/".join(parts), name])
    editing.ask_people(f"Folder not found: {'/'.join(parts)}. To create it, give its whole path.")
    return ""


def _file_name(page: str, asked: Rename, name: str) -> str:
    """Return the last part of the new path, with a suffix; the page of a folder stays the page of a folder."""
    if is_page(name):
        return name
    if is_index(page) and not is_index(asked.path) and not is_index(name):
        return f"{name}/{PurePosixPath(page).name}"
    return name + PurePosixPath(page).suffix


def _folder_of(page: str, asked: Rename) -> str:
    """Return the folder that the page is in, or that its folder is in where that one is meant; with a slash."""
    folder = page.rpartition("/")[0]
    if is_index(page) and not is_index(asked.path):
        folder = folder.rpartition("/")[0]
    return f"{folder}/" if folder else ""


def _nearest(wanted: str, folders: Sequence[str], page: str) -> list[str]:
    """Return the folder with this whole path, else those that have most of their path with the page in common."""
    if wanted in folders or len(folders) < 2:
        return [wanted] if wanted in folders else [*folders]
    ranked = {folder: (-_common(folder, page), folder.count("/")) for folder in folders}
    return [folder for folder in folders if ranked[folder] == min(ranked.values())]


def _common(one: str, other: str) -> int:
    """Return how many folders two paths begin with together."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), one.count("/") + 1)
