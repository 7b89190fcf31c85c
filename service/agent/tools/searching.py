"""The search tool: the sections that best answer a query, and the lines that contain a text."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from service.agent.tools.arguments import Search
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, as_data, number_of
from service.agent.tree import is_within
from service.agent.workspace import Workspace
from service.domain.errors import NotFound, Unavailable
from service.domain.tool_values import Found
from service.ports.search_index import SearchIndex, Section

MAX_FILES_FOUND = 200
MAX_LINES_SHOWN_OF_A_FILE = 5
MAX_SECTIONS = 8


async def search(workspace: Workspace, index: SearchIndex | None, domain: str, asked: Search) -> Outcome:
    folder = workspace.folder(asked.folder)
    parts: list[str] = []
    if not asked.exact and index is not None and asked.query.strip():
        try:
            found = await index.search(domain, asked.query[:500], limit=MAX_SECTIONS)
        except (NotFound, Unavailable):
            pass  # not indexed yet: the plain search below stands alone
        else:
            sections = [section for section in found.sections if is_within(section.path, folder)]
            if sections:
                parts.append("Sections:\n" + as_data("\n\n".join(_shown_section(s) for s in sections)))
    within = await asyncio.to_thread(workspace.paths_within, folder)
    matches: list[Matches] = []
    async for texts in workspace.texts(within):
        matches += await asyncio.to_thread(find_text, texts, asked.query, exact=asked.exact)
    matches.sort(key=lambda match: match.path)
    shown, listed = _shown_matches(matches)
    paths = tuple(match.path for match in matches[:listed])
    return Outcome("\n\n".join([*parts, shown]), value=Found(len(matches), paths))


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
    head = f"{number_of(sum(m.count for m in matches), 'match', 'matches')} in {number_of(len(matches), 'file')}"
    if listed < len(matches):
        head += f", of which the first {listed} are listed"
    return f"{head}:\n{as_data(chr(10).join(lines))}", listed


def _shown_section(section: Section) -> str:
    heading = " > ".join((section.title, *section.heading_path))
    text = " ".join(section.text.split())
    return f"{section.path}, lines {section.start_line} to {section.end_line}: {heading}\n  {text[:400]}"
