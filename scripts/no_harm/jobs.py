"""Random jobs, what each may do, and the harm that it did: a site before and after, as ``reader`` has both."""

import posixpath
import re
from collections.abc import Iterator
from random import Random

from msgspec import Struct

from scripts.no_harm import kinds
from scripts.no_harm.kinds import ODD_NAMES, UNKNOWN_SLUGS
from scripts.no_harm.reader import Ends, Reading, front_kind, without_targets
from scripts.no_harm.sites import FOLDERS, NAMES, Made
from tests.adapters.site_jobs import Done

WHAT = ("rename", "move", "remove", "fix", "title", "create", "replace")
BROKE, LEFT, NAVIGATION, FORMAT, TEXT = (
    "sound links broken",
    "links left",
    "pages off the navigation",
    "formats",
    "texts",
)
HARMS = (BROKE, LEFT, NAVIGATION, FORMAT, TEXT)
"""Links that were sound and are not, though nothing they name went; links that a job had to change, and neither changed
nor named; pages that the navigation lost; files with other line ends, byte order mark or kind of front matter; and
texts that changed beside what was asked for.
"""


class Task(Struct, frozen=True):
    what: str
    instruction: str
    page: str = ""
    to: str = ""
    """The new path of a page; empty where it does not move."""


class Harm(Struct, frozen=True):
    kind: str
    said: str


def make_task(made: Made, random: Random) -> Task:
    what = random.choice(WHAT)
    root = made.sample.folder
    own = [page for page in made.pages[1:] if page.startswith(root)] or made.pages
    page = random.choice(own)
    folder, name = posixpath.dirname(page), posixpath.basename(page)
    stem, suffix = posixpath.splitext(name)
    if stem.endswith(".fr"):
        stem, suffix = stem.removesuffix(".fr"), f".fr{suffix}"
    new = f"{_new_name(made, random)}{suffix}"
    match what:
        case "rename":
            to = posixpath.join(folder, new)
        case "move":
            goal = random.choice([each for each in FOLDERS if each] + ["brand new/"])
            folders = (*(each for each, _ in made.sample.rules.mounts), "")
            base = next(each for each in folders if not each or page.startswith(f"{each}/"))
            to = posixpath.join(base, goal, random.choice((new, name)))
        case "remove":
            return Task(what, f'remove page "{page}"', page)
        case "fix":
            return Task(what, "fix broken links")
        case "title":
            titles = ("New kites", "Kites: 2nd part", "A *star*", "The [bracket]", "Fish & chips", "Größe")
            known = titles[:4] if made.kind in UNKNOWN_SLUGS else titles
            title = random.choice(known)
            return Task(what, f'set the title of "{page}" to "{title}"', page)
        case "create":
            made_page = posixpath.join(folder, new)
            return Task(what, f'create page "{made_page}" with title "{stem} two" and text "Of wind."', made_page)
        case _:
            old, word = random.choice((("cat", "dog"), ("Part", "Piece"), ("kites", "dragons"), ("wind", "gale")))
            where = f'in "{page}"' if random.random() < 0.5 else "in every page"
            return Task("replace", f'replace "{old}" with "{word}" {where}', page)
    if to in made.files:
        to = posixpath.join(folder, f"other-{name}")
    return Task(what, f'{"move" if what == "move" else "rename"} page "{page}" to "{to}"', page, to)


def _new_name(made: Made, random: Random) -> str:
    return random.choice((*(f"new-{name}" for name in NAMES[:4]), *kinds.NAMES, *ODD_NAMES.get(made.kind, ())))


def harms(made: Made, task: Task, before: Reading, after: Reading, ended: Done) -> list[Harm]:
    """Return the harm that a job did."""
    found = [*_links(task, before, after, ended), *_navigation(task, before, after, ended)]
    found += [*_formats(task, before, after), *_texts(task, before, after), *_pages(task, before, after)]
    return [*found, *_copies(made, task, after, ended)]


def _moved(task: Task, path: str) -> str:
    return task.to if task.to and path == task.page else path


def _links(task: Task, before: Reading, after: Reading, ended: Done) -> Iterator[Harm]:
    gone = before.own.get(task.page, "") if task.what == "remove" else ""
    for name, ends in before.ends.items():
        was, now = before.links[name], after.links.get(name)
        if task.what == "remove" and was.path == task.page:
            continue
        is_known = ends.is_sound
        is_now = f"{now.target} {after.ends[name]}" if now is not None else "gone"
        text = f"{name} on {was.path}: {was.target} (was {ends}, is now {is_now})"
        if not is_known:
            if task.what == "fix" and now is not None and now.target != was.target and not after.ends[name].is_sound:
                yield Harm(BROKE, f"mended in vain: {text}")
            elif task.what == "fix" and now is None:
                yield Harm(BROKE, f"gone: {text}")
            continue
        if gone and ends.own == gone:
            if now is not None and not after.ends[name].is_sound and not _is_named(now.path, now.line, ended):
                yield Harm(LEFT, text)
            continue
        if now is None:
            if not _took_along(task, before, name, gone):
                yield Harm(BROKE, f"gone: {text}")
            continue
        then = after.ends[name]
        if task.what == "fix" and now.target != was.target:
            yield Harm(BROKE, f"was sound, was changed: {text}")
        if _is_same(ends, then, task) or _is_named(now.path, now.line, ended):
            continue
        yield Harm(LEFT if now.target == was.target and now.path == _moved(task, was.path) else BROKE, text)


def _took_along(task: Task, before: Reading, name: str, gone: str) -> bool:
    """Return whether a link went with a removed page's link in the same sentence or list item."""
    if task.what != "remove":
        return False
    seen = before.links[name]
    return any(
        other.path == seen.path and other.line == seen.line and before.ends[each].own == gone
        for each, other in before.links.items()
        if each != name
    )


def _is_same(was: Ends, now: Ends, task: Task) -> bool:
    """Return whether a link leads to the same place. The anchor of a heading in other words is another one."""
    if now.own != was.own or not now.has_anchor:
        return False
    return now.anchor == was.anchor or (task.what in ("title", "replace") and bool(now.anchor))


def _is_named(path: str, line: int, ended: Done) -> bool:
    named = any(one.path == path and (one.line == line or one.line is None) for one in ended.problems)
    return named or f"`{path}`, line {line}:" in ended.message


def _navigation(task: Task, before: Reading, after: Reading, ended: Done) -> Iterator[Harm]:
    gone = before.own.get(task.page, "") if task.what == "remove" else ""
    for path, words in before.listed.items():
        there = after.listed.get(_moved(task, path), frozenset())
        lost = words - there - {gone}
        is_named = any(one.path == path for one in ended.problems) or f"`{path}`, line" in ended.message
        if lost and not (is_named and lost == {before.own.get(task.page, "")}):
            yield Harm(NAVIGATION, f"{path} names {sorted(lost)} no longer")


def _formats(task: Task, before: Reading, after: Reading) -> Iterator[Harm]:
    for path, was in before.files.items():
        now = after.files.get(_moved(task, path))
        if now is None or now == was:
            continue
        facts = [(text.startswith("\ufeff"), "\r\n" in text, re.search(r"(?<!\r)\n", text) is not None,
                  front_kind(text), text.endswith("\n")) for text in (was, now)]  # fmt: skip
        if facts[0] != facts[1]:
            yield Harm(FORMAT, f"{path}: (mark, CRLF, LF, front matter, last end of line) {facts[0]}, now {facts[1]}")


def _pages(task: Task, before: Reading, after: Reading) -> Iterator[Harm]:
    for path, address in before.address_of.items():
        if path == task.page and task.what in ("remove", "rename", "move"):
            continue
        if after.address_of.get(path) != address:
            yield Harm(TEXT, f"{path} was at {address}, is at {after.address_of.get(path)}")
    if task.to and task.to not in after.files and task.page not in after.files:
        yield Harm(TEXT, f"{task.page} is neither there nor at {task.to}")


def _texts(task: Task, before: Reading, after: Reading) -> Iterator[Harm]:
    """Yield the pages whose words changed, beside what was asked for."""
    listed = {*before.rules.lists}
    for path, was in before.files.items():
        now = after.files.get(_moved(task, path))
        if now is None or path in listed or now == was or (task.what == "replace"):
            if now is None and path != task.page:
                yield Harm(TEXT, f"{path} is gone")
            continue
        if (
            (task.what == "title" and path == task.page)
            or task.what in ("remove",)
            or not re.search(r"\.(mdx?|rst)$", path)
        ):
            continue
        one, other = without_targets(was), without_targets(now)
        if one != other and "toctree" not in was:
            yield Harm(TEXT, f"{path} has other words: {_first_difference(one, other)}")


def _first_difference(one: str, other: str) -> str:
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    return next((f"{a!r} is now {b!r}" for a, b in lines if a != b), "its end")


def _copies(made: Made, task: Task, after: Reading, ended: Done) -> Iterator[Harm]:
    if task.what not in ("rename", "move", "remove"):
        return
    for copy in made.copies.get(task.page, []):
        if copy in after.files and not any(one.path == copy for one in ended.problems) and copy not in ended.message:
            yield Harm(LEFT, f"{copy} translates {task.page}")
