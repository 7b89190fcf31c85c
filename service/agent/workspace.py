"""The repository as a job sees it: the tree of the base commit under an overlay of the job's changes."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from service.agent.commit_files import CommitFiles, KnownCommits, Texts
from service.agent.guards import configurations, model_marks
from service.agent.guards.paths import checked_writable, is_under
from service.agent.guards.refused import Refused
from service.agent.tree import LIMITS, Limits, Tree, is_within, lines_of
from service.domain.jobs.decider import FileChange
from service.ports.docs_source import DocsSource, MergedCommit, NewCommit, Source

MAX_NAMED = 20
"""Files that pages include, in a sentence."""
_NUMBERED = re.compile(r" *([0-9]{1,9})\t")
_REHEARSAL = datetime(2000, 1, 1, tzinfo=UTC)


class Workspace(Tree):
    """A tree whose documentation a job may change."""

    def __init__(
        self,
        docs: DocsSource,
        source: Source,
        commit: str,
        files: CommitFiles,
        changes: Mapping[str, str | None],
        *,
        limits: Limits = LIMITS,
        merged: MergedCommit | None = None,
        texts: Texts | None = None,
    ) -> None:
        super().__init__(docs, source, commit, files, changes, limits=limits, texts=texts)
        self.merged = merged
        """The other parent, when the commit of the changes is a merge. The files are then those of both parents."""
        self._names = files.names.copied()
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
        known: KnownCommits | None = None,
    ) -> "Workspace":
        known = known or KnownCommits()
        files = await known.files(docs, source, commit)
        return cls(docs, source, commit, files, changes, limits=limits, texts=known.texts)

    # Changing: each returns the changes as values; the caller records them and calls ``apply``

    def apply(self, changes: Iterable[FileChange]) -> None:
        for change in changes:
            self._changes[change.path] = change.content
            self._names.note(change.path, exists=change.content is not None)

    async def write(self, path: str, text: str) -> tuple[FileChange, ...]:
        path = self._writable(path)
        if not self.exists(path):
            await self._check_new(path)
        else:
            before = await self.read(path)  # what cannot be read must not be overwritten
            text = await asyncio.to_thread(_in_form_of, before, text)
        return await self._allowed((FileChange(path, text),))

    async def replace(
        self, path: str, old: str, new: str, *, everywhere: bool = False, line: int | None = None
    ) -> tuple[FileChange, int]:
        """Exact text for other text: it must be there once, unless ``everywhere``. Gives also how often it was."""
        path = self._writable(path)
        text = await self.read(path)
        if not old:
            raise Refused("The text to replace is empty.", "To write a whole file use write.")
        if old == new:
            raise Refused("The old and the new text are the same.", "Nothing has to be replaced.")
        starts = _occurrences(text, old)
        if not starts and (copied := without_line_numbers(old)) is not None:
            old, new = copied, without_line_numbers(new) or new
            starts = _occurrences(text, old)
        if not starts and "\r\n" in text and "\r\n" not in old:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
            starts = _occurrences(text, old)
        lines = _line_numbers(text, starts)
        if line is not None:
            chosen = _occurrences_on(text, old, line)
            if starts and not chosen:
                raise Refused(
                    f"{path} has this text on {_lines(lines)}, not on line {line}.", "Give one of these lines."
                )
            starts, lines = chosen, [line] * len(chosen)
        if not starts:
            raise Refused(f"{path} does not have this text.", _hint(text, old))
        if len(starts) > 1 and not everywhere:
            raise Refused(
                f"{path} has this text {len(starts)} times, on {_lines(lines)}: give more of its surroundings, "
                "or a line, or set all."
            )
        parts, done, new = [], 0, _with_ends_of(text, new)
        for start in starts:
            parts += [text[done:start], new]
            done = start + len(old)
        (change,) = await self._allowed((FileChange(path, "".join([*parts, text[done:]])),))
        return change, len(starts)

    async def insert(self, path: str, text: str, after_line: int | None) -> tuple[FileChange, ...]:
        """Whole lines after the given one; at the end for None."""
        path = self._writable(path)
        after = await asyncio.to_thread(_inserted, path, await self.read(path), text, after_line)
        return await self._allowed((FileChange(path, after),))

    async def move(self, path: str, to: str) -> tuple[FileChange, ...]:
        path, to = self._writable(path), self._writable(to)
        text = await self.read(path)
        if path == to:
            raise Refused("The old and the new path are the same.", "Give another one.")
        if self.exists(to):
            raise Refused(f"{to} exists already.", "Give another path, or delete it first.")
        await self._check_new(to, instead_of=path)
        return await self._allowed((FileChange(path, None), FileChange(to, text)))

    async def delete(self, path: str) -> tuple[FileChange, ...]:
        path = self._writable(path)
        await self.read(path)
        return await self._allowed((FileChange(path, None),))

    async def revert(self, path: str, commit: str = "") -> tuple[FileChange, ...]:
        """A changed file as it was, or every changed one in a folder. ``commit``: one that had the text of a file."""
        folder = await self.checked_folder(path)
        if commit:
            file = self._writable(path)
            found, texts = await self.compared(commit, "", [file])
            if not found.files and not self.in_base(file):
                raise Refused(f"{commit} does not have {file}.", "Use history to see which commits changed it.")
            text = texts[found.files[0].old] if found.files and found.files[0].old else await self.base_text(file)
            if found.files and (text is None or found.files[0].old is None):
                raise Refused(f"{file} is no text in {commit}, or is not there.", "Use history to see the commits.")
            return await self._allowed((FileChange(file, text),))
        changes = await self.effective_changes()
        wanted = [each for each in changes if is_within(each, folder)]
        if not wanted:
            some = ", ".join(list(changes)[:20])
            advice = f"You have changed: {some}{' …' if len(changes) > 20 else ''}." if changes else ""
            raise Refused(f"You have not changed {path}." if changes else "You have changed nothing.", advice)
        return tuple([FileChange(each, await self.base_text(each)) for each in wanted])

    def copy(self) -> "Workspace":
        """Return a workspace of the same files and changes, to try more of them."""
        return Workspace(
            self._docs, self.source, self.commit, self.files, self._changes,
            limits=self.limits, merged=self.merged, texts=self._texts,
        )  # fmt: skip

    async def effective_changes(self) -> dict[str, str | None]:
        """The changes without those that leave a file as it was."""
        before = {path: await self.base_text(path) for path in sorted(self._changes)}
        return {path: self._changes[path] for path, text in before.items() if text != self._changes[path]}

    async def committed_changes(self) -> Mapping[str, str | None]:
        """Return the changes that the commit names. A merge names each file that the job has settled, also one that is
        now as the other parent has it.
        """
        return await self.effective_changes() if self.merged is None else dict(self._changes)

    async def rehearse(self, changes: Mapping[str, str | None]) -> None:
        """Write a commit of these changes to no branch. Raise Invalid when they cannot be committed."""
        if self.merged is not None:
            changes = {**self._changes, **changes}
        new = NewCommit(self.commit, changes, "Rehearsal <rehearsal@localhost>", "Rehearsal\n", _REHEARSAL, self.merged)
        await self._docs.write_commit(self.source, new)

    async def _check_new(self, path: str, *, instead_of: str = "") -> None:
        await self.refuse_left_out(path)
        self._names.check_new(path, instead_of=instead_of)

    def _meant_to_write(self, path: str) -> str:
        """Return the path that is meant; of a new file, one below a folder that only the documentation has."""
        path = self.meant(path)
        folder, docs = path.partition("/")[0], self.docs_folder
        if "/" not in path or self.exists(path) or is_under(path, docs) or self.has_folder(folder):
            return path
        inner = self.folder(folder)
        return f"{inner}{path.removeprefix(folder)}" if is_under(f"{inner}/", docs) else path

    def may_write(self, path: str) -> bool:
        """Return whether a job may change a file, by its name."""
        try:
            self._writable(path)
        except Refused:
            return False
        return True

    def _writable(self, path: str) -> str:
        path = self.checked(self._meant_to_write(path))
        included = self.files.included or frozenset()
        if not self.is_documentation(path) and path not in included:
            more = f", and what its pages include: {', '.join(sorted(included)[:MAX_NAMED])}" if included else ""
            reason = f"{path} can be read, but not written: only the documentation in {self.docs_folder}/ can{more}."
            raise Refused(reason, f"Give a path that begins with {self.docs_folder}/.", docs_folder=self.docs_folder)
        checked_writable(path)
        return path

    async def _allowed(self, changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
        """The changes, if each may be made. Raise Refused."""
        self._check_limits(changes)
        for change in changes:
            if change.content is None and not self.is_documentation(change.path):
                raise Refused(f"{change.path} cannot be moved or deleted: pages include it.", "Change its text.")
            check = configurations.check_of(change.path, self._is_there)
            if check is not None:
                await asyncio.to_thread(check, await self.base_text(change.path), change.content)
        if self.merged is None:  # in a merge, text of others comes along
            await self._check_marks(changes)
        return changes

    async def _check_marks(self, changes: tuple[FileChange, ...]) -> None:
        """Raise Refused where a file gets a mark that none of these files had."""
        for change in changes:
            marks = await asyncio.to_thread(model_marks.marks_in, change.content or "")
            if marks:
                paths = [each.path for each in changes]
                before = [await self.base_text(path) or "" for path in paths]
                model_marks.check(marks, "\n".join([*before, *(self._changes.get(path) or "" for path in paths)]))

    def _is_there(self, path: str) -> bool:
        return self.exists(path) or self.has_folder(path)

    def _check_limits(self, changes: tuple[FileChange, ...]) -> None:
        for change in changes:
            if change.content is None:
                continue
            try:
                size = len(change.content.encode())
            except UnicodeEncodeError:
                raise Refused(
                    "The text has characters that UTF-8 cannot hold (half of a surrogate pair).", "Leave them out."
                ) from None
            if size > self.limits.file_bytes:
                raise Refused(
                    f"{change.path} would be {size} bytes; the most is {self.limits.file_bytes}.", "Split it."
                )
            if "\0" in change.content:
                raise Refused("The text has a NUL character.", "Leave it out.")
        after = {**self._changes, **{change.path: change.content for change in changes}}
        if len(after) > self.limits.changed_files:
            raise Refused(f"One job changes at most {self.limits.changed_files} files.", "Finish with these.")
        if sum(len(text) for text in after.values() if text) > self.limits.changed_bytes:
            raise Refused(f"All changed files together have at most {self.limits.changed_bytes} bytes.", "Finish.")


def without_line_numbers(text: str) -> str | None:
    """Return lines as ``read`` shows them without their numbers; None unless every line has one, in order."""
    lines = text.split("\n")
    rest = lines[:-1] if len(lines) > 1 and not lines[-1] else lines
    found = [_NUMBERED.match(line) for line in rest]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(numbers) < len(rest) or numbers != list(range(numbers[0], numbers[0] + len(rest))):
        return None
    return "\n".join([line.partition("\t")[2] for line in rest] + lines[len(rest) :])


def _occurrences(text: str, part: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(part), text)]


def _line_end(text: str) -> str:
    """Return the line end that most lines of a file have."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"


def _with_ends_of(before: str, text: str) -> str:
    """Return new text of a file with the end that each line had, where it is still there; new lines end as most do.
    Models write line feeds alone.
    """
    if "\n" not in before:
        return text
    end, crlf = _line_end(before), before.count("\r\n")
    text = text.replace("\r\n", "\n").replace("\n", end)
    if crlf in (0, before.count("\n")):
        return text
    ended = {line.rstrip("\r\n"): line for line in lines_of(before) if line.endswith("\n")}
    return "".join(ended.get(line.rstrip("\r\n"), line) if line.endswith("\n") else line for line in lines_of(text))


def _in_form_of(before: str, text: str) -> str:
    """Return a file's new text with the byte order mark and the line ends of the text before."""
    mark = _MARK if before.startswith(_MARK) else ""
    return mark + _with_ends_of(before.removeprefix(_MARK), text.removeprefix(_MARK))


_MARK = "\ufeff"


def _inserted(path: str, before: str, text: str, after_line: int | None) -> str:
    """Return a file's text with whole lines after the given one; at the end for None. Raise Refused."""
    end = _line_end(before)
    lines = lines_of(before)
    if after_line is not None and after_line > len(lines):
        raise Refused(f"{path} has {len(lines)} lines.", f"Give an after_line up to {len(lines)}, or none.")
    at = len(lines) if after_line is None else after_line
    if at and not lines[at - 1].endswith(("\n", "\r")):
        lines[at - 1] += end
    new = _with_ends_of(before, text if text.endswith("\n") else f"{text}\n")
    return "".join([*lines[:at], new, *lines[at:]])


def _occurrences_on(text: str, part: str, line: int) -> list[int]:
    """Return those that begin on a line, also where one that begins above reaches into it."""
    begin = 0
    for _ in range(line - 1):
        begin = text.find("\n", begin) + 1
        if not begin:
            return []
    end = text.find("\n", begin)
    last = len(text) if end < 0 else end
    return [begin + start for start in _occurrences(text[begin : last + len(part)], part) if begin + start <= last]


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
