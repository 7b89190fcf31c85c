"""The search tool: the sections that best answer a query, and the lines that contain a text or match a pattern."""

import asyncio
from collections.abc import Mapping, Sequence, Set

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import Search
from service.agent.tools.excerpts import MARK, numbered
from service.agent.tools.matches import LINES_OF_A_FILE, LINES_OF_THE_FILE, Matches, find_pattern, find_text
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, as_data, fitting, number_of
from service.agent.tree import Tree, lines_of
from service.domain.errors import Invalid, NotFound, Unavailable
from service.domain.tool_values import Found
from service.ports.search_index import SearchIndex
from service.retrieval.search.live import LiveSection, WordSearch
from service.runtime.processes import TIMED_OUT, run_in_child

MAX_FILES_FOUND = 200
FEW_FILES = 40
"""Files of which more than the first line that matches is shown."""
MAX_SECTIONS = 8
ROOM_FOR_SECTIONS = 8_000
"""Characters of a result that are kept for the best sections."""
ROOM_FOR_MORE = 200
"""Characters that are kept for the sentence on what is not shown."""
MORE = f"where {MARK} stands, read has the rest"
MAX_SEARCHED_CHARACTERS = 256 << 20
"""Limit for the files that one text is looked for in: a context repository may hold anything."""
MAX_PATTERN_CHARACTERS = 48 << 20
"""Characters of all files that one regular expression is looked for in."""
MAX_CHILD_CHARACTERS = 4 << 20
"""Characters that one child is sent: while they are packed for it, nothing else runs in this process."""
PATTERN_SECONDS = 10.0
"""Limit for all children of one search."""
PATTERN_BYTES = 2 << 30
"""Limit for the child's address space."""


async def search(
    tree: Tree, index: SearchIndex | None, domain: str, asked: Search, *, pattern_seconds: float = PATTERN_SECONDS
) -> Outcome:
    """Search the files as they are now. ``index``: one of the tree's pages, if there is one."""
    if not asked.query.strip() and not asked.exact:
        raise Refused("The query is blank.", "Give words, or text that the files contain.")
    if asked.exact and asked.regex:
        raise Refused("A query is either exact or a regular expression.", "Set one of them.")
    folder = await tree.checked_folder(asked.folder)
    paths = await asyncio.to_thread(tree.paths_within, folder)
    if folder and not paths:
        raise Refused(f"No file is in {tree.prefix}{folder}.", "Use list to see the folders.")
    most = LINES_OF_THE_FILE if tree.exists(folder) else LINES_OF_A_FILE
    if asked.regex:
        matches, note = await _pattern_matches(tree, paths, asked.query, most, pattern_seconds)
        return _listed(tree, matches, note)
    words = None if asked.exact else WordSearch(asked.query)
    matches, note = await _text_matches(tree, paths, asked, most, words)
    if words is None:
        return _listed(tree, matches, note)
    known = await _known(tree, index, domain, asked.query, set(paths))
    return _listed(tree, matches, note, await _best_sections(tree, words, known))


def _listed(tree: Tree, matches: Sequence[Matches], note: str, sections: Sequence[tuple[str, str]] = ()) -> Outcome:
    """Return the result: a note, the sections, and the matches unless there are none beside sections."""
    shown, listed = _shown_matches(matches, tree.prefix)
    parts = []
    if sections:
        parts = [f"Best sections, each with the lines around the best one; {MORE}:\n"]
        parts[0] += as_data("\n\n".join(text for _, text in sections))
    if matches or not sections:
        parts.append(shown)
    paths = tuple(tree.prefix + match.path for match in matches[:listed])
    return Outcome(note + "\n\n".join(parts), value=Found(len(matches), paths))


async def _text_matches(
    tree: Tree, paths: Sequence[str], asked: Search, most: int, words: WordSearch | None
) -> tuple[list[Matches], str]:
    """Return the matches, and a note where not all files were searched. ``words`` is given what is read."""
    matches: list[Matches] = []
    room, note = MAX_SEARCHED_CHARACTERS, ""
    async for texts in tree.texts(paths):
        room -= sum(map(len, texts.values()))
        if room < 0:
            note = "Not all files were searched: they are too large together. Search in a folder.\n\n"
            break
        matches += await asyncio.to_thread(_looked_through, texts, asked.query, most, words)
    return sorted(matches, key=lambda match: match.path), note


def _looked_through(texts: Mapping[str, str], query: str, most: int, words: WordSearch | None) -> list[Matches]:
    if words is None:
        return find_text(texts, query, most=most)
    lowered = {path: text.lower() for path, text in texts.items()}
    words.add(texts, lowered)
    return find_text(texts, query, lowered, most)


async def _best_sections(tree: Tree, words: WordSearch, known: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return the best sections by path, as they are shown."""
    candidates: dict[str, str] = {}
    async for texts in tree.texts(words.candidates(known)):
        candidates |= texts

    def ranked() -> list[tuple[str, str]]:
        found = words.ranked(candidates, known, limit=MAX_SECTIONS)
        shown = [(one.path, _shown_section(one, candidates[one.path], tree.prefix)) for one in found]
        return shown[: max(1, len(fitting((text for _, text in shown), ROOM_FOR_SECTIONS)))]

    return await asyncio.to_thread(ranked)


async def _known(tree: Tree, index: SearchIndex | None, domain: str, query: str, paths: Set[str]) -> list[str]:
    """Return the pages that the index finds, best first, without those that are not as the index knows them."""
    if index is None:
        return []
    try:
        found = await index.search(domain, query[:500], limit=MAX_SECTIONS)
    except (NotFound, Unavailable):  # not indexed yet
        return []
    pages = dict.fromkeys(section.path for section in found.sections)
    return [path for path in pages if path in paths and path not in tree.changes]


async def _pattern_matches(
    tree: Tree, paths: Sequence[str], pattern: str, most: int, seconds: float
) -> tuple[list[Matches], str]:
    """Return the matches, and a sentence where not all files were searched. Children look for them: what a regular
    expression costs is not linear in its size.
    """
    clock, left, room, left_out = asyncio.get_running_loop().time, seconds, MAX_PATTERN_CHARACTERS, 0
    found: list[Matches] = []

    async def look(texts: Mapping[str, str]) -> None:
        nonlocal left
        began = clock()
        try:
            matches = await run_in_child(
                find_pattern, texts, pattern, most, timeout_seconds=left, memory_bytes=PATTERN_BYTES
            )
        except (Unavailable, Invalid) as error:
            why = f"This took longer than {seconds:g} seconds." if error.code == TIMED_OUT else error
            reason = f"The regular expression could not be searched for: {why}"
            raise Refused(reason, "Use a simpler one, or search in a folder.") from None
        left -= clock() - began
        if isinstance(matches, str):
            raise Refused(
                f"This is not a regular expression of Python: {matches}.", "Correct it, or set exact instead."
            )
        found.extend(matches)

    texts, gathered = dict[str, str](), 0
    async for some in tree.texts(paths):
        for path, text in some.items():
            if len(text) > room:
                left_out += 1
                continue
            if gathered + len(text) > MAX_CHILD_CHARACTERS:
                await look(texts)
                texts, gathered = {}, 0
            texts[path] = text
            gathered += len(text)
            room -= len(text)
    await look(texts)
    note = f"{number_of(left_out, 'file')} not searched: the files are too large together. " if left_out else ""
    return sorted(found, key=lambda match: match.path), note


def _shown_matches(matches: Sequence[Matches], prefix: str) -> tuple[str, int]:
    """Return the text, and how many of the files it names."""
    if not matches:
        return "No line matches.", 0
    lines: list[str] = []
    room = MAX_RESULT_CHARACTERS - ROOM_FOR_SECTIONS - 2 * ROOM_FOR_MORE
    most = None if len(matches) <= FEW_FILES else 1  # of many, where it is says more than how it stands there
    listed = 0
    for match in matches[:MAX_FILES_FOUND]:
        shown = _shown_match(match, most, room, f"{prefix}{match.path}", is_alone=len(matches) == 1)
        room -= sum(len(line) + 1 for line in shown)
        if room < 0 and listed:
            break
        lines += shown
        listed += 1
    head = f"{number_of(sum(m.count for m in matches), 'match', 'matches')} in {number_of(len(matches), 'file')}"
    if listed < len(matches):
        head += f", of which the first {listed} are listed: search in a folder for the others"
    return f"{head}:\n{as_data(chr(10).join(lines))}", listed


def _shown_match(match: Matches, most: int | None, room: int, path: str, *, is_alone: bool) -> list[str]:
    """Return the lines for one file: those that match, as far as there is room, and how many more there are."""
    shown = [f"{path} ({match.count})"]
    last = None
    for line in match.lines[:most]:
        text = f"  {line.number}: {line.text}"
        room -= len(text) + 1
        if is_alone and room < ROOM_FOR_MORE:
            break
        shown.append(text)
        last = line
    more = max(0, match.count - (last.matches if last is not None else 0))
    if more and is_alone and last is not None and len(match.lines) > LINES_OF_A_FILE:
        shown.append(f"  {MARK} {more} more in this file: read it from line {last.number + 1}")
    elif more:
        shown.append(f'  {MARK} {more} more in this file: search again with folder "{path}"')
    return shown


def _shown_section(section: LiveSection, text: str, prefix: str) -> str:
    heading = " > ".join(filter(None, (section.title, *section.heading_path)))
    lines = [line.rstrip("\n") for line in lines_of(text)]
    last = min(section.end_line, len(lines))
    shown = numbered(lines, min(section.start_line, last), last, section.best_line)
    return "\n".join([f"{prefix}{section.path}, lines {section.start_line} to {last}: {heading}", *shown])
