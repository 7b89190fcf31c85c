"""The builtin editor at work: its steps, its report, and the page that a path means.

An editing session is a generator of steps; it is sent the results of each. It knows only what it is sent, so it can be
run again from the start.
"""

import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath

from msgspec import Struct

from service.adapters.builtin.editing.pages import ends_with, is_index, is_meant, is_page, stem_of
from service.adapters.builtin.editing.tool_results import found_in, lines_in, path_read, paths_in, reason_of
from service.domain.texts.comparison import Effort, coarse_opcodes, opcodes
from service.ports.model import ToolMessage

MAX_EDITS = 200
"""Limit for one instruction: people will not review more in one pull request."""
MAX_NAMED = 20
"""Pages or links that a summary names one by one."""
COMPARE_STEPS = 1_000_000
"""For the lines of a page before and after: some 50 ms; a page that takes more is replaced between its common ends."""
BEGINNING = 2
"""Characters that the names of similar pages have in common."""
MAX_CALLS = 90
"""Limit for the calls of one reply: of more than 100, the agent refuses the rest."""


class Step(Struct, frozen=True):
    """The text to say, and the tools to call with their arguments."""

    text: str
    calls: tuple["Call", ...] = ()


class Turn(Struct, frozen=True):
    """The outcome of a step: results in the order of its calls, messages of people meanwhile, results of the checks."""

    results: tuple[ToolMessage, ...] = ()
    asked: tuple[str, ...] = ()
    checked: bool = False
    merged: bool = False
    """Branches were merged, perhaps with conflicts."""


Steps = Generator[Step, Turn, None]
Call = tuple[str, dict[str, object]]

EDITING = frozenset({"replace", "insert", "write", "move", "delete"})
"""The tools that change files."""


class Editing:
    """The tools, the report, and the pages that paths mean."""

    def __init__(self, hear: Callable[[Turn], None]) -> None:
        self._hear = hear
        self.turn = Turn()
        self.edits = 0
        """Calls that changed a file."""
        self.report: list[str] = []
        self.is_unclear = False
        """Something in the report is for people to answer."""
        self.nearest: dict[str, str] = {}
        """For a path that was not found, the one page of a similar name."""

    def ask(self, step: Step) -> Generator[Step, Turn, tuple[ToolMessage, ...]]:
        """Call the tools, in several replies where they are many, and return all of their results."""
        results: list[ToolMessage] = []
        for start in range(0, len(step.calls), MAX_CALLS):
            self.hear((yield Step("" if start else step.text, step.calls[start : start + MAX_CALLS])))
            results += self.turn.results
        self.edits += sum(result.name in EDITING and not result.is_error for result in results)
        return tuple(results)

    def hear(self, turn: Turn) -> None:
        self.turn = turn
        self._hear(turn)

    def one(self, said: str, tool: str, /, **arguments: object) -> Generator[Step, Turn, ToolMessage]:
        results = yield from self.ask(Step(said, ((tool, arguments),)))
        return results[0]

    def say(self, sentence: str) -> None:
        if sentence not in self.report:
            self.report.append(sentence)

    def ask_people(self, sentence: str) -> None:
        self.say(sentence)
        self.is_unclear = True

    def forget(self) -> None:
        """Begin the report again, after people were asked."""
        self.report.clear()
        self.is_unclear = False
        self.nearest.clear()

    # Which page is meant

    def page(self, path: str) -> Generator[Step, Turn, str]:
        """Return the one page that this path means; empty, with a message, when there is none or more than one."""
        pages = yield from self.pages(path)
        if not pages:
            self.ask_people(f"Page not found: {path}.{(yield from self._nearest(path))}")
        return self._the_one(path, pages)

    def scope(self, path: str) -> Generator[Step, Turn, str]:
        """Return the page as ``page`` does, or else the one folder that this path means."""
        pages = yield from self.pages(path)
        wanted = path.strip("/").removeprefix("./")
        if len(pages) == 1 and is_index(pages[0]) and not is_index(wanted):
            return pages[0].rpartition("/")[0]  # the page of a folder: the folder is meant
        if pages:
            return self._the_one(path, pages)
        (folders,) = yield from self.folders([wanted])
        if not folders:
            self.ask_people(f"Page or folder not found: {path}.{(yield from self._nearest(path))}")
        return self._the_one(path, folders)

    def folders(self, wanted: Sequence[str]) -> Generator[Step, Turn, list[list[str]]]:
        """Return, for each short form, the whole paths of the folders that it may mean."""
        lists = yield from self.ask(Step("", tuple(("list", {"name": f"{folder}/"}) for folder in wanted)))
        return [_folders_in(paths_in(found), folder) for folder, found in zip(wanted, lists, strict=True)]

    def _nearest(self, path: str) -> Generator[Step, Turn, str]:
        """Return a sentence with the pages of the most similar names; empty if there are none."""
        name = stem_of(path.strip("/")).rpartition("/")[2].lower()
        listed = yield from self.one("", "list", name=name[:BEGINNING])
        names: dict[str, str] = {}
        for line in paths_in(listed):
            if is_page(line):
                names.setdefault(stem_of(line).rpartition("/")[2].lower(), line)
        near = [names[each] for each in get_close_matches(name, names, n=3)]
        if len(near) == 1:
            self.nearest[path] = near[0]
        return f" Do you mean {' or '.join(near)}?" if near else ""

    def _the_one(self, path: str, found: Sequence[str]) -> str:
        if len(found) > 1:
            self.ask_people(f"{path} could be {named(found)}: give more of the path.")
        return found[0] if len(found) == 1 else ""

    def pages(self, path: str) -> Generator[Step, Turn, list[str]]:
        wanted = unicodedata.normalize("NFC", path.strip("/").removeprefix("./"))
        stem = wanted.removesuffix(PurePosixPath(wanted).suffix) if is_page(wanted) else wanted
        found = yield from self.one("", "list", name=stem)
        named = {unicodedata.normalize("NFC", line): line for line in paths_in(found)}
        meant = _meant(wanted, list(named))
        if len(meant) > 1:  # a path from the folder of the documentation is read there
            read = path_read((yield from self.one("", "read", path=wanted)))
            meant = [line for line in meant if line == read] or meant
        return [named[line] for line in meant]

    def all_lines(self, pages: Iterable[str]) -> Generator[Step, Turn, dict[str, list[str]]]:
        """Return the lines of several pages, which are read in as few replies as their number takes."""
        wanted = list(pages)
        results = yield from self.ask(Step("", tuple(("read", {"path": page, "start_line": 1}) for page in wanted)))
        found: dict[str, list[str]] = {}
        for page, result in zip(wanted, results, strict=True):
            lines, goes_on = lines_in(result)
            found[page] = (yield from self.lines(page, lines)) if goes_on else lines
        return found

    def lines(self, page: str, begun: Sequence[str] = ()) -> Generator[Step, Turn, list[str]]:
        """Return the lines of a page; ``begun``: those that are known."""
        lines = [*begun]
        while True:
            part = yield from self.one("", "read", path=page, start_line=len(lines) + 1)
            if part.is_error:
                self.report_errors([part])
                return lines
            more, goes_on = lines_in(part)
            lines += more
            if not goes_on:
                return lines

    def found(self, result: ToolMessage) -> Sequence[str]:
        """Return the files that a search names."""
        return found_in(result)[0]

    def report_errors(self, results: Iterable[ToolMessage]) -> None:
        reasons = [reason_of(result) for result in results if result.is_error]
        self.report += [sentence for sentence in reasons[:MAX_NAMED] if sentence not in self.report]


def _meant(wanted: str, lines: Sequence[str]) -> list[str]:
    """Return the paths that a short form may mean: the one that it names in full, else those that end so."""
    return (
        [line for line in lines if line == wanted and is_page(line)]
        or [line for line in lines if is_page(line) and stem_of(line) == wanted]
        or [line for line in lines if ends_with(line, wanted) and is_page(line)]
        or [line for line in lines if is_meant(line, wanted)]
    )


def _folders_in(lines: Iterable[str], wanted: str) -> list[str]:
    pattern = re.compile(rf"(?:^|/){re.escape(wanted)}(?=/)")
    return sorted({line[: match.end()] for line in lines if (match := pattern.search(line))})


def named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return ", ".join(paths[:MAX_NAMED]) + more


def counted(count: int, one: str) -> str:
    end = "" if count == 1 else "es" if one.endswith("s") else "s"
    return f"{count} {one}{end}"


def rewrites(path: str, old: Sequence[str], new: Sequence[str]) -> list[Call]:
    """Return the calls that turn the lines of a file into others; the last come first, so that none moves another."""
    if not any(old):
        return [] if old == new else [("write", {"path": path, "text": "\n".join([*new, ""])})]
    before, after = _with_ends(old), _with_ends(new)
    calls: list[Call] = []
    found = opcodes(before, after, Effort(COMPARE_STEPS), most=COMPARE_STEPS) or coarse_opcodes(before, after)
    for kind, start, end, new_start, new_end in found:
        if kind == "equal":
            continue
        while start and not "".join(before[start:end]):  # an insertion needs a line beside it
            start, new_start = start - 1, new_start - 1
        was, now = "".join(before[start:end]), "".join(after[new_start:new_end])
        if not was:
            was, now = before[end], now + before[end]
        calls.append(("replace", {"path": path, "old": was, "new": now, "line": start + 1}))
    return calls[::-1]


def _with_ends(lines: Sequence[str]) -> list[str]:
    return [f"{line}\n" for line in lines[:-1]] + [*lines[-1:]]
