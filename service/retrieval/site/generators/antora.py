"""Antora: ``antora.yml`` and the pages of its modules (docs.antora.org). Its own pages are AsciiDoc, which is not read:
those are listed as left out. Markdown, which an extension reads, is placed by the same rules.
"""

from collections.abc import Iterator, Mapping
from posixpath import dirname

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_strings
from service.retrieval.site.layout import Layout, Mount, Read, join_path, read_text, within
from service.retrieval.site.settings import text_setting

MAX_MODULES = 1_000


def antora(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    try:
        found = load_strings(read_text(read, config))
    except ValueError:
        found = {}
    settings: Mapping[str, object] = found if isinstance(found, dict) else {}
    name = text_setting(settings, "name").strip()
    if not name:
        return None
    version = text_setting(settings, "version").strip().strip("~")
    component = "" if name == "ROOT" else f"/{name}"
    base = f"{component}/{version}" if version and version != "null" else component
    mounts = tuple(_modules(join_path(root, "modules"), files, base, version))
    return Layout("antora", docs_folder, join_path(root, "modules", "ROOT", "pages"), Dialect(), (base,),
                  mounts=mounts, html_suffix=True)  # fmt: skip


def _modules(folder: str, files: frozenset[str], base: str, version: str) -> Iterator[Mount]:
    names = {name[len(folder) + 1 :].partition("/")[0] for name in files if within(name, folder)}
    for module in sorted(names)[:MAX_MODULES]:
        yield join_path(folder, module, "pages"), base if module == "ROOT" else f"{base}/{module}", version, ""
