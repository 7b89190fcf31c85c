"""The tools that show the repository: its list of files, and a file's text."""

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import Read
from service.agent.tools.excerpts import beginning
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, fitting, number_of, with_data
from service.agent.tree import EVERYTHING, Tree, lines_of
from service.domain.texts.unicode_forms import normalized
from service.domain.tool_values import Lines, Listed

MAX_LISTED = 500


async def read(tree: Tree, asked: Read) -> Outcome:
    path = tree.checked(asked.path)
    lines = await asyncio.to_thread(lines_of, await tree.read(path))
    to_end = asked.end_line is None or asked.end_line == -1
    last = len(lines) if to_end or asked.end_line is None else min(asked.end_line, len(lines))
    if asked.start_line > max(len(lines), 1):
        raise Refused(f"{tree.prefix}{path} has {number_of(len(lines), 'line')}.", "Give a start_line among them.")
    if asked.start_line > max(last, 1):
        raise Refused(f"end_line {asked.end_line} is before start_line {asked.start_line}.", "Give a later end_line.")
    shown: list[str] = []
    room = MAX_RESULT_CHARACTERS
    for number, line in enumerate(lines[asked.start_line - 1 : last], asked.start_line):
        numbered = f"{number:>6}\t{line}"
        room -= len(numbered)
        if room < 0 and shown:
            break
        shown.append(numbered)
    text = "".join(shown)
    end = asked.start_line + len(shown) - 1
    shown_path = tree.prefix + path
    head = f"{shown_path}, lines {asked.start_line} to {end} of {len(lines)}:"
    next_line = None
    if len(text) > MAX_RESULT_CHARACTERS:
        left, text = len(text), beginning(text.removesuffix("\n"), MAX_RESULT_CHARACTERS)
        left -= len(text)
        head = (
            f"{shown_path}, the beginning of line {asked.start_line} of {len(lines)}: it has {left} characters more, "
            f"of which search, with {shown_path} as the folder, shows those around a text"
        )
        next_line = end + 1 if end < last else None
        head += f" (go on with start_line {next_line}):" if next_line is not None else ":"
    elif end < last:
        next_line = end + 1
        head = f"{head[:-1]} (go on with start_line {next_line}):"
    said, span = with_data(head, text.removesuffix("\n"))
    return Outcome(said, value=Lines(span, next_line, True, shown_path, asked.start_line, tree.commit))


def listing(tree: Tree, folder: str, name: str) -> Outcome:
    wanted = [path for path in tree.paths_within(folder) if _fits(path, name.strip())]
    if not wanted:
        known = folder in ("", EVERYTHING) or tree.has_folder(folder) or tree.exists(folder)
        said = "No file fits." if known else f"Folder not found: {tree.prefix}{folder}. List the one above it."
        return Outcome(said, value=Listed(0))
    wanted = [tree.prefix + path for path in wanted]
    lines = wanted
    depth = 1 + tree.prefix.count("/") + (folder.count("/") + 1 if folder not in ("", EVERYTHING) else 0)
    if len(wanted) > MAX_LISTED:
        lines = _collapsed(wanted, depth)
        while len(deeper := _collapsed(wanted, depth + 1)) <= MAX_LISTED and deeper != lines:
            lines, depth = deeper, depth + 1
    shown = fitting(lines[:MAX_LISTED])
    rest = "" if len(shown) == len(lines) else f" The first {len(shown)} lines are shown: ask for a folder or a name."
    if lines is not wanted and not rest:
        rest = " Folders stand for their files: ask for a folder or a name."
    said, span = with_data(f"{number_of(len(wanted), 'file')}.{rest}", "\n".join(shown))
    return Outcome(said, value=Listed(len(wanted), span))


def _fits(path: str, name: str) -> bool:
    """Return whether a path contains a text, or matches a pattern such as ``*.mdx`` or ``guides/**``."""
    path, name = (normalized("NFC", text).lower() for text in (path, name.removeprefix("./")))
    if name in path or not any(c in name for c in "*?"):
        return name in path
    return fnmatchcase(path, name) or fnmatchcase(path, f"*/{name}") or fnmatchcase(path, name.replace("**/", ""))


def _collapsed(paths: Sequence[str], depth: int) -> list[str]:
    counts: dict[str, int] = {}
    for path in paths:
        parts = path.split("/", depth)
        key = path if len(parts) <= depth else "/".join(parts[:depth]) + "/"
        counts[key] = counts.get(key, 0) + 1
    return [f"{key} ({number_of(count, 'file')})" if key.endswith("/") else key for key, count in counts.items()]
