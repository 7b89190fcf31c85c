"""Docusaurus's configuration, JavaScript that is searched, not run. Pages are in ``docs`` below the site's folder,
under ``/docs`` unless ``routeBasePath`` says else; ``slug``, ``id``, numbers before names, ``_`` before what is no
page, versioned_docs and i18n (docusaurus.io/docs/create-doc).
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from posixpath import dirname, normpath

from service.markup.dialects import Dialect
from service.retrieval.site.layout import (
    MAX_SCRIPT,
    NUMBER,
    Layout,
    Mount,
    NavEntry,
    Read,
    join_path,
    read_text,
    within,
)

MAX_ROUTES, MAX_LANGUAGES = 50, 200
"""Limits for one configuration."""
_ROUTE = re.compile(r"routeBasePath\s*:\s*['\"]([^'\"\n]{0,200})['\"]")
_DOCS_PATH = re.compile(r"(?<![\w.])path\s*:\s*['\"]([^'\"\n]{1,200})['\"]")
_QUOTED = re.compile(r"['\"]([\w./-]{1,300})['\"]")
_DOCUSAURUS_CONFIG = re.compile(r"docusaurus\.config\.(?:[cm]?js|ts)$")
_SIDEBARS = re.compile(r"sidebars\.(?:[cm]?js|ts|json)$")


def docusaurus(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    beside = [name for name in sorted(files) if dirname(name) == root]
    text = next((read_text(read, name) for name in beside if _DOCUSAURUS_CONFIG.search(name)), "")
    text = re.sub(r"^[ \t]*//[^\n]*$", "", text, flags=re.MULTILINE)[:MAX_SCRIPT]
    routes = list(_routes(text, root, files))
    main = next((folder for folder, _ in routes if folder.endswith("docs")), join_path(root, "docs"))
    given = dict(routes).get(main)
    bases: tuple[str, ...] = (given,) if given is not None else ("/docs",) if text else ("/docs", "")
    versions = _json_strings(read_text(read, join_path(root, "versions.json")))
    mounts = [
        *_version_mounts(root, bases[0], versions, files),
        *((folder, base, "", "") for folder, base in routes if folder != main),
        (join_path(root, "src/pages"), "", "", ""),
    ]
    sidebars = (re.sub(r"//[^\n]*", "", read_text(read, name)) for name in beside if _SIDEBARS.search(name))
    ids = [page_id for sidebar in sidebars for page_id in _QUOTED.findall(sidebar)]
    keeps = "numberPrefixParser: false" in text or any(NUMBER.match(page_id.rpartition("/")[2]) for page_id in ids)
    if versions and text and "includeCurrentVersion: false" not in text:
        bases = (f"{bases[0]}/next",)
    return Layout(
        "docusaurus", docs_folder, main, Dialect(mdx=True), bases, _entries(ids, main, files), mounts=tuple(mounts),
        keep_numbers=keeps,
    )  # fmt: skip


def _routes(text: str, root: str, files: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield folders of pages with the URL prefix of each, as the configuration has them beside each other."""
    for match in islice(_ROUTE.finditer(text), MAX_ROUTES):
        distances = ((abs(path.start() - match.start()), path[1]) for path in _DOCS_PATH.finditer(text))
        _, folder = min((near for near in distances if near[0] < 400), default=(0, "docs"))
        if folder != "blog" and any(within(name, join_path(root, folder)) for name in files):
            yield join_path(root, normpath(folder)), f"/{match[1].strip('/')}".rstrip("/")


def _version_mounts(root: str, lead: str, versions: list[str], files: frozenset[str]) -> Iterator[Mount]:
    """Yield the folders of versions, and of each language its folders of versions; the first version is the current."""
    prefixes = [(version, "" if version == versions[0] else f"/{version}") for version in versions]
    for version, prefix in prefixes:
        yield join_path(root, f"versioned_docs/version-{version}"), f"{lead}{prefix}", version, ""
    translations = join_path(root, "i18n")
    languages = {name[len(translations) + 1 :].split("/", 1)[0] for name in files if within(name, translations)}
    for language in sorted(languages)[:MAX_LANGUAGES]:
        at = join_path(translations, language, "docusaurus-plugin-content-docs")
        yield f"{at}/current", f"/{language}{lead}", "", language
        for version, prefix in prefixes:
            yield f"{at}/version-{version}", f"/{language}{lead}{prefix}", version, language


def _entries(ids: Iterable[str], main: str, files: frozenset[str]) -> dict[str, NavEntry]:
    entries: dict[str, NavEntry] = {}
    for page_id in ids:
        path = next((p for s in (".md", ".mdx") if (p := join_path(main, page_id) + s) in files), None)
        if path is not None and path not in entries:
            entries[path] = NavEntry(len(entries))
    return entries


def _json_strings(text: str) -> list[str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [value for value in values if isinstance(value, str)][:200] if isinstance(values, list) else []
