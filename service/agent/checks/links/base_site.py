"""The site of a workspace's base commit: read once for all jobs, and only where it differs from an earlier commit's."""

import asyncio
from collections.abc import Mapping

from service.agent.checks.links.site_view import BaseSite, light_pages, made_view
from service.agent.checks.links.workspace_layout import base_layout
from service.agent.commit_files import CommitFiles
from service.agent.workspace import Workspace
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.navigation import Layout


async def base_site(workspace: Workspace) -> BaseSite:
    """Return the site before the job's changes."""
    files = workspace.files
    layout, _ = await base_layout(workspace)
    async with files.reading:
        if files.site is None:
            files.site = await _read(workspace, layout)
            files.before = None
        return files.site


async def _read(workspace: Workspace, layout: Layout) -> BaseSite:
    files = workspace.files
    before = files.before.site if files.before is not None else None
    wanted = await asyncio.to_thread(lambda: [path for path in files.by_path if layout.is_page(path)])
    found = await asyncio.to_thread(_unchanged, files, layout)
    async for texts in workspace.base_texts([path for path in wanted if path not in found]):
        found.update(await asyncio.to_thread(light_pages, texts, layout))
    pages = {path: found[path] for path in wanted if path in found}
    paths = workspace.base_paths()
    return BaseSite(pages, await asyncio.to_thread(made_view, layout, pages, paths, before))


def _unchanged(files: CommitFiles, layout: Layout) -> dict[str, ParsedPage]:
    """Return the pages that are as an earlier commit has them, and are read as they were then."""
    before = files.before
    if before is None or before.site is None:
        return {}
    was = before.site.view.layout
    if was.dialect != layout.dialect or (len(was.bases) > 1) != (len(layout.bases) > 1):
        return {}
    pages: Mapping[str, ParsedPage] = before.site.pages
    there = before.by_path
    return {
        path: page
        for path, page in pages.items()
        if path in files.by_path and files.by_path[path].blob == there[path].blob
    }
