"""The corpora as the assistant reads them: each indexed as the service does it, and kept between runs if wanted."""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.bench_search import as_tar
from service.retrieval.index.atomic_folder import is_whole
from service.retrieval.index.build import build_index
from service.retrieval.index.report import IndexReport
from service.retrieval.search.query import SiteIndexes
from service.runtime.processes import run_in_child

ROOT = Path(__file__).parents[2]
SHAPES_INDEX = ("service/markup", "service/retrieval/index", "service/retrieval/readers", "service/retrieval/site")
"""Folders whose code decides what is in an index: when it changes, kept indexes are built again."""


async def indexes_of(corpora: Path, names: Sequence[str], folder: Path) -> SiteIndexes:
    """Return the indexes of the corpora, building those that the folder lacks."""
    indexes = SiteIndexes(folder)
    made_by = f"bench-{_code_digest()}"
    for name in names:
        target = indexes.path_of(name, made_by)
        if not is_whole(target):
            print(f"indexing {name} …", file=sys.stderr, flush=True)
            archive = as_tar(corpora, name, folder)
            try:
                await run_in_child(_build, archive, target, timeout_seconds=3600, on_progress=lambda _: None)
            finally:
                archive.unlink(missing_ok=True)
        await indexes.use(name, made_by)
    return indexes


def _build(archive: Path, target: Path, report: Any) -> IndexReport:
    return build_index(archive, target, docs_folder="", commit="0" * 40, progress=lambda done, _all: report(done))


def _code_digest() -> str:
    files = sorted(file for folder in SHAPES_INDEX for file in (ROOT / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
