"""The files of a documentation repository, as an index is made from them."""

import hashlib
import tarfile
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from service.ports.docs_source import LEFT_OUT, MAY_HOLD_PAGES, REASON, LeftOut
from service.retrieval.site.layout import MAX_CONFIG_BYTES


class Files(Protocol):
    """By path in the repository."""

    @property
    def names(self) -> Collection[str]: ...

    def read(self, name: str, limit: int = MAX_CONFIG_BYTES) -> bytes | None:
        """Return up to ``limit`` bytes; None when the file does not exist."""


class Archive:
    """Plain files of an uncompressed tar archive. Raises OSError and tarfile.TarError."""

    def __init__(self, archive: Path) -> None:
        self._tar = tarfile.open(archive, "r:")  # noqa: SIM115  (closed by __exit__)
        self._members: dict[str, tarfile.TarInfo] = {}
        self.left_out: list[LeftOut] = []
        """Files and folders that its writer left out, and why."""
        for member in self._tar:
            if member.type == LEFT_OUT:
                headers = member.pax_headers
                self.left_out.append(LeftOut(member.name, headers.get(REASON, ""), MAY_HOLD_PAGES in headers))
            elif member.isfile():
                self._members[member.name.removeprefix("./").strip("/")] = member

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    @property
    def names(self) -> Collection[str]:
        return self._members.keys()

    def read(self, name: str, limit: int = MAX_CONFIG_BYTES) -> bytes | None:
        member = self._members.get(name)
        content = self._tar.extractfile(member) if member is not None else None
        if content is None:
            return None
        with content:
            return content.read(limit)

    def blobs(self) -> Mapping[str, str]:
        """Return git's id of each file's content."""
        return {name: blob_of(self.read(name, member.size) or b"") for name, member in self._members.items()}


class StoredFiles:
    """The files of a commit that is read one by one: an index knows which there are."""

    def __init__(
        self,
        names: Callable[[], Collection[str]],
        is_file: Callable[[str], bool],
        read: Callable[[str, int], bytes | None],
    ) -> None:
        self._names, self._is_file, self._read = names, is_file, read

    @cached_property
    def names(self) -> Collection[str]:
        return self._names()

    def read(self, name: str, limit: int = MAX_CONFIG_BYTES) -> bytes | None:
        return self._read(name, limit) if self._is_file(name) else None


def blob_of(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
