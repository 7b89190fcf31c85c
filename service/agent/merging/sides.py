"""The files of the commits that a merge is made of, and the texts of some of them."""

import asyncio
from collections.abc import Iterable, Mapping

from msgspec import Struct

from service.agent.guards.paths import checked_writable, is_hidden, is_navigation_above, is_under
from service.agent.guards.refused import Refused
from service.agent.tree import LFS_POINTER, LIMITS, decoded
from service.ports.docs_source import DocsSource, Source, TreeFile

READ_AT_ONCE = 40


class Side:
    """One commit: its files by path, and their texts once they are loaded."""

    def __init__(self, docs: DocsSource, source: Source, files: Iterable[TreeFile]) -> None:
        self.files: Mapping[str, TreeFile] = {file.path: file for file in files}
        self._docs, self._source = docs, source
        self._texts: dict[str, str | None] = {}

    @classmethod
    async def read(cls, docs: DocsSource, source: Source, commit: str) -> "Side":
        return cls(docs, source, await docs.list_files(source, commit))

    def blob(self, path: str) -> str | None:
        file = self.files.get(path)
        return None if file is None else file.blob

    async def load(self, paths: Iterable[str]) -> None:
        blobs = {blob for path in paths if (blob := self.blob(path)) is not None and blob not in self._texts}
        wanted = sorted(blobs)
        for start in range(0, len(wanted), READ_AT_ONCE):
            contents = await self._docs.read_files(self._source, wanted[start : start + READ_AT_ONCE])
            self._texts |= await asyncio.to_thread(_texts_of, contents)

    def text(self, path: str) -> str | None:
        """Return a loaded file's text; None for one that is not there, is not text, or is kept in Git LFS."""
        blob = self.blob(path)
        return None if blob is None else self._texts.get(blob)

    def is_text_or_absent(self, path: str) -> bool:
        return path not in self.files or self.text(path) is not None


def _texts_of(contents: Mapping[str, bytes]) -> dict[str, str | None]:
    texts = {blob: decoded(content, LIMITS.file_bytes) for blob, content in contents.items()}
    return {blob: None if text is None or text.startswith(LFS_POINTER) else text for blob, text in texts.items()}


class Sides(Struct, frozen=True):
    """Two commits and the one that both come from."""

    base: Side
    ours: Side
    theirs: Side

    def changed_in(self, side: Side) -> set[str]:
        """Return the files that a side has changed, added or deleted."""
        before, after = self.base.files, side.files
        return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}

    async def load(self, paths: Iterable[str]) -> None:
        wanted = list(paths)
        for side in (self.base, self.ours, self.theirs):
            await side.load(wanted)


def is_writable(path: str, docs_folder: str) -> bool:
    """Return whether a job may write a file of this name."""
    if is_hidden(path) or not (is_under(path, docs_folder) or is_navigation_above(path, docs_folder)):
        return False
    try:
        checked_writable(path)
    except Refused:
        return False
    return True
