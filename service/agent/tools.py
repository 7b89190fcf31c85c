"""The tools of a job's model: what they are called, what they take, what they do to the workspace.

The JSON Schemas that a model is shown come from the same structs that decode its arguments, so they cannot drift.
What a tool says goes to the model as data: text of files is fenced by a tag made from its own hash, which no author
can put into the text beforehand.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal, assert_never

import msgspec
from msgspec import Meta, Struct

from service.agent.checks.link_guesses import BrokenLink
from service.agent.checks.links import Links
from service.agent.workspace import Refused, Workspace
from service.domain.errors import NotFound, Unavailable
from service.domain.jobs.decider import FileChange, Todo, TodoStatus
from service.domain.model import ToolCall
from service.domain.tool_values import DeadLink, DeadLinks, Declined, Found, Lines, Listed, Replaced, Span, ToolValue
from service.ports.model import Tool
from service.ports.search_index import SearchIndex, Section

MAX_RESULT_CHARACTERS = 30_000
MAX_LISTED = 500
MAX_FILES_FOUND = 200
MAX_LINES_SHOWN_OF_A_FILE = 5
MAX_SECTIONS = 8
MAX_LINKS_LISTED = 200


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Strict: a misspelt option that is ignored would do something else than the model meant."""


Path = Annotated[str, Meta(description="Path of a file from the root of the repository.")]


class ListFiles(Arguments, frozen=True, tag_field="tool", tag="list"):
    """List the files of the documentation. Folders with many files are shown as one line with their number."""

    folder: Annotated[str, Meta(description="Only below this folder.")] = ""
    name: Annotated[str, Meta(description="Only paths that contain this text; upper and lower case are alike.")] = ""


class Search(Arguments, frozen=True, tag_field="tool", tag="search"):
    """Search the documentation: the sections that best answer the query, then the lines that contain its words."""

    query: Annotated[str, Meta(min_length=1, max_length=2000)]
    exact: Annotated[
        bool, Meta(description="Only where the query stands exactly so, upper and lower case told apart.")
    ] = False
    folder: Annotated[str, Meta(description="Only in this folder, or this file.")] = ""


class Read(Arguments, frozen=True, tag_field="tool", tag="read"):
    """Read a file, whole or a range of its lines. Longer texts come in parts; the result says how to go on."""

    path: Path
    start_line: Annotated[int, Meta(ge=1)] = 1
    end_line: Annotated[int | None, Meta(description="Inclusive; the end of the file if not given.")] = None


class Replace(Arguments, frozen=True, tag_field="tool", tag="replace"):
    """Replace text in a file. ``old`` must be copied exactly from it and must be there once, unless ``all`` is set."""

    path: Path
    old: str
    new: str
    all: Annotated[bool, Meta(description="Replace every occurrence.")] = False
    line: Annotated[int | None, Meta(description="Only what begins on this line.")] = None


class Insert(Arguments, frozen=True, tag_field="tool", tag="insert"):
    """Insert lines into a file after the given line (0: before the first); at the end if no line is given."""

    path: Path
    text: str
    after_line: Annotated[int, Meta(ge=0)] | None = None


class Write(Arguments, frozen=True, tag_field="tool", tag="write"):
    """Write a whole file: a new one, or in place of what it holds. To change a part use replace."""

    path: Path
    text: str


class Move(Arguments, frozen=True, tag_field="tool", tag="move"):
    """Move or rename a file. Links to it are not changed: check_links lists those to fix."""

    path: Path
    to: Path


class Delete(Arguments, frozen=True, tag_field="tool", tag="delete"):
    """Delete a file."""

    path: Path


class CheckLinks(Arguments, frozen=True, tag_field="tool", tag="check_links"):
    """List broken links between pages, and missing pages that the navigation names, with the best replacements.

    Each line has the text in the file and, after the arrow, its replacement; "clear" if only one page fits.
    """

    changed: Annotated[bool, Meta(description="Only links that your changes broke.")] = False
    folder: Annotated[str, Meta(description="Only links in this folder, or this file.")] = ""


class PlanItem(Struct, frozen=True, forbid_unknown_fields=True):
    content: Annotated[str, Meta(min_length=1, max_length=500)]
    status: TodoStatus = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class Plan(Arguments, frozen=True, tag_field="tool", tag="plan"):
    """Show people your to-do list, always the whole list. Update it as you go; keep it short."""

    todos: Annotated[tuple[PlanItem, ...], Meta(max_length=50)]


class Finish(Arguments, frozen=True, tag_field="tool", tag="finish"):
    """End the work. What you changed is checked, and opened as a pull request under this title and summary."""

    title: Annotated[str, Meta(min_length=1, max_length=200, description="What changes, such as: Document retries")]
    summary: Annotated[str, Meta(min_length=1, max_length=8000, description="What changed and why, in Markdown.")]


Kind = (
    type[ListFiles] | type[Search] | type[Read] | type[Replace] | type[Insert] | type[Write] | type[Move]
    | type[Delete] | type[CheckLinks] | type[Plan] | type[Finish]
)  # fmt: skip

_KINDS: dict[str, Kind] = {
    "list": ListFiles,
    "search": Search,
    "read": Read,
    "replace": Replace,
    "insert": Insert,
    "write": Write,
    "move": Move,
    "delete": Delete,
    "check_links": CheckLinks,
    "plan": Plan,
    "finish": Finish,
}


class Outcome(Struct, frozen=True):
    """The result of a tool call; its changes are applied when it is recorded."""

    result: str
    is_error: bool = False
    changes: tuple[FileChange, ...] = ()
    value: ToolValue | None = None
    todos: tuple[Todo, ...] | None = None
    finished: tuple[str, str] | None = None


def descriptions() -> tuple[Tool, ...]:
    return tuple(
        Tool(name, " ".join((kind.__doc__ or "").replace("``", "").split()), _schema(kind))
        for name, kind in _KINDS.items()
    )


def _schema(kind: Kind) -> dict[str, Any]:
    """The parameters' JSON Schema in one piece: some providers follow no ``$ref``."""
    _, definitions = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return inline(definitions[node["$ref"]])
            return {key: inline(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
        return [inline(item) for item in node] if isinstance(node, list) else node

    schema: dict[str, Any] = inline(definitions[kind.__name__])
    properties = {name: value for name, value in schema["properties"].items() if name != "tool"}
    required = [name for name in schema.get("required", []) if name != "tool"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def as_data(text: str) -> str:
    """Return the text fenced, so that a model can see where data begins and ends."""
    tag = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
    return f"<data {tag}>\n{text}\n</data {tag}>"


def _with_data(head: str, text: str) -> tuple[str, Span]:
    """Return a line and, below it, a text as data; and the place of the text in it."""
    whole = f"{head}\n{as_data(text)}"
    start = whole.index("\n", len(head) + 1) + 1
    return whole, (start, start + len(text))


class Toolbox:
    """Runs tools on a workspace. Nothing that a model writes makes it raise."""

    def __init__(self, workspace: Workspace, links: Links, index: SearchIndex | None, domain: str) -> None:
        self._workspace = workspace
        self._links = links
        self._index = index
        self._domain = domain

    async def run(self, call: ToolCall) -> Outcome:
        kind = _KINDS.get(call.name)
        if kind is None:
            return Outcome(f"There is no tool {call.name[:100]!r}. There are: {', '.join(_KINDS)}.", is_error=True)
        try:
            arguments = msgspec.json.decode(call.arguments.strip() or "{}", type=kind)
        except msgspec.ValidationError as error:
            return Outcome(f"The arguments of {call.name} do not fit: {error}.", is_error=True)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            return Outcome(f"The arguments of {call.name} are not JSON ({error}). Send one JSON object.", is_error=True)
        try:
            return await self._run(arguments)
        except Refused as refused:
            said = bounded(str(refused))
            value = Declined((0, min(len(refused.reason), len(said))), refused.docs_folder)
            return Outcome(said, is_error=True, value=value)

    async def _run(
        self,
        arguments: ListFiles | Search | Read | Replace | Insert | Write | Move | Delete | CheckLinks | Plan | Finish,
    ) -> Outcome:
        workspace = self._workspace
        match arguments:
            case ListFiles(folder=folder, name=name):
                return await asyncio.to_thread(_listing, workspace, folder.strip("/").removeprefix("./"), name)
            case Search():
                return await self._search(arguments)
            case Read():
                return await self._read(arguments)
            case Replace(path=path, old=old, new=new):
                change, count = await workspace.replace(path, old, new, everywhere=arguments.all, line=arguments.line)
                said = f"Replaced {_times(count)} in {change.path}."
                return Outcome(said, changes=(change,), value=Replaced(count))
            case Insert(path=path, text=text, after_line=after_line):
                (change,) = await workspace.insert(path, text, after_line)
                said = f"Inserted {_number(len(text.splitlines()), 'line')} in {change.path}."
                return Outcome(said, changes=(change,))
            case Write(path=path, text=text):
                (change,) = await workspace.write(path, text)
                return Outcome(f"Wrote {change.path}, {_number(len(text.splitlines()), 'line')}.", changes=(change,))
            case Move(path=path, to=to):
                changes = await workspace.move(path, to)
                said = f"Moved {changes[0].path} to {changes[1].path}. Links to it are as they were: see check_links."
                return Outcome(said, changes=changes)
            case Delete(path=path):
                (change,) = await workspace.delete(path)
                return Outcome(f"Deleted {change.path}.", changes=(change,))
            case CheckLinks():
                return await self._check_links(arguments)
            case Plan(todos=todos):
                numbered = tuple(
                    Todo(str(number), item.content, item.status, item.priority) for number, item in enumerate(todos, 1)
                )
                done = sum(todo.status == "completed" for todo in numbered)
                return Outcome(f"Noted: {done} of {len(numbered)} done.", todos=numbered)
            case Finish(title=title, summary=summary):
                if not title.strip() or not summary.strip():
                    raise Refused("Give a title and a summary in words.")
                return Outcome("The work is finished; now it is checked.", finished=(title.strip(), summary.strip()))
            case _:
                assert_never(arguments)

    async def _read(self, asked: Read) -> Outcome:
        path = self._workspace.checked(asked.path)
        lines = (await self._workspace.read(path)).splitlines(keepends=True)
        last = len(lines) if asked.end_line is None else min(asked.end_line, len(lines))
        if asked.start_line > max(last, 1):
            raise Refused(f"{path} has {_number(len(lines), 'line')}.")
        shown: list[str] = []
        room = MAX_RESULT_CHARACTERS
        for line in lines[asked.start_line - 1 : last]:
            room -= len(line)
            if room < 0 and shown:
                break
            shown.append(line)
        text = "".join(shown)
        end = asked.start_line + len(shown) - 1
        head = f"{path}, lines {asked.start_line} to {end} of {len(lines)}:"
        next_line = None
        if len(text) > MAX_RESULT_CHARACTERS:
            text = text[:MAX_RESULT_CHARACTERS]
            head = f"{path}, the beginning of line {asked.start_line} of {len(lines)} (it is too long to show):"
        elif end < last:
            next_line = end + 1
            head = f"{head[:-1]} (go on with start_line {next_line}):"
        said, span = _with_data(head, text.removesuffix("\n"))
        return Outcome(said, value=Lines(span, next_line))

    async def _search(self, asked: Search) -> Outcome:
        folder = asked.folder.strip("/")
        parts: list[str] = []
        if not asked.exact and self._index is not None and asked.query.strip():
            try:
                found = await self._index.search(self._domain, asked.query[:500], limit=MAX_SECTIONS)
            except (NotFound, Unavailable):
                pass  # not indexed yet: the plain search below stands alone
            else:
                sections = [section for section in found.sections if _within(section.path, folder)]
                if sections:
                    parts.append("Sections:\n" + as_data("\n\n".join(_shown_section(s) for s in sections)))
        within = await asyncio.to_thread(_paths_within, self._workspace, folder)
        matches: list[Matches] = []
        async for texts in self._workspace.texts(within):
            matches += await asyncio.to_thread(find_text, texts, asked.query, exact=asked.exact)
        matches.sort(key=lambda match: match.path)
        shown, listed = _shown_matches(matches)
        paths = tuple(match.path for match in matches[:listed])
        return Outcome("\n\n".join([*parts, shown]), value=Found(len(matches), paths))

    async def _check_links(self, asked: CheckLinks) -> Outcome:
        broken = await (self._links.broken_by_changes() if asked.changed else self._links.broken())
        folder = asked.folder.strip("/")
        broken = [link for link in broken if _within(link.path, folder)]
        if not broken:
            return Outcome("No broken links.", value=DeadLinks(0))
        shown, links, room = list[str](), list[DeadLink](), MAX_RESULT_CHARACTERS - 500
        path = ""
        for link in broken[:MAX_LINKS_LISTED]:
            lines = ([] if link.path == path else [link.path]) + [f"  {link.line}: {_shown_link(link)}"]
            path = link.path
            room -= sum(len(line) + 1 for line in lines)
            if room < 0:
                break
            shown += lines
            links.append(DeadLink(link.path, link.line, link.found, next(iter(link.suggestions), ""), link.clear))
        pages = len({link.path for link in broken})
        head = f"{_number(len(broken), 'broken link')} in {_number(pages, 'file')}"
        if len(links) < len(broken):
            head += f", of which the first {len(links)} are listed; fix them and ask again, or ask by folder"
        said, _ = _with_data(f"{head}:", "\n".join(shown))
        return Outcome(said, value=DeadLinks(len(broken), tuple(links)))


class Matches(Struct, frozen=True):
    path: str
    count: int
    lines: tuple[tuple[int, str], ...]
    """Number and text of the first few."""


def find_text(texts: dict[str, str], query: str, *, exact: bool) -> list[Matches]:
    wanted = query if exact else query.lower()
    found = []
    for path, text in texts.items():
        searched = text if exact else text.lower()
        count = searched.count(wanted)
        if not count:
            continue
        lines: list[tuple[int, str]] = []
        at, line, done = searched.find(wanted), 1, 0
        while at >= 0 and len(lines) < MAX_LINES_SHOWN_OF_A_FILE:
            line += searched.count("\n", done, at)
            start = searched.rfind("\n", 0, at) + 1
            done = at
            if not lines or lines[-1][0] != line:
                excerpt = searched[max(start, at - 80) : at + len(wanted) + 80].partition("\n")[0]
                same_length = len(searched) == len(text)  # lower-casing lengthens a few letters
                begin = max(start, at - 80)
                lines.append((line, text[begin : begin + len(excerpt)].strip() if same_length else excerpt.strip()))
            at = searched.find(wanted, at + len(wanted))
        found.append(Matches(path, count, tuple(lines)))
    return found


def _shown_matches(matches: Sequence[Matches]) -> tuple[str, int]:
    """Return the text, and how many of the files it names."""
    if not matches:
        return "No line contains this text.", 0
    lines: list[str] = []
    room = MAX_RESULT_CHARACTERS - 2000
    listed = 0
    for match in matches[:MAX_FILES_FOUND]:
        shown = [f"{match.path} ({match.count})", *(f"  {number}: {text}" for number, text in match.lines)]
        if len(matches) > 40:  # then where it is says more than how it stands there
            shown = shown[:2]
        room -= sum(len(line) + 1 for line in shown)
        if room < 0:
            break
        lines += shown
        listed += 1
    head = f"{_number(sum(m.count for m in matches), 'match', 'matches')} in {_number(len(matches), 'file')}"
    if listed < len(matches):
        head += f", of which the first {listed} are listed"
    return f"{head}:\n{as_data(chr(10).join(lines))}", listed


def _shown_section(section: Section) -> str:
    heading = " > ".join((section.title, *section.heading_path))
    text = " ".join(section.text.split())
    return f"{section.path}, lines {section.start_line} to {section.end_line}: {heading}\n  {text[:400]}"


def _shown_link(link: BrokenLink) -> str:
    quoted = msgspec.json.encode(link.found).decode()
    if not link.suggestions:
        return f"{quoted} -> no page fits ({link.reason})"
    shown = link.suggestions[:1] if link.clear else link.suggestions[:3]
    options = " or ".join(msgspec.json.encode(option).decode() for option in shown)
    return f"{quoted} -> {options}{' (clear)' if link.clear else ''} ({link.reason})"


def _paths_within(workspace: Workspace, folder: str) -> list[str]:
    return [path for path in workspace.readable_paths() if _within(path, folder)]


def _listing(workspace: Workspace, folder: str, name: str) -> Outcome:
    wanted = [path for path in _paths_within(workspace, folder) if name.lower() in path.lower()]
    if not wanted:
        return Outcome("No file fits.", value=Listed(0))
    lines = wanted
    depth = 1 + (folder.count("/") + 1 if folder else 0)
    if len(wanted) > MAX_LISTED:
        lines = _collapsed(wanted, depth)
        while len(deeper := _collapsed(wanted, depth + 1)) <= MAX_LISTED and deeper != lines:
            lines, depth = deeper, depth + 1
    shown = lines[:MAX_LISTED]
    text = "\n".join(shown)
    rest = "" if len(shown) == len(lines) else f" The first {len(shown)} are listed: ask for a folder or a name."
    said, span = _with_data(f"{_number(len(wanted), 'file')}.{rest}", bounded(text))
    return Outcome(said, value=Listed(len(wanted), span))


def _collapsed(paths: Sequence[str], depth: int) -> list[str]:
    counts: dict[str, int] = {}
    for path in paths:
        parts = path.split("/", depth)
        key = path if len(parts) <= depth else "/".join(parts[:depth]) + "/"
        counts[key] = counts.get(key, 0) + 1
    return [f"{key} ({_number(count, 'file')})" if key.endswith("/") else key for key, count in counts.items()]


def _within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def bounded(text: str, characters: int = MAX_RESULT_CHARACTERS) -> str:
    return text if len(text) <= characters else f"{text[:characters]}\n[… {len(text) - characters} characters more]"


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
