"""GitBook: ``.gitbook.yaml`` of gitbook.com, or ``book.json`` of the older program, which goes on as HonKit. A
``SUMMARY.md`` names the pages, ``LANGS.md`` a folder for each language, ``README.md`` is the page of its folder.
"""

import json
from collections.abc import Mapping
from posixpath import dirname, normpath

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_strings
from service.retrieval.site.generators.books.summary import Summary, links_in
from service.retrieval.site.layout import LANGUAGE, Layout, Mount, Read, join_path, read_text
from service.retrieval.site.link_rules import LinkRules
from service.retrieval.site.settings import text_setting

MAX_LANGUAGES, MAX_REDIRECTS = 200, 5_000
_LINKS = LinkRules(relative="file", reads_files=True)
"""Links count from the file; where the site begins on its host is not in the repository."""


def gitbook(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    top = dirname(config)
    is_older = config.endswith(".json")
    settings = _settings(read_text(read, config), is_json=is_older)
    root = normpath(join_path(top, normpath(text_setting(settings, "root") or "."))).removeprefix(".")
    if root.startswith("."):
        return None
    names = settings.get("structure")
    structure = names if isinstance(names, dict) else {}
    list_name = text_setting(structure, "summary") or "SUMMARY.md"
    named = Summary(files, read)
    languages = _languages(root, files, read)
    for folder, language in (languages or {root: ""}).items():
        named.add(join_path(folder, list_name), language)
        named.add_home(join_path(folder, text_setting(structure, "readme") or "README.md"), language)
    is_listed = any(join_path(one, list_name) in files for one in languages or [root])
    if not named.entries or (is_older and not is_listed):
        return None
    return Layout(
        "gitbook", docs_folder, root, Dialect(slugs="gitbook"), ("",), named.entries, redirects=_redirects(settings),
        mounts=tuple(_mounts(languages, root)), html_suffix=is_older, missing_entries=tuple(named.missing),
        hidden_pages=named.hidden(root) if is_listed else {}, links=_LINKS,
    )  # fmt: skip


def gitbook_by_summary(files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    """Return the layout of a folder that has GitBook's list of pages and no configuration."""
    list_name = join_path(docs_folder, "SUMMARY.md")
    if list_name not in files or join_path(docs_folder, "README.md") not in files:
        return None
    named = Summary(files, read)
    named.add(list_name)
    if len(named.entries) < 2 or len(named.missing) > len(named.entries):
        return None
    named.add_home(join_path(docs_folder, "README.md"), "")
    return Layout(
        "gitbook", docs_folder, docs_folder, Dialect(slugs="gitbook"), ("",), named.entries,
        missing_entries=tuple(named.missing), hidden_pages=named.hidden(docs_folder), links=_LINKS,
    )  # fmt: skip


def _settings(text: str, *, is_json: bool) -> Mapping[str, object]:
    try:
        found = json.loads(text) if is_json else load_strings(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _languages(root: str, files: frozenset[str], read: Read) -> dict[str, str]:
    """Return the folder of each language, the default first, with its code."""
    path = join_path(root, "LANGS.md")
    folders = [target.strip("/") for _, target in links_in(read_text(read, path))] if path in files else []
    return {
        join_path(root, folder): folder if LANGUAGE.fullmatch(folder) else ""
        for folder in folders[:MAX_LANGUAGES]
        if any(name.startswith(join_path(root, folder) + "/") for name in files)
    }


def _mounts(languages: Mapping[str, str], root: str) -> list[Mount]:
    return [
        (folder, f"/{folder[len(root) :].strip('/')}", "", language) for folder, language in languages.items()
    ]  # fmt: skip


def _redirects(settings: Mapping[str, object]) -> dict[str, str]:
    """Return old addresses with the new ones, of which ``.gitbook.yaml`` names the files."""
    found = settings.get("redirects")
    redirects: dict[str, str] = {}
    for old, new in list(found.items())[:MAX_REDIRECTS] if isinstance(found, dict) else ():
        if isinstance(old, str) and isinstance(new, str):
            target = new.strip("/").removesuffix(".md").removesuffix("README").removesuffix(".html").strip("/")
            redirects[f"/{old.strip('/')}"] = f"/{target}"
    return redirects
