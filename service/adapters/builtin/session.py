"""The builtin editor's work for each form of instruction: the tools that it calls, and its use of their results.

A session is a generator of steps; it is sent the results of each. It knows only what it is sent, so it can be run
again from the start.
"""

import json
import re
from collections.abc import Generator, Iterable, Sequence
from pathlib import PurePosixPath
from typing import assert_never

from msgspec import Struct

from service.adapters.builtin.forms import (
    EVERY_PAGE,
    FORMS,
    Add,
    Create,
    FixLinks,
    Instruction,
    Rename,
    Replace,
    parse,
    short,
    title_of,
)
from service.adapters.builtin.navigation import NAVIGATION_FILES, entry_for, is_named, names_pages
from service.adapters.builtin.pages import ends_with, is_index, is_meant, is_page, section_of, stem_of, top_of
from service.adapters.builtin.tool_results import (
    dead_links,
    docs_folder,
    found_in,
    lines_in,
    number_listed,
    paths_in,
    reason_of,
    shown,
    times_replaced,
)  # fmt: skip
from service.ports.model import ToolMessage

MAX_INSTRUCTIONS = 20
MAX_EDITS = 200
"""Limit for one instruction: people will not review more in one pull request."""
MAX_NAMED = 20
"""Pages or links that a summary names one by one."""


class Step(Struct, frozen=True):
    """The text to say, and the tools to call with their arguments."""

    text: str
    calls: tuple["Call", ...] = ()


class Turn(Struct, frozen=True):
    """The outcome of a step: results in the order of its calls, messages of people meanwhile, results of the checks."""

    results: tuple[ToolMessage, ...] = ()
    asked: tuple[str, ...] = ()
    checked: bool = False


Steps = Generator[Step, Turn, None]
Call = tuple[str, dict[str, object]]

EDITING = frozenset({"replace", "insert", "write", "move", "delete"})
"""The tools that change files."""

_LISTED_SUFFIXES = (".md", ".markdown", ".rst", ".adoc")


class _Insertion(Struct, frozen=True):
    text: str
    after_line: int | None

    def call(self, page: str) -> Call:
        place = {} if self.after_line is None else {"after_line": self.after_line}
        return "insert", {"path": page, "text": self.text, **place}


def _insertion(asked: Add, lines: Sequence[str]) -> _Insertion | None:
    """Return whole lines for the place, separated by blank ones; None when the page does not have the heading."""
    if asked.place == "top":
        after = top_of(lines)
    else:
        section = section_of(lines, asked.heading)
        if section is None:
            return None
        after = section.heading - 1 if asked.place == "before" else section.end
    before = "\n" if after and lines[after - 1].strip() else ""
    behind = "\n" if after < len(lines) and lines[after].strip() else ""
    return _Insertion(f"{before}{_block(asked.text)}\n{behind}", after)


def _block(text: str) -> str:
    return text.strip("\n")


def _where(asked: Add) -> str:
    return f" {asked.place} {short(asked.heading)}" if asked.heading else " at the top" if asked.place == "top" else ""


def _is_navigation_of(path: str, page: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name in NAVIGATION_FILES and (not folder or page.startswith(f"{folder}/"))


class Session:
    """Carries out instructions. What is done and what could not be done goes into the summary."""

    def __init__(self) -> None:
        self._waiting: list[Instruction] = []
        self._begun: list[Instruction] = []
        self._done: list[bool] = []
        """For each finished instruction, whether it changed something or had nothing to fix."""
        self._edits = 0
        self._unknown: list[str] = []
        self._report: list[str] = []
        self._turn = Turn()

    def run(self) -> Steps:
        self._hear((yield Step("")))
        while True:
            while self._waiting:
                instruction, edits = self._waiting.pop(0), self._edits
                self._begun.append(instruction)
                yield from self._carry_out(instruction)
                self._done.append(self._edits > edits or isinstance(instruction, FixLinks))
            plan = (("plan", self._plan()),) if self._begun else ()
            yield from self._ask(Step(self._closing_words(), (*plan, ("finish", self._finish()))))
            if self._turn.checked:
                before = list(self._report)
                yield from self._mend_links("Fixed links after the checks", changed=True, folder="", quiet=True)
                if self._report == before:
                    self._say("Some findings of the checks are beyond what the builtin editor can mend.")

    def _hear(self, turn: Turn) -> None:
        self._turn = turn
        for text in turn.asked:
            known, unknown = parse(text)
            room = MAX_INSTRUCTIONS - len(self._begun) - len(self._waiting)
            self._waiting += known[:room]
            self._unknown += unknown
            if len(known) > room:
                self._say(f"Only the first {MAX_INSTRUCTIONS} instructions were carried out.")

    def _ask(self, step: Step) -> Generator[Step, Turn, tuple[ToolMessage, ...]]:
        self._hear((yield step))
        self._edits += sum(result.name in EDITING and not result.is_error for result in self._turn.results)
        return self._turn.results

    def _one(self, said: str, tool: str, /, **arguments: object) -> Generator[Step, Turn, ToolMessage]:
        results = yield from self._ask(Step(said, ((tool, arguments),)))
        return results[0]

    def _carry_out(self, instruction: Instruction) -> Steps:
        yield from self._ask(Step(f"{title_of(instruction)}. ", (("plan", self._plan()),)))
        match instruction:
            case Replace():
                yield from self._replace(instruction)
            case Add():
                yield from self._add(instruction)
            case Create():
                yield from self._create(instruction)
            case Rename():
                yield from self._rename(instruction)
            case FixLinks(path=path):
                scope = (yield from self._scope(path)) if path else ""
                if scope or not path:
                    yield from self._mend_links("Fixed broken links", changed=False, folder=scope)
            case _:
                assert_never(instruction)

    def _plan(self) -> dict[str, object]:
        """All instructions: what became of those that are over, the one at hand, those that wait."""
        over = ["completed" if done else "cancelled" for done in self._done]
        statuses = [*over, *["in_progress"] * (len(self._begun) - len(over)), *["pending"] * len(self._waiting)]
        todos = zip([*self._begun, *self._waiting], statuses, strict=True)
        return {"todos": [{"content": title_of(which)[:400], "status": status} for which, status in todos]}

    # The forms

    def _replace(self, asked: Replace) -> Steps:
        name = f"Replaced {short(asked.old)} with {short(asked.new)}"
        scope = (yield from self._scope(asked.path)) if asked.path else ""
        if asked.path and not scope:
            return
        if is_page(scope):
            yield from self._replace_in(name, asked, [scope], more=0)
            return
        found = yield from self._one(
            "Searching the pages. ", "search", query=asked.old, exact=True, **({"folder": scope} if scope else {})
        )
        paths, count = found_in(found)
        pages = [path for path in paths if is_page(path)]
        left_alone = [path for path in paths if path not in pages]
        if left_alone:
            self._say(f"Left alone, because they are not pages: {_named(left_alone)}.")
        if not pages:
            where = f" in {scope}" if scope else ""
            self._say(f"No page{where} contains {short(asked.old)}.")
            return
        yield from self._replace_in(name, asked, pages[:MAX_EDITS], more=count - len(paths))

    def _replace_in(self, name: str, asked: Replace, pages: Sequence[str], *, more: int) -> Steps:
        calls = [("replace", {"path": page, "old": asked.old, "new": asked.new, "all": True}) for page in pages]
        results = yield from self._ask(Step(f"Replacing in {_count(len(pages), 'page')}. ", tuple(calls)))
        times = sum(map(times_replaced, results))
        done = [page for page, result in zip(pages, results, strict=True) if not result.is_error]
        if done:
            self._say(f"{name}: {_count(times, 'time')} in {_count(len(done), 'page')}.")
        self._tell_errors(results)
        if more > 0:
            self._say(f"{_count(more, 'more page')} contain it: ask again for the rest.")

    def _add(self, asked: Add) -> Steps:
        if asked.path == EVERY_PAGE:
            yield from self._add_everywhere(asked)
            return
        page = yield from self._page(asked.path)
        if not page:
            return
        insertion: _Insertion | None = _Insertion(f"\n{_block(asked.text)}\n", None)
        if asked.place != "end":
            lines = yield from self._lines(page)
            insertion = _insertion(asked, lines)
        if insertion is None:
            self._say(f"{page} has no heading {short(asked.heading)}: nothing was added.")
            return
        (result,) = yield from self._ask(Step(f"Adding to {page}. ", (insertion.call(page),)))
        if result.is_error:
            self._tell_errors([result])
        else:
            self._say(f"Added {short(asked.text)} to {page}{_where(asked)}.")

    def _add_everywhere(self, asked: Add) -> Steps:
        lists = yield from self._ask(
            Step("Listing the pages. ", tuple(("list", {"name": suffix}) for suffix in _LISTED_SUFFIXES))
        )
        pages = sorted({line for result in lists for line in paths_in(result) if is_page(line)})
        if sum(map(number_listed, lists)) > MAX_EDITS or len(pages) > MAX_EDITS:
            self._say(f"There are more than {MAX_EDITS} pages, which is more than one instruction changes: name them.")
            return
        calls: list[Call] = []
        without: list[str] = []
        if asked.place == "end":
            calls = [_Insertion(f"\n{_block(asked.text)}\n", None).call(page) for page in pages]
        else:
            reads = yield from self._ask(Step("Reading them. ", tuple(("read", {"path": page}) for page in pages)))
            for page, result in zip(pages, reads, strict=True):
                lines, goes_on = lines_in(result)
                whole = not goes_on and not result.is_error
                found = _insertion(asked, lines) if whole or asked.place == "top" else None
                if found is None:
                    without.append(page)
                else:
                    calls.append(found.call(page))
        results: tuple[ToolMessage, ...] = ()
        if calls:
            results = yield from self._ask(Step(f"Adding to {_count(len(calls), 'page')}. ", tuple(calls)))
        done = sum(not result.is_error for result in results)
        self._say(f"Added {short(asked.text)} to {_count(done, 'page')}{_where(asked)}.")
        if without:
            self._say(f"Left as they were, without such a heading or too long: {_named(without)}.")
        self._tell_errors(results)

    def _create(self, asked: Create) -> Steps:
        counts = yield from self._ask(
            Step("Looking at how pages are written here. ", (("list", {"name": ".mdx"}), ("list", {"name": ".md"})))
        )
        mdx, both = map(number_listed, counts)
        path = asked.path.strip("/")
        if not is_page(PurePosixPath(path).suffix):
            path += ".mdx" if mdx > both - mdx else ".md"
        existing = yield from self._one("", "read", path=path, start_line=1, end_line=1)
        if docs := docs_folder(existing):
            path = f"{docs}/{path}"
            existing = yield from self._one("", "read", path=path, start_line=1, end_line=1)
        if not existing.is_error:
            self._say(f"{path} exists already: it was left as it is.")
            return
        folder = path.rpartition("/")[0]
        near = yield from self._one(
            "", "list", **({"folder": folder} if folder else {}), name=PurePosixPath(path).suffix
        )
        pages = [line for line in paths_in(near) if is_page(line)]
        siblings = pages or [line for line in paths_in(counts[1]) if is_page(line)]
        has_front_matter = True
        if siblings:
            first = yield from self._one("", "read", path=siblings[0], start_line=1, end_line=1)
            has_front_matter = "---" in lines_in(first)[0]
        title = asked.title or PurePosixPath(path).stem.replace("-", " ").replace("_", " ").capitalize()
        head = f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\n---\n" if has_front_matter else f"# {title}\n"
        text = f"{head}\n{asked.text.strip(chr(10))}\n" if asked.text.strip() else head
        result = yield from self._one(f"Writing {path}. ", "write", path=path, text=text)
        if result.is_error:
            self._tell_errors([result])
        else:
            self._say(f"Created {path} with the title {short(title)}.")
            yield from self._name_in_navigation(path, title)

    def _name_in_navigation(self, page: str, title: str) -> Steps:
        """Add the page to the nearest navigation file above it, if there is one."""
        above = [folder.as_posix() for folder in PurePosixPath(page).parents]
        folders: list[Call] = [("list", {} if folder == "." else {"folder": folder}) for folder in above]
        names: list[Call] = [("list", {"name": name}) for name in NAVIGATION_FILES]
        found = yield from self._ask(Step("Looking for a navigation file. ", (*names, *folders)))
        known = [line for result in found for line in paths_in(result)]
        files = [path for path in known if _is_navigation_of(path, page)]
        if not files:
            return
        file = max(files, key=len)
        lines = yield from self._lines(file)
        if not names_pages(file, lines) or is_named(file, lines, page):
            return
        entry = entry_for(file, lines, page, title, [path for path in known if is_page(path)])
        if entry is None:
            self._say(f"{file} does not name it yet: no page near it stands there.")
            return
        new = entry.new.replace("\n", "\r\n") if lines[0].endswith("\r") else entry.new
        result = yield from self._one("", "replace", path=file, old=entry.old, new=new, line=entry.line)
        if result.is_error:
            self._tell_errors([result])
        else:
            self._say(f"Named it in {file}.")

    def _rename(self, asked: Rename) -> Steps:
        page = yield from self._page(asked.path)
        if not page:
            return
        to = _target(page, asked)
        result = yield from self._one(f"Moving {page}. ", "move", path=page, to=to)
        if docs := docs_folder(result):
            to = f"{docs}/{to}"
            result = yield from self._one("", "move", path=page, to=to)
        if result.is_error:
            self._tell_errors([result])
            return
        self._say(f"Renamed {page} to {to}.")
        yield from self._mend_links("Fixed the links to it", changed=True, folder="", quiet=True)

    def _mend_links(self, name: str, *, changed: bool, folder: str, quiet: bool = False) -> Steps:
        """Replaces each broken link for which one page clearly fits, and names the others."""
        scope = {"folder": folder} if folder else {}
        tried: set[tuple[str, int, str]] = set()
        pages: set[str] = set()
        fixed = 0
        while True:
            found = yield from self._one("Checking links. ", "check_links", changed=changed, **scope)
            links, remaining = dead_links(found)
            edits: dict[tuple[str, int, str], str] = {}
            for link in links:
                if link.is_clear and (link.path, link.line, link.found) not in tried:
                    edits[link.path, link.line, link.found] = link.suggestion
            batch = list(edits.items())[: MAX_EDITS - len(tried)]
            if not batch:
                break
            tried |= {key for key, _ in batch}
            calls = [  # by line: the same text may stand elsewhere in code
                ("replace", {"path": path, "old": old, "new": new, "line": line, "all": True})
                for (path, line, old), new in batch
            ]
            results = yield from self._ask(
                Step(f"Fixing links in {len({k[0] for k, _ in batch})} pages. ", tuple(calls))
            )
            for ((path, _, _), _), result in zip(batch, results, strict=True):
                if not result.is_error:
                    fixed += times_replaced(result)
                    pages.add(path)
        mendable = sum(link.is_clear and (link.path, link.line, link.found) not in tried for link in links)
        if fixed:
            self._say(f"{name}: {fixed} in {_count(len(pages), 'page')}.")
        elif not quiet:
            self._say("There was no broken link that could be fixed." if remaining else "No link is broken.")
        if mendable:
            self._say(f"One job fixes no more than these; {_count(remaining, 'broken link')} left: ask again.")
        elif remaining:
            listed = "".join(f"\n  - `{link.path}`, line {link.line}: {shown(link)}" for link in links[:MAX_NAMED])
            rest = f"\n  - and {remaining - MAX_NAMED} more" if remaining > MAX_NAMED else ""
            self._say(f"{_count(remaining, 'broken link')} left, for which no one page clearly fits:{listed}{rest}")

    def _say(self, sentence: str) -> None:
        if sentence not in self._report:
            self._report.append(sentence)

    # What the forms need

    def _page(self, path: str) -> Generator[Step, Turn, str]:
        """Return the one page that this path means; empty, with a message, when there is none or more than one."""
        pages = yield from self._pages(path)
        if not pages:
            self._say(f"There is no page {path}.")
        return self._the_one(path, pages)

    def _scope(self, path: str) -> Generator[Step, Turn, str]:
        """Return the page as ``_page`` does, or else the one folder that this path means."""
        pages = yield from self._pages(path)
        wanted = path.strip("/").removeprefix("./")
        if len(pages) == 1 and is_index(pages[0]) and not is_index(wanted):
            return pages[0].rpartition("/")[0]  # the page of a folder: the folder is meant
        if pages:
            return self._the_one(path, pages)
        found = yield from self._one("", "list", name=f"{wanted}/")
        folders = {f"{line[: match.start()]}/{wanted}".lstrip("/") for line in paths_in(found)
                   if (match := re.search(rf"(?:^|/){re.escape(wanted)}/", line))}  # fmt: skip
        if not folders:
            self._say(f"There is no page or folder {path}.")
        return self._the_one(path, sorted(folders))

    def _the_one(self, path: str, found: Sequence[str]) -> str:
        if len(found) > 1:
            self._say(f"{path} could be {_named(found)}: give more of the path.")
        return found[0] if len(found) == 1 else ""

    def _pages(self, path: str) -> Generator[Step, Turn, list[str]]:
        wanted = path.strip("/").removeprefix("./")
        stem = wanted.removesuffix(PurePosixPath(wanted).suffix) if is_page(wanted) else wanted
        found = yield from self._one("", "list", name=stem)
        lines = paths_in(found)
        return (
            [line for line in lines if line == wanted and is_page(line)]
            or [line for line in lines if is_page(line) and stem_of(line) == wanted]
            or [line for line in lines if ends_with(line, wanted) and is_page(line)]
            or [line for line in lines if is_meant(line, wanted)]
        )

    def _lines(self, page: str) -> Generator[Step, Turn, list[str]]:
        lines: list[str] = []
        while True:
            part = yield from self._one("", "read", path=page, start_line=len(lines) + 1)
            if part.is_error:
                self._tell_errors([part])
                return lines
            more, goes_on = lines_in(part)
            lines += more
            if not goes_on:
                return lines

    def _tell_errors(self, results: Iterable[ToolMessage]) -> None:
        told = [reason_of(result) for result in results if result.is_error]
        self._report += [sentence for sentence in told[:MAX_NAMED] if sentence not in self._report]

    def _closing_words(self) -> str:
        return "Done. " if self._begun else "I did not find an instruction that I understand. "

    def _finish(self) -> dict[str, object]:
        if not self._begun:
            asked = f" It cannot do this: {short(self._unknown[0], 200)}." if self._unknown else ""
            return {
                "title": "No change",
                "summary": "Nothing was changed. The builtin editor understands no free text, only instructions of "
                f"these forms:\n\n{FORMS}\n\nSeveral may follow each other, one a line.{asked} To have anything else "
                "done, configure a language model.",
            }
        title = title_of(self._begun[0]) if len(self._begun) == 1 else f"Carry out {len(self._begun)} instructions"
        lines = [*self._report]
        if self._unknown:
            ignored = "; ".join(short(sentence, 80) for sentence in self._unknown[:MAX_NAMED])
            lines.append(f"Not understood, and left undone: {ignored}.")
        return {"title": title[:200], "summary": "\n".join(f"- {line}" for line in lines)[:7900]}


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


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return ", ".join(paths[:MAX_NAMED]) + more


def _count(count: int, one: str) -> str:
    return f"{count} {one}{'' if count == 1 else 's'}"
