"""Small sites, and indexes of them."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from service.retrieval.index.build import IndexReport, build_index
from service.retrieval.search.query import SiteIndexes

DOMAIN = "docs.example.com"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

Files = Mapping[str, str | bytes]


def archive_of(files: Files, target: Path) -> Path:
    with tarfile.open(target, "w") as archive:
        for path, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target


def build(files: Files, target: Path, *, docs_folder: str = "", commit: str = COMMIT) -> IndexReport:
    target.parent.mkdir(parents=True, exist_ok=True)
    archive = archive_of(files, target.with_suffix(".tar"))
    report = build_index(archive, target, docs_folder=docs_folder, commit=commit, progress=lambda _done, _all: None)
    archive.unlink()
    return report


class Indexed:
    """One domain's index, filled anew with ``fill``."""

    def __init__(self, index: SiteIndexes) -> None:
        self.index = index
        self._filled = 0

    async def fill(self, files: Files, *, docs_folder: str = "", commit: str = COMMIT) -> IndexReport:
        self._filled += 1
        name = f"index-{self._filled}"
        report = build(files, self.index.path_of(DOMAIN, name), docs_folder=docs_folder, commit=commit)
        await self.index.use(DOMAIN, name)
        return report

    async def paths(self, query: str, **options: object) -> list[str]:
        """Of the pages that a query finds, best first."""
        result = await self.index.search(DOMAIN, query, **options)
        return list(dict.fromkeys(section.path for section in result.sections))

    async def text(self, path: str) -> str:
        page = await self.index.read_page(DOMAIN, path)
        assert page is not None, f"no page {path}"
        return page.content
