"""MDN: ``files/<locale>``, ``slug`` in full."""

import re

from service.markup.dialects.dialect import Dialect
from service.retrieval.site.layout import Layout, join_path, within

_MDN_FOLDER = re.compile(r"(?:^|/)files/([a-z]{2}(?:-[a-z]{2})?)/")


def mdn(files: frozenset[str], docs_folder: str) -> Layout | None:
    pages = [name for name in files if name.endswith("index.md") and within(name, docs_folder)]
    found = [match for name in pages if (match := _MDN_FOLDER.search(name))]
    if len(found) < 2:
        return None
    root = min(found[0].string[: match.start()] for match in found[:1])
    languages = sorted({match[1] for match in found})
    mounts = []
    for language in languages:
        code, _, region = language.partition("-")
        shown = f"{code}-{region.upper()}" if region else code
        mounts.append((join_path(root, "files", language), f"/{shown}/docs", "", shown))
    return Layout("mdn", docs_folder, join_path(root, "files"), Dialect(slugs="mdn"), ("",), mounts=tuple(mounts))
