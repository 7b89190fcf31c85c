"""Rename a page, and mend the links to it."""

from pathlib import PurePosixPath

from service.adapters.builtin.editing.forms import Rename
from service.adapters.builtin.editing.mending import mend_broken_by_changes
from service.adapters.builtin.editing.pages import is_page
from service.adapters.builtin.editing.steps import Editing, Steps
from service.adapters.builtin.editing.tool_results import docs_folder


def rename_page(editing: Editing, asked: Rename) -> Steps:
    page = yield from editing.page(asked.path)
    if not page:
        return
    to = _target(page, asked)
    result = yield from editing.one(f"Moving {page}. ", "move", path=page, to=to)
    if docs := docs_folder(result):
        to = f"{docs}/{to}"
        result = yield from editing.one("", "move", path=page, to=to)
    if result.is_error:
        editing.report_errors([result])
        return
    editing.say(f"Renamed {page} to {to}.")
    yield from mend_broken_by_changes(editing, "Fixed the links to it")


def _target(page: str, asked: Rename) -> str:
    """The whole path that a page is to have: what was left out is taken from where it is now."""
    to = asked.to.strip("/").removeprefix("./")
    if asked.to.endswith("/"):
        to = f"{to}/{PurePosixPath(page).name}"
    if not is_page(to):
        to += PurePosixPath(page).suffix
    folders = page.split("/")[:-1]
    first, inside, _ = to.partition("/")
    if not inside:
        return "/".join([*folders, to])
    if first in folders:
        return "/".join([*folders[: folders.index(first)], to])
    written = asked.path.strip("/").removeprefix("./")
    if "/" in written:
        for end in (written, written + PurePosixPath(page).suffix):
            if page.endswith(end):
                return page[: -len(end)] + to
    return to
