"""Files that both sides of a pull request changed, merged by lines where the lines are not the same."""

import stat

from service.adapters.git.objects import LFS_POINTER, Entry, Objects
from service.domain.texts.comparison import Effort
from service.domain.texts.line_merge import merged, text_of

MAX_BYTES = 1 << 20
"""Limit for each of the three texts of a file."""
MERGE_STEPS = 20_000_000
"""Effort for all files of a pull request, about a second."""


class LineMerges:
    """The merges of one pull request. A file that is no text, or is larger than the limit, is a conflict."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._effort = Effort(MERGE_STEPS)

    def __call__(self, base: Entry, ours: Entry, theirs: Entry) -> tuple[int, bytes] | None:
        entries = (base, ours, theirs)
        if not all(stat.S_ISREG(entry.mode) for entry in entries):
            return None
        texts = [text for entry in entries if (text := self._text(entry)) is not None]
        if len(texts) < len(entries):
            return None
        found = text_of(merged(texts[0], texts[1], texts[2], self._effort))
        mode = theirs.mode if ours.mode == base.mode else ours.mode
        return None if found is None else (mode, found.encode())

    def _text(self, entry: Entry) -> str | None:
        content = self._objects.blob(entry.id, MAX_BYTES)
        if content is None or b"\0" in content or content.startswith(LFS_POINTER):
            return None
        try:
            return content.decode()
        except UnicodeDecodeError:
            return None
