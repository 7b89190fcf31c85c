"""Fumadocs: pages below the folder that ``source.config.ts`` names, at the address that the loader has
(fumadocs.dev/docs/headless/source-api). Folders in parentheses are not in addresses; a language follows a page's name.
"""

import re
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
_GENERATED = re.compile(r"openapi|asyncapi|typedoc|obsidian|storybook", re.IGNORECASE)
MAX_LANGUAGES = 200


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
    return Layout(
        "fumadocs", docs_folder, folder, Dialect(mdx=True), (base,), mounts=((folder, base, "", ""),),
        default_language=default[1] if default is not None else "", language_suffixes=tuple(languages),
        moved={name: _without_groups(name, folder) for name in pages if "(" in name[len(folder) :]},
        links=LinkRules(
            reads_files=True, knows_root=True, has_all_addresses=written is not None and not is_generated,
            below=(base, *(f"/{code}{base}" for code in languages)) if base else (),
            served=(join_path(root, "public"),),
        ),
    )  # fmt: skip


def _language(path: str, files: frozenset[str]) -> str:
    """Return the language that follows a page's name; empty where the page without it is not there."""
    stem, _, suffix = path.rpartition(".")
    name, _, code = stem.rpartition(".")
    is_copy = any(f"{name}.{one}" in files for one in ("mdx", "md", suffix))
    return code if name and is_copy and LANGUAGE.fullmatch(code) else ""


def _without_groups(path: str, folder: str) -> str:
    *folders, name = path[len(folder) :].strip("/").split("/")
    return join_path(folder, *(part for part in folders if not _GROUP.fullmatch(part)), name)
