"""The tools that show the repository: its list of files, and a file's text."""

from collections.abc import Sequence

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import Read
from service.agent.tools.results import MAX_RESULT_CHARACTERS, Outcome, bounded, number_of, with_data
from service.agent.workspace import Workspace
from service.domain.tool_values import Lines, Listed

MAX_LISTED = 500


async def read(workspace: Workspace, asked: Read) -> Outcome:
    path = workspace.checked(asked.path)
    lines = (await workspace.read(path)).splitlines(keepends=True)
    last = len(lines) if asked.end_line is None else min(asked.end_line, len(lines))
    if asked.start_line > max(last, 1):
        raise Refused(f"{path} has {number_of(len(lines), 'line')}.")
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
    said, span = with_data(head, text.removesuffix("\n"))
    return Outcome(said, value=Lines(span, next_line))


def listing(workspace: Workspace, folder: str, name: str) -> Outcome:
    wanted = [path for path in paths_within(workspace, folder) if name.lower() in path.lower()]
    if not wanted:
        known = not folder or workspace.has_folder(folder) or workspace.exists(folder)
        return Outcome("No file fits." if known else f"Folder not found: {folder}.", value=Listed(0))
    lines = wanted
    depth = 1 + (folder.count("/") + 1 if folder else 0)
    if len(wanted) > MAX_LISTED:
        lines = _collapsed(wanted, depth)
        while len(deeper := _collapsed(wanted, depth + 1)) <= MAX_LISTED and deeper != lines:
            lines, depth = deeper, depth + 1
    shown = lines[:MAX_LISTED]
    text = "\n".join(shown)
    rest = "" if len(shown) == len(lines) else f" The first {len(shown)} are listed: ask for a folder or a name."
    said, span = with_data(f"{number_of(len(wanted), 'file')}.{rest}", bounded(text))
    return Outcome(said, value=Listed(len(wanted), span))


def _collapsed(paths: Sequence[str], depth: int) -> list[str]:
    counts: dict[str, int] = {}
    for path in paths:
        parts = path.split("/", depth)
        key = path if len(parts) <= depth else "/".join(parts[:depth]) + "/"
        counts[key] = counts.get(key, 0) + 1
    return [f"{key} ({number_of(count, 'file')})" if key.endswith("/") else key for key, count in counts.items()]


def paths_within(workspace: Workspace, folder: str) -> list[str]:
    return [path for path in workspace.readable_paths() if is_within(path, folder)]


def is_within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")
