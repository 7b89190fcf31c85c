"""The embedded model of the agent: no network, no key, no learning. It carries out instructions of these forms, through
the same tools as any other model, and says so plainly when it is asked for something else:

    replace "A" with "B" [in PATH]
    add "TEXT" to PATH [under "HEADING"]
    create page PATH with title "T" [and text "TEXT"]
    rename page PATH to PATH          (and fixes the links to it)
    fix broken links [in PATH]

Several are parted by new lines, semicolons, full stops or "and then". Text may stand in double or single quotes, curly
quotes or backticks; long text in a fenced block after a colon. A path may leave out its suffix and the folders above.

It keeps nothing between calls. An editing session is a generator that yields steps and is sent their results; every
call runs it again from the start over the results in the messages, up to the first step that has none yet.

What it relies on in the messages: facts about the repository come as a user message that begins with ``FACTS``, what
the checks found as one that begins with ``CHECKS``; tool results have the forms that their tests pin down.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from pathlib import PurePosixPath
from typing import assert_never

from msgspec import Struct

from service.domain.model import ToolCall, Usage
from service.ports.model import (
    AssistantMessage,
    ModelChunk,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    ToolMessage,
    UserMessage,
)

NAME = "builtin/editor"
FACTS = "About the repository"
CHECKS = "The checks before the pull request"
NUDGE = "Go on with the task."
ROUND = "The work so far "

MAX_INSTRUCTIONS = 20
MAX_EDITS = 200
"""Of one instruction: more than people will review in one pull request."""
MAX_NAMED = 20
"""Pages or links that a summary names one by one."""
PAGE_SUFFIXES = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".html", ".txt")

FORMS = """\
- replace "A" with "B" [in PATH]
- add "TEXT" to PATH [under "HEADING"]
- create page PATH with title "T" [and text "TEXT"]
- rename page PATH to PATH (the links to it are fixed)
- fix broken links [in PATH]"""


# Instructions


class Replace(Struct, frozen=True):
    old: str
    new: str
    path: str = ""


class Add(Struct, frozen=True):
    text: str
    path: str
    heading: str = ""


class Create(Struct, frozen=True):
    path: str
    title: str = ""
    text: str = ""


class Rename(Struct, frozen=True):
    path: str
    to: str


class FixLinks(Struct, frozen=True):
    path: str = ""


Instruction = Replace | Add | Create | Rename | FixLinks

_TEXT = "(\x00\\d+\x00)"
_PATH = "(\x00\\d+\x00|[^\\s,;\x00]+)"
_ANYWHERE = r"(?:\s+(?:everywhere|throughout|in\s+(?:all|every|the)\s+(?:pages?|files?|docs|documentation|site)))?"
_THE_PAGE = r"(?:the\s+)?(?:page\s+|file\s+|folder\s+)?"
_HEADING = rf"\s+(?:under|below)\s+(?:the\s+)?(?:heading\s+|section\s+)?{_TEXT}(?:\s+(?:heading|section))?"
_ADD_THE = r"(?:add|append|insert)(?:\s+the)?(?:\s+following)?(?:\s+(?:text|line|sentence|paragraph|note))?"
_TO = rf"\s+(?:to|in|into|on|at)\s+(?:the\s+)?(?:end\s+of\s+)?{_THE_PAGE}"
_RULES = {
    "replace": re.compile(
        r"(?:replace|change|substitute)\s+(?:(?:all|every|each)\s+)?(?:(?:occurrences?|mentions?)\s+of\s+)?(?:the\s+)?"
        rf"(?:(?:text|word|phrase|term)\s+)?{_TEXT}\s+(?:with|by|to|into)\s+{_TEXT}{_ANYWHERE}"
        rf"(?:\s+(?:in|on|under|within)\s+{_THE_PAGE}{_PATH})?{_ANYWHERE}",
        re.IGNORECASE,
    ),
    "add": re.compile(rf"{_ADD_THE}\s+{_TEXT}{_TO}{_PATH}(?:{_HEADING})?", re.IGNORECASE),
    "add_under": re.compile(rf"{_ADD_THE}\s+{_TEXT}{_HEADING}\s+(?:in|on|of|to)\s+{_THE_PAGE}{_PATH}", re.IGNORECASE),
    "add_block": re.compile(rf"{_ADD_THE}{_TO}{_PATH}(?:{_HEADING})?\s*:\s*{_TEXT}", re.IGNORECASE),
    "create": re.compile(
        rf"(?:create|add|make|write)\s+(?:a\s+|the\s+)?(?:new\s+)?page\s+(?:at\s+|called\s+|named\s+)?{_PATH}"
        rf"(?:,?\s+(?:with\s+(?:the\s+)?title|titled)\s+{_TEXT})?"
        rf"(?:,?\s+(?:and\s+|with\s+|and\s+with\s+)(?:the\s+)?(?:text|content|body)(?:\s+|\s*:\s*){_TEXT}|\s*:\s*{_TEXT})?",
        re.IGNORECASE,
    ),
    "rename": re.compile(
        rf"(?:rename|move)\s+{_THE_PAGE}{_PATH}\s+(?:to|into|as)\s+{_PATH}"
        r"(?:,?\s+(?:and\s+)?(?:then\s+)?(?:fix|update)\s+(?:all\s+)?(?:the\s+)?(?:broken\s+)?links(?:\s+to\s+\w+)?)?",
        re.IGNORECASE,
    ),
    "fix": re.compile(
        r"(?:fix|repair|correct)\s+(?:all\s+)?(?:of\s+)?(?:the\s+)?(?:broken\s+|dead\s+)?links?"
        rf"(?P<to>\s+to\s+(?:it|them|this page|that page))?{_ANYWHERE}(?:\s+(?:in|on|under)\s+{_THE_PAGE}{_PATH})?",
        re.IGNORECASE,
    ),
}
_QUOTED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<block>.*?)\n[ \t]*(?P=fence)[ \t]*$"
    r"|\"([^\"]*)\"|“([^”]*)”|«([^»]*)»|\u2018([^\u2019]*)\u2019|`([^`\n]+)`|(?<![\w])'([^'\n]*)'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_PARTS = re.compile(r"\s*(?:\n|;|,?\s+and\s+then\s+|,\s*then\s+|[.!?](?=\s|$))\s*", re.IGNORECASE)
_COURTESY = re.compile(
    r"(?:(?:please|kindly|then|and|also|first|next|finally|now),?\s+)*"
    r"(?:(?:can|could|would)\s+you\s+(?:please\s+)?)?",
    re.IGNORECASE,
)


def parse(text: str) -> tuple[list[Instruction], list[str]]:
    """The instructions of known forms, and the sentences that are none."""
    quotes: list[str] = []

    def keep(match: re.Match[str]) -> str:
        quotes.append(next((group for group in match.groups()[1:] if group is not None), ""))
        return f"\x00{len(quotes) - 1}\x00"

    outside = _QUOTED.sub(keep, text.replace("\x00", "").replace("\r\n", "\n"))
    outside = re.sub(r":\s*\n\s*(?=\x00)", ": ", outside)  # a block after a colon belongs to the line above

    outside = re.sub(r"^[ \t]*(?:[-*+]|\d{1,2}[.)])[ \t]+", "", outside, flags=re.MULTILINE)  # marks of a list

    def quoted(mark: str | None) -> str:
        found = re.fullmatch("\x00(\\d+)\x00", mark or "")
        return quotes[int(found[1])] if found else (mark or "")

    known: list[Instruction] = []
    unknown: list[str] = []
    for part in _PARTS.split(outside):
        clause = _COURTESY.sub("", part.strip(), count=1).strip(" ,:")
        if not clause:
            continue
        fixes_links = _RULES["fix"].fullmatch(clause)
        if fixes_links and fixes_links["to"] and known and isinstance(known[-1], Rename):
            continue  # a renaming does that anyway
        instruction = _instruction(clause, quoted)
        if instruction is None:
            unknown.append(re.sub("\x00\\d+\x00", lambda mark: f'"{quoted(mark[0])}"', clause))
        else:
            known.append(instruction)
    return known, unknown


def _instruction(clause: str, quoted: Callable[[str | None], str]) -> Instruction | None:
    for form, rule in _RULES.items():
        match = rule.fullmatch(clause)
        if match is None:
            continue
        groups = [quoted(group) for group in match.groups()]
        match form:
            case "replace":
                return Replace(groups[0], groups[1], groups[2]) if groups[0] else None
            case "add":
                return Add(groups[0], groups[1], groups[2])
            case "add_under":
                return Add(groups[0], groups[2], groups[1])
            case "add_block":
                return Add(groups[2], groups[0], groups[1])
            case "create":
                return Create(groups[0], groups[1], groups[2] or groups[3])
            case "rename":
                return Rename(groups[0], groups[1])
            case "fix":
                return FixLinks(groups[1])
    return None


# A session: steps out, turns in


class Step(Struct, frozen=True):
    """What to say, and the tools to call with which arguments."""

    text: str
    calls: tuple[tuple[str, dict[str, object]], ...] = ()


class Turn(Struct, frozen=True):
    """What came back: results in the order of the step's calls, what people said meanwhile, what the checks did."""

    results: tuple[ToolMessage, ...] = ()
    asked: tuple[str, ...] = ()
    checked: bool = False


Steps = Generator[Step, Turn, None]


class Session:
    """Carries out instructions. What is done and what could not be done goes into the summary."""

    def __init__(self) -> None:
        self._waiting: list[Instruction] = []
        self._begun: list[Instruction] = []
        self._unknown: list[str] = []
        self._said: list[str] = []
        self._report: list[str] = []
        self._turn = Turn()

    def run(self) -> Steps:
        self._hear((yield Step("")))
        while True:
            while self._waiting:
                instruction = self._waiting.pop(0)
                self._begun.append(instruction)
                yield from self._carry_out(instruction)
            yield from self._ask(Step(self._closing_words(), (("finish", self._finish()),)))
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
        return self._turn.results

    def _one(self, said: str, tool: str, /, **arguments: object) -> Generator[Step, Turn, ToolMessage]:
        results = yield from self._ask(Step(said, ((tool, arguments),)))
        return results[0]

    def _carry_out(self, instruction: Instruction) -> Steps:
        yield from self._ask(Step(f"{_title(instruction)}. ", (("plan", self._plan()),)))
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
        """All instructions; the last one begun is the one at hand."""
        done = [(instruction, "completed") for instruction in self._begun[:-1]]
        todos = [*done, (self._begun[-1], "in_progress"), *((waiting, "pending") for waiting in self._waiting)]
        return {"todos": [{"content": _title(which)[:400], "status": status} for which, status in todos]}

    # The forms

    def _replace(self, asked: Replace) -> Steps:
        name = f"Replaced {_short(asked.old)} with {_short(asked.new)}"
        scope = (yield from self._scope(asked.path)) if asked.path else ""
        if asked.path and not scope:
            return
        if scope.lower().endswith(PAGE_SUFFIXES):
            yield from self._replace_in(name, asked, [scope], more=0)
            return
        found = yield from self._one(
            "Searching the pages. ", "search", query=asked.old, exact=True, **({"folder": scope} if scope else {})
        )
        paths = [match[1] for line in _data(found.text) if (match := _FOUND_IN.fullmatch(line))]
        pages = [path for path in paths if path.lower().endswith(PAGE_SUFFIXES)]
        left_alone = [path for path in paths if path not in pages]
        if left_alone:
            self._say(f"Left alone, because they are not pages: {_named(left_alone)}.")
        if not pages:
            where = f" in {scope}" if scope else ""
            self._say(f"No page{where} contains {_short(asked.old)}.")
            return
        total = re.match(r"\d+ match(?:es)? in (\d+) files?", found.text)
        yield from self._replace_in(name, asked, pages[:MAX_EDITS], more=int(total[1]) - len(paths) if total else 0)

    def _replace_in(self, name: str, asked: Replace, pages: Sequence[str], *, more: int) -> Steps:
        calls = [("replace", {"path": page, "old": asked.old, "new": asked.new, "all": True}) for page in pages]
        results = yield from self._ask(Step(f"Replacing in {_count(len(pages), 'page')}. ", tuple(calls)))
        times = sum(_times(result.text) for result in results if not result.is_error)
        done = [page for page, result in zip(pages, results, strict=True) if not result.is_error]
        if done:
            self._say(f"{name}: {_count(times, 'time')} in {_count(len(done), 'page')}.")
        self._tell_errors(results)
        if more > 0:
            self._say(f"{_count(more, 'more page')} contain it: ask again for the rest.")

    def _add(self, asked: Add) -> Steps:
        page = yield from self._page(asked.path)
        if not page:
            return
        place: dict[str, object] = {}
        if asked.heading:
            lines = yield from self._lines(page)
            after = _end_of_section(lines, asked.heading)
            if after is None:
                self._say(f"{page} has no heading {_short(asked.heading)}: nothing was added.")
                return
            place = {"after_line": after}
        text = f"\n{asked.text.strip(chr(10))}\n"
        result = yield from self._one(f"Adding to {page}. ", "insert", path=page, text=text, **place)
        if result.is_error:
            self._tell_errors([result])
        else:
            under = f" under {_short(asked.heading)}" if asked.heading else ""
            self._say(f"Added {_short(asked.text)} to {page}{under}.")

    def _create(self, asked: Create) -> Steps:
        counts = yield from self._ask(
            Step("Looking at how pages are written here. ", (("list", {"name": ".mdx"}), ("list", {"name": ".md"})))
        )
        mdx, both = (_number(result.text) for result in counts)
        path = asked.path.strip("/")
        if not PurePosixPath(path).suffix.lower().endswith(PAGE_SUFFIXES):
            path += ".mdx" if mdx > both - mdx else ".md"
        existing = yield from self._one("", "read", path=path, start_line=1, end_line=1)
        if existing.is_error and (docs := _OUTSIDE.search(existing.text)):
            path = f"{docs[1]}/{path}"
            existing = yield from self._one("", "read", path=path, start_line=1, end_line=1)
        if not existing.is_error:
            self._say(f"{path} exists already: it was left as it is.")
            return
        folder = path.rpartition("/")[0]
        near = yield from self._one(
            "", "list", **({"folder": folder} if folder else {}), name=PurePosixPath(path).suffix
        )
        pages = [line for line in _data(near.text) if line.lower().endswith(PAGE_SUFFIXES)]
        siblings = pages or [line for line in _data(counts[1].text) if line.lower().endswith(PAGE_SUFFIXES)]
        has_front_matter = True
        if siblings:
            first = yield from self._one("", "read", path=siblings[0], start_line=1, end_line=1)
            has_front_matter = "---" in _data(first.text)
        title = asked.title or PurePosixPath(path).stem.replace("-", " ").replace("_", " ").capitalize()
        head = f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\n---\n" if has_front_matter else f"# {title}\n"
        text = f"{head}\n{asked.text.strip(chr(10))}\n" if asked.text.strip() else head
        result = yield from self._one(f"Writing {path}. ", "write", path=path, text=text)
        if result.is_error:
            self._tell_errors([result])
        else:
            self._say(f"Created {path} with the title {_short(title)}.")

    def _rename(self, asked: Rename) -> Steps:
        page = yield from self._page(asked.path)
        if not page:
            return
        to = _target(page, asked)
        result = yield from self._one(f"Moving {page}. ", "move", path=page, to=to)
        if result.is_error and (docs := _OUTSIDE.search(result.text)):
            to = f"{docs[1]}/{to}"
            result = yield from self._one("", "move", path=page, to=to)
        if result.is_error:
            self._tell_errors([result])
            return
        self._say(f"Renamed {page} to {to}.")
        yield from self._mend_links("Fixed the links to it", changed=True, folder="", quiet=True)

    def _mend_links(self, name: str, *, changed: bool, folder: str, quiet: bool = False) -> Steps:
        """Replaces each broken link for which one page clearly fits, and names the others."""
        scope = {"folder": folder} if folder else {}
        tried: set[tuple[str, str]] = set()
        pages: set[str] = set()
        fixed = 0
        while True:
            found = yield from self._one("Checking links. ", "check_links", changed=changed, **scope)
            links = list(_broken(found.text))
            edits: dict[tuple[str, str], str] = {}
            for link in links:
                if link.to is not None and (link.path, link.found) not in tried:
                    edits[link.path, link.found] = link.to
            batch = list(edits.items())[: MAX_EDITS - len(tried)]
            if not batch:
                break
            tried |= {key for key, _ in batch}
            calls = [
                ("replace", {"path": path, "old": old, "new": new, "all": True}) for (path, old), new in batch
            ]  # fmt: skip
            results = yield from self._ask(
                Step(f"Fixing links in {len({k[0] for k, _ in batch})} pages. ", tuple(calls))
            )
            for ((path, _), _), result in zip(batch, results, strict=True):
                if not result.is_error:
                    fixed += _times(result.text)
                    pages.add(path)
        remaining = _number(found.text) if links else 0
        mendable = sum(link.to is not None and (link.path, link.found) not in tried for link in links)
        if fixed:
            self._say(f"{name}: {fixed} in {_count(len(pages), 'page')}.")
        elif not quiet:
            self._say("There was no broken link that could be fixed." if remaining else "No link is broken.")
        if mendable:
            self._say(f"This is as many as one job fixes; {_count(remaining, 'broken link')} left: ask again.")
        elif remaining:
            listed = "".join(f"\n  - `{link.path}`, line {link.line}: `{link.shown()}`" for link in links[:MAX_NAMED])
            rest = f"\n  - and {remaining - MAX_NAMED} more" if remaining > MAX_NAMED else ""
            self._say(f"{_count(remaining, 'broken link')} left, for which no one page clearly fits:{listed}{rest}")

    def _say(self, sentence: str) -> None:
        if sentence not in self._report:
            self._report.append(sentence)

    # What the forms need

    def _page(self, path: str) -> Generator[Step, Turn, str]:
        """The one page that this path means; empty, and told, when there is none or more than one."""
        pages = yield from self._pages(path)
        if not pages:
            self._say(f"There is no page {path}.")
        return self._the_one(path, pages)

    def _scope(self, path: str) -> Generator[Step, Turn, str]:
        """As ``_page``, or else the one folder that this path means."""
        pages = yield from self._pages(path)
        wanted = path.strip("/").removeprefix("./")
        if len(pages) == 1 and _is_index(pages[0]) and not _is_index(wanted):
            return pages[0].rpartition("/")[0]  # the page of a folder: the folder is meant
        if pages:
            return self._the_one(path, pages)
        found = yield from self._one("", "list", name=f"{wanted}/")
        folders = {f"{line[: match.start()]}/{wanted}".lstrip("/") for line in _data(found.text)
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
        stem = wanted.removesuffix(PurePosixPath(wanted).suffix) if wanted.lower().endswith(PAGE_SUFFIXES) else wanted
        found = yield from self._one("", "list", name=stem)
        lines = _data(found.text)
        return (
            [line for line in lines if line == wanted and line.lower().endswith(PAGE_SUFFIXES)]
            or [line for line in lines if line.lower().endswith(PAGE_SUFFIXES) and _stem(line) == wanted]
            or [line for line in lines if _ends_with(line, wanted) and line.lower().endswith(PAGE_SUFFIXES)]
            or [line for line in lines if _is_page(line, wanted)]
        )

    def _lines(self, page: str) -> Generator[Step, Turn, list[str]]:
        lines: list[str] = []
        while True:
            part = yield from self._one("", "read", path=page, start_line=len(lines) + 1)
            if part.is_error:
                self._tell_errors([part])
                return lines
            lines += _data(part.text)
            if "(go on with start_line" not in part.text.partition("\n")[0]:
                return lines

    def _tell_errors(self, results: Iterable[ToolMessage]) -> None:
        told = [result.text.partition(" Read the file again")[0] for result in results if result.is_error]
        self._report += [sentence for sentence in told[:MAX_NAMED] if sentence not in self._report]

    def _closing_words(self) -> str:
        return "Done. " if self._begun else "I did not find an instruction that I understand. "

    def _finish(self) -> dict[str, object]:
        if not self._begun:
            asked = f" It cannot do this: {_short(self._unknown[0], 200)}." if self._unknown else ""
            return {
                "title": "No change",
                "summary": "Nothing was changed. The builtin editor understands no free text, only instructions of "
                f"these forms:\n\n{FORMS}\n\nSeveral may follow each other, one a line.{asked} To have anything else "
                "done, configure a language model.",
            }
        title = _title(self._begun[0]) if len(self._begun) == 1 else f"Carry out {len(self._begun)} instructions"
        lines = [*self._report]
        if self._unknown:
            ignored = "; ".join(_short(sentence, 80) for sentence in self._unknown[:MAX_NAMED])
            lines.append(f"Not understood, and left undone: {ignored}.")
        return {"title": title[:200], "summary": "\n".join(f"- {line}" for line in lines)[:7900]}


# What tools say, read back


class _Link(Struct, frozen=True):
    path: str
    line: int
    found: str
    to: str | None
    """None when more than one page fits, or none."""

    def shown(self) -> str:
        return self.found.strip("()<>\"' ")


_FOUND_IN = re.compile(r"(\S.*) \((\d+)\)")
_OUTSIDE = re.compile(r"every path begins with (\S+)/\.")
_BROKEN = re.compile(r'  (\d+): ("(?:[^"\\]|\\.)*") -> (?:("(?:[^"\\]|\\.)*") (\(clear\) )?)?.*')
_DATA = re.compile(r"<data ([0-9a-f]{8})>\n(.*)\n</data \1>", re.DOTALL)


def _data(text: str) -> list[str]:
    """The lines of the data in a result, its fences left off."""
    match = _DATA.search(text)
    return match[2].split("\n") if match else []


def _broken(text: str) -> Iterable[_Link]:
    path = ""
    for line in _data(text):
        if not line.startswith("  "):
            path = line
        elif match := _BROKEN.fullmatch(line):
            to = json.loads(match[3]) if match[4] else None
            yield _Link(path, int(match[1]), json.loads(match[2]), to)


def _number(text: str) -> int:
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _times(text: str) -> int:
    match = re.match(r"Replaced (?:once|(\d+) times)", text)
    return int(match[1] or 1) if match else 0


def _end_of_section(lines: Sequence[str], heading: str) -> int | None:
    """The line after which a section's own text ends, blank lines not counted."""
    wanted = _heading_words(heading)
    level, start, fence = 0, 0, ""
    end = len(lines)
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            continue
        found = None if fence else re.match(r"(#{1,6})\s+(.+)", line)
        if found is None:
            continue
        if level:
            end = number - 1
            break
        if _heading_words(found[2]) == wanted:
            level, start = len(found[1]), number
    if not level:
        return None
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _heading_words(text: str) -> str:
    return re.sub(r"\{#[^}]*\}|[#*_`]", "", text).strip().casefold()


def _stem(path: str) -> str:
    return next((path[: -len(suffix)] for suffix in PAGE_SUFFIXES if path.lower().endswith(suffix)), path)


def _is_index(path: str) -> bool:
    return _stem(path).rpartition("/")[2].lower() in ("index", "_index", "readme")


def _is_page(path: str, wanted: str) -> bool:
    """``guides/start`` means guides/start.md, and guides/start/index.md."""
    stem = _stem(path)
    if stem == path:
        return False
    return _ends_with(stem, wanted) or (_is_index(path) and _ends_with(stem.rpartition("/")[0], wanted))


def _ends_with(path: str, end: str) -> bool:
    return path == end or path.endswith(f"/{end}")


def _target(page: str, asked: Rename) -> str:
    """The whole path that a page is to have: what was left out is taken from where it is now."""
    to = asked.to.strip("/").removeprefix("./")
    if asked.to.endswith("/"):
        to = f"{to}/{PurePosixPath(page).name}"
    if not to.lower().endswith(PAGE_SUFFIXES):
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


def _title(instruction: Instruction) -> str:
    match instruction:
        case Replace(old=old, new=new, path=path):
            return f"Replace {_short(old)} with {_short(new)}{f' in {path}' if path else ''}"
        case Add(path=path, heading=heading):
            return f"Add to {path}{f', under {_short(heading)}' if heading else ''}"
        case Create(path=path):
            return f"Create the page {path}"
        case Rename(path=path, to=to):
            return f"Rename {path} to {to}"
        case FixLinks(path=path):
            return f"Fix broken links{f' in {path}' if path else ''}"
        case _:
            assert_never(instruction)


def _short(text: str, width: int = 60) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= width else line[: width - 1].rstrip() + "…"}"'


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return ", ".join(paths[:MAX_NAMED]) + more


def _count(count: int, one: str) -> str:
    return f"{count} {one}{'' if count == 1 else 's'}"


# The model


class BuiltinEditor:
    """``Model`` over ``Session``. Costs nothing, and fails only where its caller does not offer the tools."""

    @property
    def name(self) -> str:
        return NAME

    async def window_tokens(self) -> int | None:
        return None

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        step, number = _next_step(request.messages)
        for piece in re.findall(r"\S+\s*", step.text):
            yield ModelText(piece)
        calls = tuple(
            ToolCall(f"edit-{at}", tool, json.dumps(arguments, ensure_ascii=False))
            for at, (tool, arguments) in enumerate(step.calls, number)
        )
        yield ModelEnd("tool_calls" if calls else "stop", calls, Usage(cost_usd=0.0), NAME)


def _next_step(messages: Sequence[ModelMessage]) -> tuple[Step, int]:
    """The first step that the messages do not answer, and the number of its first call."""
    session = Session().run()
    step, number = next(session), 1
    for turn in _turns(_own(messages)):
        number += len(step.calls)
        if [result.name for result in turn.results] != [tool for tool, _ in step.calls]:
            return Step("Another model began this conversation; the builtin editor cannot go on with it."), number
        step = session.send(turn)
    return step, number


def _own(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Without earlier exchanges: what stands before the last reply without calls, if somebody spoke after it."""
    for at in range(len(messages) - 1, -1, -1):
        match messages[at]:
            case AssistantMessage(tool_calls=()) if any(map(_instructs, messages[at + 1 :])):
                return messages[at + 1 :]
            case _:
                pass
    return messages


def _instructs(message: ModelMessage) -> bool:
    return isinstance(message, UserMessage) and not message.text.startswith((FACTS, CHECKS, NUDGE, ROUND))


def _turns(messages: Sequence[ModelMessage]) -> Iterable[Turn]:
    """What was asked first, then for each reply with calls: its results and what was said before the next reply."""
    asked: list[str] = []
    results: list[ToolMessage] = []
    checked = False
    for message in messages:
        match message:
            case UserMessage(text=text) if _instructs(message):
                asked.append(text)
            case UserMessage(text=text):
                checked = checked or text.startswith(CHECKS)
            case ToolMessage():
                results.append(message)
            case AssistantMessage(tool_calls=calls) if calls:
                yield Turn(tuple(results), tuple(asked), checked)
                asked, results, checked = [], [], False
            case _:
                pass
    yield Turn(tuple(results), tuple(asked), checked)
