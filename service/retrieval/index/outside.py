"""Files outside the documentation folder that its pages show, such as the code of examples.

They are read from the commit one by one, for pages alone: they are no pages themselves, and configure nothing. An index
keeps which were asked for and what git calls their content, so that a renewal notices when one changes or appears.
"""

import re
from collections.abc import Iterator, Mapping

from service.retrieval.index.archive import blob_of
from service.retrieval.readers.includes.files import MAX_SNIPPET_BYTES
from service.retrieval.site.layout import DEPENDENCY_FOLDERS, within
from service.retrieval.site.pages import ReadUpTo

MAX_FILES, MAX_BYTES, MAX_ASKED = 2_000, 20 << 20, 5_000
"""Limits for the files of a site, for their bytes together, and for the names that are looked up."""
MAX_NAME = 500
_SECRET = re.compile(r"\.(?:pem|key|p12|pfx|jks|keystore)$|(?:^|/)id_(?:rsa|dsa|ecdsa|ed25519)$", re.IGNORECASE)


class Outside:
    """``read``: of any file of the commit; None where there is none to read with."""

    def __init__(self, docs_folder: str, read: ReadUpTo | None) -> None:
        self._docs_folder, self._read = docs_folder, read
        self.asked: dict[str, str] = {}
        """By path, what git calls a file's content; empty for a file that is not shown."""
        self._files = self._bytes = 0

    def remember(self, asked: Mapping[str, str]) -> None:
        """Go on from the files that an earlier index asked for."""
        self.asked = dict(asked)
        self._files = sum(blob != "" for blob in asked.values())

    def read(self, path: str, limit: int) -> bytes | None:
        """Return at most ``limit`` bytes of a file that pages may show."""
        if not self._may_be_shown(path) or self.asked.get(path) == "":
            return None
        is_known = path in self.asked
        if not is_known and len(self.asked) >= MAX_ASKED:
            return None
        data = self._text(path)
        if not is_known:
            self._keep(path, data)
        return data[:limit] if data is not None and self.asked[path] else None

    def changed(self) -> set[str]:
        """Forget and return the files that are not as they were kept."""
        changed = set(self._differing())
        for path in changed:
            self._files -= self.asked.pop(path) != ""
        return changed

    def _differing(self) -> Iterator[str]:
        is_full = self._is_full
        for path, blob in self.asked.items():
            if blob or not is_full:
                data = self._text(path)
                if blob != (blob_of(data) if data is not None else ""):
                    yield path
                elif data is not None:
                    self._bytes += len(data)

    def _keep(self, path: str, data: bytes | None) -> None:
        is_shown = data is not None and not self._is_full
        self.asked[path] = blob_of(data) if data is not None and is_shown else ""
        self._files += is_shown
        self._bytes += len(data) if data is not None and is_shown else 0

    @property
    def _is_full(self) -> bool:
        return self._files >= MAX_FILES or self._bytes >= MAX_BYTES

    def _text(self, path: str) -> bytes | None:
        """Return a file that is text and not too large."""
        data = self._read(path, MAX_SNIPPET_BYTES + 1) if self._read is not None else None
        return data if data is not None and len(data) <= MAX_SNIPPET_BYTES and b"\0" not in data else None

    def _may_be_shown(self, path: str) -> bool:
        if self._read is None or not self._docs_folder or within(path, self._docs_folder) or len(path) > MAX_NAME:
            return False
        parts = path.split("/")
        is_hidden = any(not part or part.startswith(".") or part in DEPENDENCY_FOLDERS for part in parts)
        return not is_hidden and "\0" not in path and "\\" not in path and _SECRET.search(path) is None
