"""The files of one commit, to read: of the documentation's repository, or of another one beside it.

Nothing here touches a disk, so no link, hook, filter or clever name of a hostile repository can act.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from service.agent.commit_files import CommitFiles, Texts
from service.agent.guards.paths import is_hidden, is_navigation_above, is_under, normal_folder, normal_path
from service.agent.guards.refused import Refused
from service.domain.errors import Forbidden, Invalid, NotFound, Unavailable
from service.markup.pages import is_page
from service.ports.docs_source import CommitChanges, DocsSource, Past, Source

LFS_POINTER = "version https://git-lfs"

_READ_AT_ONCE = 40
"""Files. Each may have megabytes, and four times that as text."""


class Limits(Struct, frozen=True):
    file_bytes: int = 1 << 20
    changed_bytes: int = 8 << 20
    changed_files: int = 400
    cached_characters: int = 16 << 20
    """Limit for the texts of a tree that shares none."""
    compared_characters: int = 16 << 20
    """Limit for the texts of one commit's changes, after which no more files are read."""


LIMITS = Limits()

EVERYTHING = "."
"""The folder that holds the whole repository."""


class Tree:
    """A commit's files under a layer of changes, which is empty where nothing can be changed."""

    def __init__(
        self,
        docs: DocsSource,
        source: Source,
        commit: str,
        files: CommitFiles,
        changes: Mapping[str, str | None] | None = None,
        *,
        limits: Limits = LIMITS,
        texts: Texts | None = None,
    ) -> None:
        """``texts``: those that are known; its own where there are none."""
        self.source = source
        self.commit = commit
        self.limits = limits
        self.prefix = f"@{source.context}/" if source.context else ""
        """Before the paths of a context repository, as the model gives and sees them."""
        self._docs = docs
        self.files = files
        self._base = files.by_path
        self._changes: dict[str, str | None] = dict(changes or {})
        self._texts = Texts(limits.cached_characters) if texts is None else texts

    # What there is. On a large site, walking all of its paths takes tens of milliseconds: callers do that in a thread.

    @property
    def docs_folder(self) -> str:
        return self.source.docs_folder

    @property
    def changes(self) -> Mapping[str, str | None]:
        return self._changes

    def in_base(self, path: str) -> bool:
        return path in self._base

    def exists(self, path: str) -> bool:
        if path in self._changes:
            return self._changes[path] is not None
        return path in self._base

    def base_paths(self) -> Sequence[str]:
        return list(self._base)

    def readable_base_paths(self) -> Sequence[str]:
        return self.files.readable

    def paths(self) -> list[str]:
        """Every file as it now stands, sorted."""
        return self._overlaid(list(self._base), lambda _path: True)

    def readable_paths(self) -> list[str]:
        """Return the paths that the model may read: all but hidden files."""
        return self._overlaid(self.files.readable, self._may_read)

    def documentation_paths(self) -> list[str]:
        """Return the paths that the model may read and that belong to the documentation: those of the docs folder, and
        navigation files above it.
        """
        return [path for path in self.readable_paths() if self.is_documentation(path)]

    def is_documentation(self, path: str) -> bool:
        return is_under(path, self.docs_folder) or is_navigation_above(path, self.docs_folder)

    def paths_within(self, folder: str) -> list[str]:
        """Return the readable paths in a folder as ``folder`` gives it: of the documentation when it is empty."""
        if not folder:
            return self.documentation_paths()
        return (
            self.readable_paths()
            if folder == EVERYTHING
            else [p for p in self.readable_paths() if is_within(p, folder)]
        )

    def _overlaid(self, base: list[str], fits: Callable[[str], bool]) -> list[str]:
        if not self._changes:
            return base
        made = [path for path, text in self._changes.items() if text is not None and fits(path)]
        return sorted([*(path for path in base if path not in self._changes), *made])

    def pages(self) -> list[str]:
        return [path for path in self.documentation_paths() if is_page(path)]

    def checked(self, path: str) -> str:
        """Return the path of the file that is meant, if it is one that the model may look at."""
        path = self.meant(path)
        if not self._may_read(path):
            raise Refused(f"{self.prefix}{path} is a hidden file or folder, which tools neither read nor write.")
        return path

    def meant(self, path: str) -> str:
        """Return the normal form of a path. One that no file has may be given from the docs folder, or from a folder
        above the repository: then it is the path of the file that is meant.
        """
        normal = normal_path(path)
        if self.exists(normal):
            return normal
        return next(filter(self.exists, self._readings(normal)), normal)

    def folder(self, path: str) -> str:
        """Return the folder, or the file, that is meant: empty for the documentation, EVERYTHING for the repository."""
        normal = normal_folder(path)
        if not normal:
            return EVERYTHING if path.strip() and self.docs_folder else ""
        if self.exists(normal) or self.has_folder(normal):
            return normal
        there = (one for one in self._readings(normal) if self.exists(one) or self.has_folder(one))
        return next(there, normal)

    async def checked_folder(self, path: str) -> str:
        """Return the folder that is meant, as ``folder`` does. Raise Refused for a hidden one, a link, a submodule."""
        folder = self.folder(path)
        if folder in ("", EVERYTHING):
            return folder
        if is_hidden(folder):
            raise Refused(f"{self.prefix}{folder} is a hidden file or folder, which tools neither read nor write.")
        if not self.exists(folder) and not self.has_folder(folder):
            await self.refuse_left_out(folder)
        return folder

    def has_folder(self, path: str) -> bool:
        return path in self.files.folders or any(
            text is not None and changed.startswith(f"{path}/") for changed, text in self._changes.items()
        )

    def _readings(self, path: str) -> Iterable[str]:
        """Yield other paths that people mean by this one: from the docs folder or a folder above it, with the
        repository's name before it, with the docs folder twice.
        """
        docs = self.docs_folder
        above = docs
        while above:
            yield f"{above}/{path}"
            above = above.rpartition("/")[0]
        repository = self.source.repository.rstrip("/").rpartition("/")[2].removesuffix(".git")
        for name in (repository, docs):
            if name and path.startswith(f"{name}/"):
                yield path.removeprefix(f"{name}/")

    async def left_out(self, paths: Collection[str]) -> Collection[str]:
        """Return the paths at which, or on the way to which, the commit has a link or a submodule."""
        return (await self._docs.left_out(self.source, self.commit, paths)).keys()

    async def refuse_left_out(self, path: str) -> None:
        """Raise Refused where the commit has something that is not a plain file at the path, or on the way to it."""
        left_out = (await self._docs.left_out(self.source, self.commit, [path])).get(path)
        if left_out is not None:
            raise Refused(
                f"{self.prefix}{left_out.path} cannot be used: {left_out.reason[:1].lower()}{left_out.reason[1:]}"
            )

    def _may_read(self, path: str) -> bool:
        return not is_hidden(path)

    # Reading

    async def read(self, path: str) -> str:
        """Return the text as it is now. Raise Refused when the file does not exist, or is not text."""
        path = self.checked(path)
        if not self.exists(path):
            await self.refuse_left_out(path)
            docs_folder = "" if self.is_documentation(path) else self.docs_folder
            advice = await asyncio.to_thread(self._advice, path)
            raise Refused(f"File not found: {self.prefix}{path}.", advice, docs_folder=docs_folder)
        text = await self.text(path)
        if text is None:
            why = f"it is not text (binary, or not UTF-8), or larger than {self.limits.file_bytes} bytes"
            raise Refused(f"{self.prefix}{path} cannot be read: {why}.", "Leave it as it is.")
        if text.startswith(LFS_POINTER):
            raise Refused(f"{self.prefix}{path} is kept in Git LFS: its content is not here. Leave it as it is.")
        return text

    async def text(self, path: str) -> str | None:
        """Return the text without the rules of ``read``: None when the file does not exist or is not text."""
        if path in self._changes:
            return self._changes[path]
        return await self.base_text(path)

    async def base_text(self, path: str) -> str | None:
        file = self._base.get(path)
        if file is None:
            return None
        if not self._texts.has(self.source.project_id, file.blob):
            try:
                content = await self._docs.read_file(self.source, file.blob)
            except Invalid:  # over the source's size limit
                return None
            except NotFound as error:
                raise self._unsent(error) from None
            self._texts.keep(self.source.project_id, file.blob, decoded(content, self.limits.file_bytes))
        return self._texts.get(self.source.project_id, file.blob)

    async def texts(self, paths: Iterable[str]) -> AsyncIterator[dict[str, str]]:
        """The texts of these files as they now stand, some hundred at a time; what is not text is left out."""
        async for some in self._texts_of(paths, self._changes):
            yield some

    async def base_texts(self, paths: Iterable[str]) -> AsyncIterator[dict[str, str]]:
        async for some in self._texts_of(paths, {}):
            yield some

    async def _texts_of(self, paths: Iterable[str], changes: Mapping[str, str | None]) -> AsyncIterator[dict[str, str]]:
        wanted = list(paths)
        for start in range(0, len(wanted), _READ_AT_ONCE):
            found: dict[str, str] = {}
            missing: dict[str, list[str]] = {}
            for path in wanted[start : start + _READ_AT_ONCE]:
                if path in changes:
                    if (text := changes[path]) is not None:
                        found[path] = text
                elif (file := self._base.get(path)) is not None:
                    if not self._texts.has(self.source.project_id, file.blob):
                        missing.setdefault(file.blob, []).append(path)
                    elif (text := self._texts.get(self.source.project_id, file.blob)) is not None:
                        found[path] = text
            if missing:
                contents = await self._contents(list(missing))
                limit = self.limits.file_bytes
                for blob, text in (await asyncio.to_thread(_all_decoded, contents, limit)).items():
                    self._texts.keep(self.source.project_id, blob, text)
                    if text is not None:
                        found.update(dict.fromkeys(missing[blob], text))
            yield found

    async def _contents(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        try:
            return await self._docs.read_files(self.source, blobs)
        except (NotFound, Invalid) as error:
            raise self._unsent(error) from None

    def _unsent(self, error: NotFound | Invalid) -> Exception:
        """Return what a file that the commit names and that is not here means: a job goes on without a context's."""
        if not self.source.context:
            return error
        return Refused(f"{self.prefix} cannot be read in full: {error}", "Go on without it.")

    # What was

    async def history(self, path: str, limit: int) -> Past:
        """Return the last commits that changed a file or folder. Raise Refused when they cannot be found out."""
        try:
            return await self._docs.history(self.source, self.commit, path, limit=limit)
        except (Unavailable, Invalid) as error:
            raise Refused(f"The history cannot be read: {error}", "Go on without it.") from None

    async def changed_by(self, name: str, paths: Sequence[str]) -> tuple[CommitChanges, dict[str, str | None]]:
        """Return what a commit changed, without hidden files, and the texts by blob: None for what is not text."""
        try:
            found = await self._docs.changed_by(self.source, self.commit, name, paths)
        except NotFound as error:
            raise Refused(str(error), "Use history to see the commits.") from None
        except (Unavailable, Invalid) as error:
            raise Refused(f"The commit cannot be read: {error}", "Go on without it.") from None
        return await self._with_texts(found)

    async def compared(
        self, before: str, after: str, paths: Sequence[str]
    ) -> tuple[CommitChanges, dict[str, str | None]]:
        """Return what differs between two commits, as ``changed_by`` does. An empty ``after`` is the tree's own."""
        try:
            found = await self._docs.compared(self.source, self.commit, before, after, paths)
        except NotFound as error:
            raise Refused(str(error), "Use history to see the commits.") from None
        except (Unavailable, Invalid, Forbidden) as error:
            raise Refused(f"The commits cannot be compared: {error}", "Go on without it.") from None
        return await self._with_texts(found)

    async def _with_texts(self, found: CommitChanges) -> tuple[CommitChanges, dict[str, str | None]]:
        files = [file for file in found.files if self._may_read(file.path)]
        texts: dict[str, str | None] = {}
        room, read = self.limits.compared_characters, 0
        while read < len(files) and room > 0:
            some = files[read : read + _READ_AT_ONCE // 2]
            blobs = list(dict.fromkeys(blob for file in some for blob in (file.old, file.new) if blob is not None))
            contents = await self._contents(blobs)
            new = dict.fromkeys(blobs) | await asyncio.to_thread(_all_decoded, contents, self.limits.file_bytes)
            room, read = room - sum(len(text or "") for text in new.values()), read + len(some)
            texts |= new
        return replace(found, files=tuple(files[:read]), more=found.more + len(files) - read), texts

    def _advice(self, path: str) -> str:
        name = PurePosixPath(path).stem.lower()
        if self.has_folder(path):
            return "It is a folder: use list to see its files."
        near = [other for other in self.readable_paths() if PurePosixPath(other).stem.lower() == name][:3]
        return (
            f"Did you mean {' or '.join(self.prefix + path for path in near)}?"
            if near
            else "Use list or search to find it."
        )


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends, counted as everywhere: only a line feed ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is in a folder, or is the file itself; every path is when the folder is empty."""
    return folder in ("", EVERYTHING) or path == folder or path.startswith(f"{folder}/")


def decoded(content: bytes, limit: int) -> str | None:
    """Text, or None for what is not: another encoding, a NUL, more than the limit."""
    if len(content) > limit or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _all_decoded(contents: Mapping[str, bytes], limit: int) -> dict[str, str | None]:
    return {blob: decoded(content, limit) for blob, content in contents.items()}
