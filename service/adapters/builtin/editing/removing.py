"""Remove a page: its entry in the navigation and the links to it go with it."""

import re
from collections.abc import Generator, Mapping, Sequence, Set

from msgspec import Struct, field

from service.adapters.builtin.editing.forms import Remove
from service.adapters.builtin.editing.navigation_files.nesting import without_entry, without_item
from service.adapters.builtin.editing.navigation_files.sidebars import document_id, leave_sidebars
from service.adapters.builtin.editing.navigation_files.sphinx import leave_toctrees
from service.adapters.builtin.editing.pages import is_page, stem_of
from service.adapters.builtin.editing.steps import MAX_NAMED, Call, Editing, Step, Steps, Turn, counted, rewrites
from service.adapters.builtin.editing.tool_results import dead_links, shown
from service.adapters.builtin.editing.unlinking import unlinked, without_emptied_headings
from service.domain.tool_values import DeadLink

MAX_ROUNDS = 10
"""Limit for how often the links are looked at: a check lists some hundred."""
_REDIRECTS = re.compile(r"[\"']redirects[\"']\s*+:")


class _Taken(Struct):
    """The links that were taken out of pages."""

    before: dict[str, str] = field(default_factory=dict)
    """The texts of these pages before."""
    plain: int = 0
    gone: int = 0

    def out_of_pages(self, by_path: Mapping[str, Sequence[DeadLink]], lines: Mapping[str, Sequence[str]]) -> list[Call]:
        """Return the calls that take these links out, and count them."""
        calls: list[Call] = []
        for path in filter(is_page, by_path):
            text = "\n".join([*lines[path], ""])
            after = unlinked(text, path, by_path[path])
            if edits := rewrites(path, lines[path], after.text.removesuffix("\n").split("\n")):
                calls += edits
                self.before.setdefault(path, text)
                self.plain, self.gone = self.plain + after.plain, self.gone + after.gone
        return calls


def remove_page(editing: Editing, asked: Remove) -> Steps:
    page = yield from editing.page(asked.path)
    if not page:
        return
    others = (yield from _broken(editing)) if editing.edits else ()
    known = {(link.path, link.found) for link in others}
    own_id = yield from document_id(editing, page)
    result = yield from editing.one(f"Deleting {page}. ", "delete", path=page)
    if result.is_error:
        editing.report_errors([result])
        return
    editing.say(f"Removed {page}.")
    yield from leave_sidebars(editing, page, own_id)
    yield from leave_toctrees(editing, page)
    taken, left = yield from _take_links_out(editing, page, known)
    if taken.before:
        parts = [(taken.plain, "became plain text"), (taken.gone, "went with a list item, card or sentence")]
        what = [f"{count} {did}" for count, did in parts if count]
        editing.say(f"Took the links to it out of {counted(len(taken.before), 'page')}: {' and '.join(what)}.")
    if left:
        listed = "".join(f"\n  - `{link.path}`, line {link.line}: {shown(link)}" for link in left[:MAX_NAMED])
        editing.say(f"{counted(len(left), 'link')} to it left, for people to change:{listed}")


def _take_links_out(
    editing: Editing, page: str, known: Set[tuple[str, str]]
) -> Generator[Step, Turn, tuple[_Taken, list[DeadLink]]]:
    """Take the links to a removed page out of pages and navigation, and return those that are left, too. ``known``:
    path and text of links that were broken before.
    """
    taken = _Taken()
    left: list[DeadLink] = []
    for _ in range(MAX_ROUNDS):
        links = [link for link in (yield from _broken(editing)) if (link.path, link.found) not in known]
        by_path: dict[str, list[DeadLink]] = {}
        for link in links:
            if link not in left:
                by_path.setdefault(link.path, []).append(link)
        left = links
        lines = yield from editing.all_lines(by_path)
        calls = taken.out_of_pages(by_path, lines)
        changed = bool(calls) and (yield from _rewritten(editing, calls))
        for path in by_path:
            if not is_page(path):
                done = yield from _out_of_navigation(editing, path, lines[path], page, by_path[path])
                changed = changed or done
        if not changed:
            break
    return taken, (yield from _take_headings_out(editing, taken, known, left))


def _take_headings_out(
    editing: Editing, taken: _Taken, known: Set[tuple[str, str]], left: list[DeadLink]
) -> Generator[Step, Turn, list[DeadLink]]:
    """Take out the headings below which no link is left, unless a link leads to one of them. Return the links that are
    left.
    """
    lines = yield from editing.all_lines(taken.before)
    calls: list[Call] = []
    back: list[Call] = []
    for path, before in taken.before.items():
        text = without_emptied_headings(before, "\n".join([*lines[path], ""]), path)
        after = text.removesuffix("\n").split("\n")
        calls += rewrites(path, lines[path], after)
        back += rewrites(path, after, lines[path])
    if not calls or not (yield from _rewritten(editing, calls)):
        return left
    links = [link for link in (yield from _broken(editing)) if (link.path, link.found) not in known]
    if len(links) == len(left):
        return links
    yield from _rewritten(editing, back)
    return left


def _broken(editing: Editing) -> Generator[Step, Turn, tuple[DeadLink, ...]]:
    found = yield from editing.one("Checking links. ", "check_links", changed=True)
    return dead_links(found)[0]


def _rewritten(editing: Editing, calls: Sequence[Call]) -> Generator[Step, Turn, bool]:
    results = yield from editing.ask(Step("", tuple(calls)))
    editing.report_errors(results)
    return any(not result.is_error for result in results)


def _out_of_navigation(
    editing: Editing, path: str, lines: Sequence[str], page: str, entries: Sequence[DeadLink]
) -> Generator[Step, Turn, bool]:
    if not lines:
        return False  # it may not be read
    after: list[str] | None = [*lines]
    is_yaml = path.endswith((".yml", ".yaml"))
    if is_yaml:  # an item goes once, though it may be found by two names
        entries = list({entry.line: entry for entry in entries}.values())
    for entry in sorted(entries, key=lambda link: -link.line):
        assert after is not None
        if is_yaml:
            without = without_item(after, entry.line)
        else:
            text = without_entry("\n".join(after), entry.line, entry.found)
            without = None if text is None else text.split("\n")
        after = after if without is None else without
    calls = rewrites(path, lines, after or [])
    if not calls or not (yield from _rewritten(editing, calls)):
        return False
    editing.say(f"Took it out of {path}.")
    text = "\n".join(lines)
    if _REDIRECTS.search(text):
        address = re.escape(stem_of(page).removeprefix(path.rpartition("/")[0]).strip("/"))
        here = len(re.findall(rf"[\"']destination[\"']\s*+:\s*+[\"']/?{address}/?(?:[#?][^\"']*)?[\"']", text))
        if here:
            editing.say(f"{path} redirects {counted(here, 'other address')} to it: give another destination.")
        else:
            editing.say(f"{path} has redirects: add one from its address if another page takes its place.")
    return True
