"""How the site of a workspace is laid out, by the rules that search has; the files that they ask for are read."""

import asyncio
from collections.abc import Sequence

from service.agent.workspace import Workspace
from service.domain.errors import Unavailable
from service.retrieval.site.navigation import Layout, detect_layout

MAX_READ = 20_000
"""Files that are read for one layout."""
READ_SECONDS = 60
"""Limit for one file, which may have to be fetched."""


async def base_layout(workspace: Workspace) -> tuple[Layout, frozenset[str]]:
    """Return the layout of the site before the job's changes, and the files that say it."""
    files = workspace.files
    async with files.reading:
        if files.layout is None:
            files.layout = await workspace_layout(workspace, workspace.base_paths(), base=True)
        return files.layout


async def workspace_layout(workspace: Workspace, paths: Sequence[str], *, base: bool) -> tuple[Layout, frozenset[str]]:
    """Return the layout of the site, and the files that say it; ``base``: before the job's changes."""
    loop = asyncio.get_running_loop()
    files = frozenset(paths)
    asked: set[str] = set()

    def read(name: str) -> bytes | None:  # in the thread that looks for the layout
        if name not in files or len(asked) >= MAX_READ:
            return None
        asked.add(name)
        text = workspace.base_text(name) if base else workspace.text(name)
        try:
            found = asyncio.run_coroutine_threadsafe(text, loop).result(READ_SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"Reading {name} took longer than {READ_SECONDS} s. Try again later.") from error
        return found.encode(errors="replace") if found is not None else None

    layout = await asyncio.to_thread(detect_layout, files, read, docs_folder=workspace.docs_folder)
    return layout, frozenset(asked)
