"""The sources of a change: where the facts that it states were read, as repository, path, lines and commit, and which
of its lines state them.

A fact is a name, flag, path or number that the change adds. Its source is a line that the model has read in this job,
in a context repository or in the documentation's own repository outside of the documentation.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from urllib.parse import urlsplit

from msgspec import Struct

from service.agent.checks import markup
from service.agent.loop.job_context import JobContext
from service.agent.sources import Passage, passages
from service.agent.things import MAX_THINGS, WORD, Thing, parts_of, stands_in, things_of_lines
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Running
from service.domain.projects.hosts import host_kind, lines_url
from service.markup.fences import code_span, fenced

MAX_FILES = 30
MAX_LINES_OF_A_FILE = 8
"""Those in which most of what is new stands."""
NEAR_LINES = 3
"""Lines this near to each other are cited together."""
MAX_STATEMENTS, MAX_STATEMENT = 3, 120
"""Lines of the change that are named with one source, those that share most with it, and characters of each."""
MAX_QUOTED_LINES = 6
MAX_QUOTED_CHARACTERS = 160

File = tuple[str, str]
"""The path of a file as the model sees it, and the commit."""


class Statement(Struct, frozen=True):
    """A line that a change adds."""

    path: str
    line: int
    text: str


class Facts(Struct, frozen=True):
    """The things in lines that a change adds."""

    new: frozenset[Thing]
    """Things that the pages did not have."""
    beside: frozenset[Thing]
    """Names beside which a new number counts."""
    by_word: Mapping[str, Set[Thing]]
    """Both, by the longest word of each."""
    stating: Mapping[Thing, Sequence[Statement]]
    """The lines that have a new thing."""

    def standing_in(self, line: str) -> set[Thing]:
        candidates = {thing for word in set(WORD.findall(line)) for thing in self.by_word.get(word, ())}
        return {thing for thing in candidates if stands_in(thing, line)}


async def sources(
    state: Running,
    workspace: Workspace,
    changes: Mapping[str, str | None],
    context: JobContext,
    *,
    is_whole: bool = True,
) -> list[str]:
    """Return the sources of a pull request's changes, each as Markdown; text is quoted of public repositories alone.
    Unless ``is_whole``, all of a changed file counts as new: the files before the pull request are not here any more.
    """
    read = [passage for passage in passages(state.work) if _is_source(passage, workspace)]
    if not read:
        return []
    versions = [
        (path, (await workspace.base_text(path) or "") if is_whole else "", text)
        for path, text in changes.items()
        if text
    ]
    return await asyncio.to_thread(_sources, state, read, versions, context.source.code_host)


def _is_source(passage: Passage, workspace: Workspace) -> bool:
    return passage.path.startswith("@") or not workspace.is_documentation(passage.path)


def _sources(
    state: Running, read: Sequence[Passage], versions: Sequence[tuple[str, str, str]], code_host: str
) -> list[str]:
    facts = _facts(versions)
    lines: dict[File, dict[int, str]] = defaultdict(dict)
    for passage in read:
        numbered = enumerate(passage.lines, passage.first_line)
        lines[passage.path, passage.commit] |= {number: line for number, line in numbered if line.strip()}
    found: list[str] = []
    for file, texts in lines.items():
        chosen = _chosen(texts, facts)
        if chosen:
            stated = _stated([texts[number] for number in chosen], facts)
            found.append(_shown(file, _ranges(chosen), texts, state, code_host, stated))
        if len(found) == MAX_FILES:
            break
    return found


def _facts(versions: Iterable[tuple[str, str, str]]) -> Facts:
    new: set[Thing] = set()
    names: set[Thing] = set()
    stating: dict[Thing, list[Statement]] = defaultdict(list)
    for path, before, after in versions:
        old, now = before.split("\n"), after.split("\n")
        added, removed = set(now) - set(old), set(old) - set(now)
        stated = set[Thing]()
        for number, line in enumerate(now, 1):
            if line in added and len(stated) < MAX_THINGS and (things := things_of_lines([line])):
                stated |= things
                for thing in things | {parts_of(thing)[-1] for thing in things}:
                    stating[thing].append(Statement(path, number, line.strip()))
        numbers = {thing for thing in stated if thing.kind == "number"}
        named = {part for thing in stated - numbers for part in (thing, parts_of(thing)[-1])}
        new |= numbers - things_of_lines(line for line in old if line in removed)
        new |= {thing for thing in named if not stands_in(thing, before)}
        names |= named
    by_word: dict[str, set[Thing]] = defaultdict(set)
    for thing in new | names:
        by_word[max(WORD.findall(thing.text), key=len, default="")].add(thing)
    return Facts(frozenset(new), frozenset(names), by_word, {thing: stating[thing] for thing in new})


def _stated(lines: Sequence[str], facts: Facts) -> str:
    """Return the lines of the change that a source is one of, as a list within its item."""
    shared = set().union(*(facts.standing_in(line) for line in lines)) & facts.new
    counts = Counter(one for thing in sorted(shared, key=str) for one in facts.stating[thing])
    items = [
        f"\n  - {code_span(one.path)}, line {one.line}: {code_span(_one_line(one.text)[:MAX_STATEMENT])}"
        for one, _ in counts.most_common(MAX_STATEMENTS)
    ]
    return f", for:{''.join(items)}" if items else ""


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _chosen(texts: Mapping[int, str], facts: Facts) -> list[int]:
    """Return the numbers of the lines in which something new stands, those with most of it."""
    counts: dict[int, int] = {}
    for number, line in texts.items():
        if count := _weight(facts.standing_in(line), facts):
            counts[number] = count
    return sorted(sorted(counts, key=lambda number: (-counts[number], number))[:MAX_LINES_OF_A_FILE])


def _weight(standing: Set[Thing], facts: Facts) -> int:
    new = standing & facts.new
    names = [thing for thing in new if thing.kind != "number"]
    return len(new) if names or (new and standing & facts.beside) else 0


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number - ranges[-1][1] <= NEAR_LINES:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def _shown(
    file: File,
    ranges: Sequence[tuple[int, int]],
    texts: Mapping[int, str],
    state: Running,
    code_host: str,
    stated: str,
) -> str:
    path, commit = file
    name, _, inner = path.partition("/") if path.startswith("@") else ("", "", path)
    context = next((one for one in state.work.contexts or () if f"@{one.name}" == name), None)
    repository = state.request.repository if not name else context.repository if context is not None else ""
    same_server = urlsplit(repository).netloc == urlsplit(state.request.repository).netloc
    kind = host_kind(repository) or (code_host if same_server else None)
    where = []
    for first, last in ranges:
        words = f"line {first}" if first == last else f"lines {first} to {last}"
        url = lines_url(repository, kind, commit, inner, (first, last))
        where.append(f"[{words}]({url})" if url else words)
    is_url = repository.lower().startswith(("https://", "http://"))
    shown = f"<{repository}>" if is_url else f"`{name}`" if name else "this repository"
    quoted = _quoted(ranges, texts) if context is not None and context.public else ""
    return f"{code_span(inner)}, {', '.join(where)}, of {shown} at `{commit[:12]}`{stated}{quoted}"


def _quoted(ranges: Sequence[tuple[int, int]], texts: Mapping[int, str]) -> str:
    lines = list(_lines_of(ranges, texts))[:MAX_QUOTED_LINES]
    text = "\n".join(lines)
    if not text.strip() or any(markup.secrets(text)):
        return ""
    return "\n" + "\n".join(f"  {line}".rstrip() for line in fenced(text).split("\n"))


def _lines_of(ranges: Sequence[tuple[int, int]], texts: Mapping[int, str]) -> Iterator[str]:
    for first, last in ranges:
        for number in range(first, last + 1):
            yield "".join(c for c in texts.get(number, "") if c.isprintable() or c == "\t")[:MAX_QUOTED_CHARACTERS]
