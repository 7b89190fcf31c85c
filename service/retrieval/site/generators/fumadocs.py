"""Fumadocs: pages below the folder that ``source.config.ts`` names, at the address that the loader has
(fumadocs.dev/docs/headless/source-api). Folders in parentheses are not in addresses; a language follows a page's name.
"""

import re
from collections.abc import Iterator
from posixpath import dirname, normpath

from service.markup.dialects.dialect import Dialect
from service.markup.pages import MARKDOWN_SUFFIXES
from service.retrieval.site.layout import LANGUAGE, MAX_SCRIPT, Layout, Read, clean_url, join_path, read_text, within
from service.retrieval.site.link_rules import LinkRules

_FOLDER = re.compile(r"\bdir\s*:\s*['\"]([^'\"\n]{1,200})['\"]")
_BASE = re.compile(r"\bbaseUrl\s*:\s*['\"]([^'\"\n]{0,200})['\"]")
_DEFAULT = re.compile(r"\bdefaultLanguage\s*:\s*['\"]([\w-]{1,50})['\"]")
_GROUP = re.compile(r"\([^()]*\)")
_LOADERS = tuple(
    f"{folder}lib/source.{suffix}" for folder in ("", "src/", "app/") for suffix in ("ts", "tsx", "js", "mjs")
)
_LANGUAGES = tuple(f"{folder}lib/i18n.{suffix}" for folder in ("", "src/", "app/") for suffix in ("ts", "js", "mjs"))
_REDIRECT = re.compile(
    r"\bsource\s*:\s*['\"`]([^'\"`\n]{1,500})['\"`]\s*,\s*destination\s*:\s*['\"`]([^'\"`\n]{1,500})['\"`]"
)
_ROUTE = re.compile(r"(?:^|/)(?:page\.(?:[jt]sx?|mdx?)|route\.[jt]s)$")
_GENERATED = re.compile(r"openapi|asyncapi|typedoc|obsidian|storybook", re.IGNORECASE)
MAX_LANGUAGES = 200
MAX_REDIRECTS = 2_000


def fumadocs(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    named = _FOLDER.search(read_text(read, config)[:MAX_SCRIPT])
    folder = normpath(join_path(root, named[1] if named is not None else "content/docs"))
    pages = [name for name in files if within(name, folder) and name.lower().endswith(MARKDOWN_SUFFIXES)]
    if folder.startswith("..") or not pages:
        return None
    loader = next((text for name in _LOADERS if (text := read_text(read, join_path(root, name)))), "")
    written = _BASE.search(loader[:MAX_SCRIPT])
    base = clean_url(written[1] if written is not None else "/docs").rstrip("/")
    languages = sorted({code for name in pages if (code := _language(name, files))})[:MAX_LANGUAGES]
    settings = next((text for name in _LANGUAGES if (text := read_text(read, join_path(root, name)))), "")
    default = _DEFAULT.search(settings[:MAX_SCRIPT])
    is_generated = _GENERATED.search(loader + read_text(read, join_path(root, "package.json"))) is not None
    redirects = _redirects(root, read)
    routes = set(_routes(root, files))
    return Layout(
        "fumadocs", docs_folder, folder, Dialect(mdx=True), (base,), redirects=redirects,
        mounts=((folder, base, "", ""),),
        default_language=default[1] if default is not None else "", language_suffixes=tuple(languages),
        moved={name: _without_groups(name, folder) for name in pages if "(" in name[len(folder) :]},
        links=LinkRules(
            reads_files=True, knows_root=True, has_all_addresses=written is not None and not is_generated,
            below=(base, *(f"/{code}{base}" for code in languages)) if base else (),
            served=(join_path(root, "public"),), programs=frozenset(routes | {each.rstrip("/") for each in redirects}),
            patterns=tuple((source, goal) for source, goal in redirects.items() if ":" in source),
        ),
    )  # fmt: skip


def _redirects(root: str, read: Read) -> dict[str, str]:
    """Return the redirects that Next has (nextjs.org/docs/app/api-reference/config/next-config-js/redirects)."""
    texts = (read_text(read, join_path(root, f"next.config.{suffix}")) for suffix in ("js", "mjs", "ts", "mts"))
    found = _REDIRECT.findall(next(filter(None, texts), "")[:MAX_SCRIPT])[:MAX_REDIRECTS]
    return {source: goal for source, goal in found if source.startswith("/")}


def _routes(root: str, files: frozenset[str]) -> Iterator[str]:
    """Yield the addresses of pages that are programs, but those whose folders are parameters."""
    for app in (join_path(root, "app"), join_path(root, "src/app")):
        for name in files:
            if within(name, app) and _ROUTE.search(name) and "[" not in name:
                folders = dirname(name[len(app) :]).split("/")
                yield "/" + join_path(*(part for part in folders if not _GROUP.fullmatch(part)))


def _language(path: str, files: frozenset[str]) -> str:
    """Return the language that follows a page's name; empty where the page without it is not there."""
    stem, _, suffix = path.rpartition(".")
    name, _, code = stem.rpartition(".")
    is_copy = any(f"{name}.{one}" in files for one in ("mdx", "md", suffix))
    return code if name and is_copy and LANGUAGE.fullmatch(code) else ""


def _without_groups(path: str, folder: str) -> str:
    *folders, name = path[len(folder) :].strip("/").split("/")
    return join_path(folder, *(part for part in folders if not _GROUP.fullmatch(part)), name)
