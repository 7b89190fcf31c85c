"""House rules of the documentation: the repository's guidance for agents, and the style guide that it names.

It is shown as data, with limits: it may steer style, structure and wording, never the service or the task. Everything
comes from the base commit, so that a job which goes on after a crash sends the same again.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator
from posixpath import dirname, join, normpath

from msgspec import Struct

from service.agent.guards.paths import is_hidden, is_under
from service.agent.prompts import prompt
from service.agent.tools.results import as_data, bounded
from service.agent.workspace import Workspace

OWN = ".docsmith/agent.md"
"""In the docs folder, or in the nearest folder above that has it: it takes precedence over all other files."""
NAMES = (
    "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules",
    ".clinerules", ".mintlify/AGENTS.md",
)  # fmt: skip
"""The first one in a folder counts: repositories that have several repeat one text for several programs, or have one
point to the other.
"""
MAX_CHARACTERS = 8_000
"""Limit for one file."""
MAX_NESTED_CHARACTERS = 2_000
"""Limit for one file in a folder of the documentation."""
MAX_IN_ALL = 24_000
MAX_NESTED = 20
"""Files in folders of the documentation that are named."""
MAX_STYLE_GUIDES = 2
LEAST = 200
"""Characters; where less is left of the limit, a file is named and not shown."""

_STYLE = re.compile(r"style|voice|tone|terminolog|writing|conventions", re.IGNORECASE)
_NAMED = re.compile(r"[\w.@/-]{1,200}\.(?:mdx?|markdown|rst|txt|adoc)\b")


class _Rules(Struct):
    workspace: Workspace
    each: int
    left: int
    parts: list[str] = []
    seen: set[str] = set()

    async def text(self, path: str) -> str:
        return ((await self.workspace.base_text(path)) or "").strip()

    async def add(self, path: str, name: str, most: int | None = None) -> str:
        """Quote a file once, as far as there is space; return its text."""
        text = await self.text(path)
        most = min(most or self.each, self.left)
        if path in self.seen or (text and most < min(LEAST, len(text))):
            return text
        self.seen.add(path)
        if text:
            self.left -= min(len(text), most)
            self.parts.append(prompt(name, path=path, quoted=as_data(bounded(text, most))))
        return text


async def house_rules(workspace: Workspace, window_tokens: int | None = None) -> str:
    """Return the files, those that count most first; empty when there are none."""
    each = MAX_CHARACTERS if window_tokens is None else min(MAX_CHARACTERS, window_tokens // 8)
    rules = _Rules(workspace, each, min(MAX_IN_ALL, 3 * each))
    texts: dict[str, str] = {}
    if own := next(_own(workspace), None):
        texts[own] = await rules.add(own, "own-guidance")
    for folder in _above(workspace.docs_folder):
        if path := _first_of(workspace, folder):
            texts[path] = await rules.add(path, "guidance")
    guides = [path for source, text in texts.items() for path in _style_guides(workspace, source, text)]
    for path in list(dict.fromkeys(guides))[:MAX_STYLE_GUIDES]:
        await rules.add(path, "style-guide")
    nested = [path for path in await asyncio.to_thread(_nested, workspace) if path not in rules.seen]
    for path in nested[:MAX_NESTED]:
        await rules.add(path, "nested-guidance", min(MAX_NESTED_CHARACTERS, rules.each))
    if left := [path for path in nested if path not in rules.seen]:
        rules.parts.append(prompt("more-guidance", paths=as_data("\n".join(left[:MAX_NESTED]))))
    return "\n\n".join(rules.parts)


def _own(workspace: Workspace) -> Iterator[str]:
    for folder in reversed(list(_above(workspace.docs_folder))):
        if workspace.in_base(path := join(folder, OWN)):
            yield path


def _above(docs_folder: str) -> Iterator[str]:
    """Yield the root, the docs folder, and the folders between them, from the top."""
    parts = docs_folder.split("/") if docs_folder else []
    for end in range(len(parts) + 1):
        yield "/".join(parts[:end])


def _first_of(workspace: Workspace, folder: str) -> str | None:
    return next((path for name in NAMES if workspace.in_base(path := join(folder, name))), None)


def _nested(workspace: Workspace) -> list[str]:
    """Return the first file of each folder below the docs folder, those nearest to it first."""
    docs, order = workspace.docs_folder, {name: place for place, name in enumerate(NAMES)}
    best: dict[str, str] = {}
    for path in workspace.base_paths():
        folder, _, name = path.rpartition("/")
        if name in order and folder != docs and is_under(folder, docs) and not is_hidden(folder):
            known = best.get(folder)
            if known is None or order[name] < order[known.rpartition("/")[2]]:
                best[folder] = path
    return sorted(best.values(), key=lambda path: (path.count("/"), path))


def _style_guides(workspace: Workspace, source: str, text: str) -> Iterable[str]:
    """Return the files of the repository that a text names where it speaks of style."""
    here = dirname(source).removesuffix(".docsmith").removesuffix(".github").rstrip("/")
    found = []
    for line in text.splitlines():
        if not _STYLE.search(line):
            continue
        for named in _NAMED.findall(line):
            for folder in dict.fromkeys((dirname(source), here, workspace.docs_folder, "")):
                path = normpath(join(folder, named.lstrip("/@"))) if not named.startswith("/") else named.lstrip("/")
                if workspace.in_base(path) and path != source:
                    found.append(path)
                    break
    return found
