"""The repository as a job sees it: the tree of the base commit under an overlay of the job's changes.

Nothing here touches a disk, so no link, hook, filter or clever name of a hostile repository can act: a path is a key
of the tree and nothing else. What is refused is refused to protect people who check the branch out later.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec import Struct

from service.agent.guards.paths import (
    Names,
    checked_writable,
    is_hidden,
    is_navigation_above,
    is_under,
    normal_path,
)
from service.agent.guards.refused import Refused as Refused
from service.domain.errors import Invalid
from service.domain.jobs.decider import FileChange
from service.markup.pages import is_page
from service.ports.docs_source import DocsSource, NewCommit, Source, TreeFile

LFS_POINTER = "version https://git-lfs"

_READ_AT_ONCE = 400
_REHEARSAL = datetime(2000, 1, 1, tzinfo=UTC)


class Limits(Struct, frozen=True):
    file_bytes: int = 1 << 20
    changed_bytes: int = 8 << 20
    changed_files: int = 400
    cached_characters: int = 96 << 20
    """Limit for texts that are kept in memory, so that a second search of a large site need not read it again."""


LIMITS = Limits()


class Workspace:
    def __init__(
        self,
        docs: DocsSource,
        source: Source,
        commit: str,
        files: Iterable[TreeFile],
        changes: Mapping[str, str | None],
        *,
        limits: Limits = LIMITS,
    ) -> None:
        self.source = source
        self.commit = commit
        self.limits = limits
        self._docs = docs
        self._base = {file.path: file for file in files}
        self._changes: dict[str, str | None] = dict(changes)
        self._texts: dict[str, str | None] = {}  # by blob; None is not text
        self._cached = 0
        self._readable = [path for path in self._base if self._may_read(path)]
        self._names = Names(self._base)
        for path, text in self._changes.items():
            self._names.note(path, exists=text is not None)

    @classmethod
    async def open(
        cls,
        docs: DocsSource,
        source: Source,
        commit: str,
        changes: Mapping[str, str | None],
        *,
        limits: Limits = LIMITS,
    ) -> "Workspace":
        files = await docs.list_files(source, commit)
        return await asyncio.to_thread(cls, docs, source, commit, files, changes, limits=limits)

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
        return self._readable

    def paths(self) -> list[str]:
        """Every file as it now stands, sorted."""
        return self._overlaid(list(self._base), lambda _path: True)

    def readable_paths(self) -> list[str]:
        """Return the paths that the model may read: the docs folder without hidden files, and navigation files above
        it.
        """
        return self._overlaid(self._readable, self._may_read)

    def _overlaid(self, base: list[str], fits: Callable[[str], bool]) -> list[str]:
        if not self._changes:
            return base
        made = [path for path, text in self._changes.items() if text is not None and fits(path)]
        return sorted([*(path for path in base if path not in self._changes), *made])

    def pages(self) -> list[str]:
        return [path for path in self.readable_paths() if is_page(path)]

    def checked(self, path: str) -> str:
        """The path in its normal form, if it is one that the model may look at."""
        normal = normal_path(path)
        if not self._may_read(normal):
            if is_hidden(normal):
                raise Refused(f"{normal} is a hidden file or folder, which tools neither read nor write.")
            reason = f"{normal} is outside the documentation: every path begins with {self.docs_folder}/."
            raise Refused(reason, docs_folder=self.docs_folder)
        return normal

    def _may_read(self, path: str) -> bool:
        if is_hidden(path):
            return False
        return is_under(path, self.docs_folder) or is_navigation_above(path, self.docs_folder)

    # Reading

    async def read(self, path: str) -> str:
        """Return the text as it is now. Raise Refused when the file does not exist, or is not text."""
        path = self.checked(path)
        if not self.exists(path):
            raise Refused(f"There is no file {path}.{await asyncio.to_thread(self._nearest, path)}")
        text = await self.text(path)
        if text is None:
            raise Refused(f"{path} is not text (binary, or not UTF-8), or larger than {self.limits.file_bytes} bytes.")
        if text.startswith(LFS_POINTER):
            raise Refused(f"{path} is kept in Git LFS: its content is not here.")
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
        if file.blob not in self._texts:
            try:
                content = await self._docs.read_file(self.source, file.blob)
            except Invalid:  # over the source's size limit
                return None
            self._keep(file.blob, decoded(content, self.limits.file_bytes))
        return self._texts.get(file.blob)

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
                    if file.blob not in self._texts:
                        missing.setdefault(file.blob, []).append(path)
                    elif (text := self._texts[file.blob]) is not None:
                        found[path] = text
            if missing:
                contents = await self._docs.read_files(self.source, list(missing))
                limit = self.limits.file_bytes
                for blob, text in (await asyncio.to_thread(_all_decoded, contents, limit)).items():
                    self._keep(blob, text)
                    if text is not None:
                        found.update(dict.fromkeys(missing[blob], text))
            yield found

    def _keep(self, blob: str, text: str | None) -> None:
        self._texts[blob] = text
        self._cached += len(text or "")
        while self._cached > self.limits.cached_characters and len(self._texts) > 1:
            self._cached -= len(self._texts.pop(next(iter(self._texts))) or "")

    def _nearest(self, path: str) -> str:
        name = PurePosixPath(path).stem.lower()
        near = [other for other in self.readable_paths() if PurePosixPath(other).stem.lower() == name][:3]
        return f" Did you mean {' or '.join(near)}?" if near else ""

    # Changing: each returns the changes as values; the caller records them and calls ``apply``

    def apply(self, changes: Iterable[FileChange]) -> None:
        for change in changes:
            self._changes[change.path] = change.content
            self._names.note(change.path, exists=change.content is not None)

    async def write(self, path: str, text: str) -> tuple[FileChange, ...]:
        path = self._writable(path)
        if not self.exists(path):
            self._names.check_new(path)
        else:
            await self.read(path)  # what cannot be read must not be overwritten
        return self._within_limits((FileChange(path, text),))

    async def replace(
        self, path: str, old: str, new: str, *, everywhere: bool = False, line: int | None = None
    ) -> tuple[FileChange, int]:
        """Exact text for other text: it must be there once, unless ``everywhere``. Gives also how often it was."""
        path = self._writable(path)
        text = await self.read(path)
        if not old:
            raise Refused("The text to replace is empty. To write a whole file use write.")
        if old == new:
            raise Refused("The old and the new text are the same.")
        starts = _occurrences(text, old)
        if not starts and "\r\n" in text and "\r\n" not in old:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
            starts = _occurrences(text, old)
        lines = _line_numbers(text, starts)
        if line is not None:
            chosen = [start for start, at in zip(starts, lines, strict=True) if at == line]
            if starts and not chosen:
                raise Refused(f"{path} has this text on {_lines(lines)}, not on line {line}.")
            starts, lines = chosen, [line] * len(chosen)
        if not starts:
            raise Refused(f"{path} does not have this text.", _hint(text, old))
        if len(starts) > 1 and not everywhere:
            raise Refused(
                f"{path} has this text {len(starts)} times, on {_lines(lines)}: give more of its surroundings, "
                "or a line, or set all."
            )
        parts, done = [], 0
        for start in starts:
            parts += [text[done:start], new]
            done = start + len(old)
        (change,) = self._within_limits((FileChange(path, "".join([*parts, text[done:]])),))
        return change, len(starts)

    async def insert(self, path: str, text: str, after_line: int | None) -> tuple[FileChange, ...]:
        """Whole lines after the given one; at the end for None."""
        path = self._writable(path)
        before = await self.read(path)
        end = "\r\n" if "\r\n" in before else "\n"
        lines = before.splitlines(keepends=True)
        if after_line is not None and after_line > len(lines):
            raise Refused(f"{path} has {len(lines)} lines.")
        at = len(lines) if after_line is None else after_line
        if at and not lines[at - 1].endswith(("\n", "\r")):
            lines[at - 1] += end
        new = text if text.endswith("\n") else f"{text}\n"
        if end == "\r\n" and "\r\n" not in new:
            new = new.replace("\n", "\r\n")
        return self._within_limits((FileChange(path, "".join([*lines[:at], new, *lines[at:]])),))

    async def move(self, path: str, to: str) -> tuple[FileChange, ...]:
        path, to = self._writable(path), self._writable(to)
        text = await self.read(path)
        if path == to:
            raise Refused("The old and the new path are the same.")
        if self.exists(to):
            raise Refused(f"{to} exists already.")
        self._names.check_new(to, instead_of=path)
        return self._within_limits((FileChange(path, None), FileChange(to, text)))

    async def delete(self, path: str) -> tuple[FileChange, ...]:
        path = self._writable(path)
        await self.read(path)
        return self._within_limits((FileChange(path, None),))

    async def effective_changes(self) -> dict[str, str | None]:
        """The changes without those that leave a file as it was."""
        before = {path: await self.base_text(path) for path in sorted(self._changes)}
        return {path: self._changes[path] for path, text in before.items() if text != self._changes[path]}

    async def rehearse(self, changes: Mapping[str, str | None]) -> None:
        """Write a commit of these changes to no branch. Raise Invalid when they cannot be committed."""
        await self._docs.write_commit(
            self.source, NewCommit(self.commit, changes, "Rehearsal <rehearsal@localhost>", "Rehearsal\n", _REHEARSAL)
        )

    def _writable(self, path: str) -> str:
        path = self.checked(path)
        checked_writable(path)
        return path

    def _within_limits(self, changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
        for change in changes:
            if change.content is None:
                continue
            try:
                size = len(change.content.encode())
            except UnicodeEncodeError:
                raise Refused("The text has characters that UTF-8 cannot hold (half of a surrogate pair).") from None
            if size > self.limits.file_bytes:
                raise Refused(f"{change.path} would be {size} bytes; the most is {self.limits.file_bytes}.")
            if "\0" in change.content:
                raise Refused("The text has a NUL character.")
        after = {**self._changes, **{change.path: change.content for change in changes}}
        if len(after) > self.limits.changed_files:
            raise Refused(f"One job changes at most {self.limits.changed_files} files.")
        if sum(len(text) for text in after.values() if text) > self.limits.changed_bytes:
            raise Refused(f"All changed files together have at most {self.limits.changed_bytes} bytes.")
        return changes


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


def _occurrences(text: str, part: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(part), text)]


def _line_numbers(text: str, starts: Sequence[int]) -> list[int]:
    numbers, line, done = [], 1, 0
    for start in starts:
        line += text.count("\n", done, start)
        done = start
        numbers.append(line)
    return numbers


def _lines(lines: Sequence[int]) -> str:
    some = ", ".join(str(line) for line in lines[:10])
    return f"line{'s' if len(lines) > 1 else ''} {some}{' …' if len(lines) > 10 else ''}"


def _hint(text: str, old: str) -> str:
    """Return where the text nearly is: the same but for white space, or its first line."""
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if not first:
        return ""
    for number, line in enumerate(text.splitlines(), 1):
        if first in line:
            return f"Its first line is on line {number}; what follows differs there: read it again."
    return "Read the file again, and copy the text exactly, white space included."
