"""Facts about a commit's files: worked out once, for all jobs that begin at it.

A job reads a large site to know where its pages are and where links lead. None of that depends on the job, so it is
kept for the commit; the next commit reads only the files that are different in it.
"""

import asyncio
from collections.abc import Iterable, Mapping

from service.agent.checks.links.site_view import BaseSite
from service.agent.guards.paths import Names, is_hidden
from service.ports.docs_source import DocsSource, Source, TreeFile
from service.retrieval.site.navigation import Layout

MAX_KEPT_BYTES = 96 << 20
"""Limit for all commits together, as ``CommitFiles.weight`` estimates them: two commits of a site of 15,000 pages."""
MAX_CHARACTERS = 96 << 20
"""Limit for the texts of all jobs together; those of a site of 15,000 pages have 60 million."""
TEXTS_SECONDS = 900.0
"""For which texts are kept after the last job began: jobs often come one after another."""
FILE_BYTES = 700
"""Memory of one file's path, id and names."""


class CommitFiles:
    """The files of one commit. Jobs share it, so it is never changed but to add what was not known."""

    def __init__(self, files: Iterable[TreeFile], before: "CommitFiles | None" = None) -> None:
        self.by_path: Mapping[str, TreeFile] = {file.path: file for file in files}
        self.readable = [path for path in self.by_path if not is_hidden(path)]
        self.folders = _folders_of(self.by_path)
        self.names = Names(self.by_path)
        """To be copied by those who note changes."""
        self.layout: tuple[Layout, frozenset[str]] | None = None
        """The site's rules, and the files that say them."""
        self.included: frozenset[str] | None = None
        """Files outside the documentation that pages include, and jobs may write."""
        self.site: BaseSite | None = None
        self.facts: dict[int | None, str] = {}
        """The beginning of a job's prompt, by the model's context window."""
        self.before = before
        """An earlier commit whose pages need not be read again, until the site of this one is known."""
        self.reading = asyncio.Lock()
        """Held by the job that reads the layout or the site; others wait for its result."""

    @property
    def weight(self) -> int:
        """Return about how many bytes of memory it takes."""
        return FILE_BYTES * len(self.by_path) + (self.site.weight if self.site is not None else 0)


class Texts:
    """Texts of files by project and blob, None for what is not text. The oldest go when they are too many.

    By project: a server can name a blob of another organization in a tree and not send it.
    """

    def __init__(self, characters: int) -> None:
        self._most = characters
        self._kept: dict[tuple[str, str], str | None] = {}
        self._characters = 0

    def has(self, project_id: str, blob: str) -> bool:
        return (project_id, blob) in self._kept

    def get(self, project_id: str, blob: str) -> str | None:
        return self._kept.get((project_id, blob))

    def keep(self, project_id: str, blob: str, text: str | None) -> None:
        key = project_id, blob
        self._characters += len(text or "") - len(self._kept.pop(key, None) or "")
        self._kept[key] = text
        while self._characters > self._most and len(self._kept) > 1:
            self._characters -= len(self._kept.pop(next(iter(self._kept))) or "")

    def clear(self) -> None:
        self._kept.clear()
        self._characters = 0


class KnownCommits:
    """The files of the commits that were asked for last, and texts of the documentation's."""

    def __init__(self, kept_bytes: int = MAX_KEPT_BYTES, characters: int = MAX_CHARACTERS) -> None:
        self.texts = Texts(characters)
        """Shared by all jobs, so that a search of a large site need not read it again. A while after the last job
        began they are let go.
        """
        self._letting_go: asyncio.TimerHandle | None = None
        self._kept_bytes = kept_bytes
        self._kept: dict[tuple[str, str, str, str], CommitFiles] = {}

    async def files(self, docs: DocsSource, source: Source, commit: str) -> CommitFiles:
        """Return a commit's files. Raise as ``DocsSource.list_files``, also where they are known already."""
        self._let_go_later()
        listed = await docs.list_files(source, commit)
        key = (source.project_id, source.context, source.docs_folder, commit)
        known = self._kept.get(key)
        if known is None:
            known = await asyncio.to_thread(CommitFiles, listed, self._last_read(key))
        self._kept.pop(key, None)
        self._kept[key] = known
        while sum(one.weight for one in self._kept.values()) > self._kept_bytes:
            del self._kept[next(iter(self._kept))]
        return known

    def _let_go_later(self) -> None:
        if self._letting_go is not None:
            self._letting_go.cancel()
        self._letting_go = asyncio.get_running_loop().call_later(TEXTS_SECONDS, self.texts.clear)

    def _last_read(self, key: tuple[str, str, str, str]) -> CommitFiles | None:
        """Return the newest commit of the same documentation whose pages are known."""
        alike = (one for other, one in reversed(self._kept.items()) if other[:3] == key[:3])
        return next((one for one in alike if one.site is not None), None)


def _folders_of(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found
