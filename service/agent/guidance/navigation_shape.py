"""How the site's navigation files are written: the beginning of the part that names pages."""

import asyncio
import re

from service.agent.checks.navigation import is_navigation
from service.agent.guards.configurations import is_code_navigation
from service.agent.tools.results import as_data, bounded
from service.agent.workspace import Workspace

MAX_FILES = 3
MAX_LINES = 30
MAX_CHARACTERS = 1_500

_BEGINS = re.compile(r"^[ \t]*(?:\"navigation\"|\"nav\"|nav|\"?sidebars?\"?|sidebar)[ \t]*[:=]", re.MULTILINE)


async def navigation_shape(workspace: Workspace, most: int = MAX_FILES) -> str:
    """Return where the navigation is and how it begins, from the base commit; empty when there is none."""
    parts = []
    for path in (await asyncio.to_thread(_files, workspace))[:most]:
        text = await workspace.base_text(path)
        if not text:
            continue
        begin = _BEGINS.search(text)
        lines = text[begin.start() if begin else 0 :].split("\n")
        shown = bounded("\n".join(lines[:MAX_LINES]), MAX_CHARACTERS)
        start = text.count("\n", 0, begin.start()) + 1 if begin else 1
        parts.append(f"- {path}, {text.count(chr(10)) + 1} lines, from line {start}:\n{as_data(shown)}")
    return "\n".join(parts)


def _files(workspace: Workspace) -> list[str]:
    """Return the navigation files of the documentation, those nearest to the root first."""
    found = [path for path in workspace.base_paths() if is_navigation(path) or is_code_navigation(path)]
    near = [path for path in found if workspace.is_documentation(path) or "/" not in path]
    return sorted(near or found, key=lambda path: (path.count("/"), path))[:MAX_FILES]
