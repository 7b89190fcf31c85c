"""MkDocs: ``docs_dir``, ``nav``, ``exclude_docs``, ``use_directory_urls``, ``INHERIT``
(mkdocs.org/user-guide/configuration), with the languages of mkdocs-static-i18n, or of a folder with a configuration for
each language.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname, normpath
from urllib.parse import urlsplit

from msgspec import structs

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_strings
from service.markup.pages import is_markdown
from service.markup.slugs import SlugStyle
from service.retrieval.site.generators.mkdocs.navigation import navigation
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import (
    LANGUAGE,
    LANGUAGES,
    Layout,
    Mount,
    NavEntry,
    Read,
    join_path,
    read_text,
    within,
)
from service.retrieval.site.link_rules import Fallback, LinkRules

MAX_INHERITED = 10
"""Configurations that one is based on, one on the other."""
MAX_LANGUAGES, MAX_REDIRECTS = 100, 5_000
Settings = Mapping[str, object]


def mkdocs(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    config = _default_config(config, files, read)
    settings = _settings(config, files, read)
    if settings is None:
        return None
    docs = _docs_folder(config, settings)
    text = read_text(read, config) + "\n".join(read_text(read, name) for name in _bases(config, files, read))
    snippets = _named(settings.get("markdown_extensions")).get("pymdownx.snippets", {})
    mounts, default, suffixes = _languages(config, settings, docs, files, read)
    excluded = [settings.get("exclude_docs"), settings.get("draft_docs")]
    ignored = ignore_rules(
        ("/templates/", *(line for one in excluded if isinstance(one, str) for line in one.splitlines())), file=config
    )
    layout = Layout(
        "mkdocs", docs_folder, docs, Dialect(slugs=_slugs(text)), ("",), mounts=mounts, ignored=ignored,
        default_language=default, language_suffixes=suffixes, html_suffix=settings.get("use_directory_urls") == "false",
        include_folders=tuple(_include_folders(dirname(config), docs, snippets)),
        appended=tuple(one for one in _list(snippets.get("auto_append")) if isinstance(one, str)),
        links=_link_rules(settings, mounts, default), redirects=_redirects(settings),
    )  # fmt: skip
    return structs.replace(layout, entries=_entries(layout, settings, files, read))


_PLAIN_PLUGINS = frozenset(
    """
    search social minify git-revision-date git-revision-date-localized git-authors git-committers i18n redirects macros
    awesome-pages awesome-nav literate-nav section-index glightbox offline privacy typeset meta exclude exclude-search
    table-reader panzoom mermaid2 autorefs mkdocstrings include-markdown rss optimize info tooltips htmlproofer
    mkdocs-jupyter jupyter markdownextradata link-marker external-links ezlinks autolinks minify_html charts
    swagger-ui-tag
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
"""Plugins that make no pages of their own."""


def _link_rules(settings: Settings, mounts: Sequence[Mount], default: str) -> LinkRules:
    """Return how links are read: MkDocs changes those to files and leaves all others to the browser, so that they count
    from the address of the page (mkdocs/structure/pages.py, ``_RelativePathTreeprocessor``). Those from the root of the
    host are right or wrong by where the site is served.
    """
    plugins = _named(settings.get("plugins"))
    is_known = plugins.keys() <= {*_PLAIN_PLUGINS, "blog", "tags"} and not settings.get("hooks")
    blog = plugins.get("blog")
    folder = str(blog.get("blog_dir") or "blog").strip("/") if blog is not None else ""
    made = [(f"/{folder}", "the blog plugin makes its addresses")] if blog is not None else []
    address = str(settings.get("site_url") or "")
    original = next((mount for mount in mounts if mount[3] == default), None)
    return LinkRules(
        relative="address", slash=settings.get("use_directory_urls") != "false",
        has_all_addresses=is_known, has_all_files=is_known, reads_files=True,
        knows_root=bool(address), base=urlsplit(address).path.rstrip("/") if address else "", made=tuple(made),
        fallbacks=tuple(
            Fallback(mount[0], mount[1], original[0], original[1]) for mount in mounts if mount is not original
        ) if original is not None else (),
    )  # fmt: skip


def _redirects(settings: Settings) -> dict[str, str]:
    """Return what the plugin for redirects says, by the addresses of the files that it names."""
    rules = _named(settings.get("plugins")).get("redirects", {}).get("redirect_maps")
    found = {}
    for old, new in list(rules.items())[:MAX_REDIRECTS] if isinstance(rules, dict) else ():
        if isinstance(new, str) and "://" not in new:
            found[_address(str(old))] = _address(new.partition("#")[0])
    return found


def _address(file: str) -> str:
    stem = re.sub(r"(?:^|/)(?:index|README)$", "", re.sub(r"\.(?:md|markdown|html)$", "", file.strip("/")))
    return f"/{stem}"


def _default_config(config: str, files: frozenset[str], read: Read) -> str:
    """Return the configuration of the language that readers see first, where each language has a folder of its own."""
    folder = dirname(config)
    if not _is_language(basename(folder)):
        return config
    others = [f"{base}" for base in _bases(config, files, read) if _is_language(basename(dirname(base)))]
    candidates = (*others[-1:], *(join_path(dirname(folder), "en", f"mkdocs.{suffix}") for suffix in ("yml", "yaml")))
    return next((name for name in candidates if name in files), config)


def _is_language(name: str) -> bool:
    return LANGUAGE.fullmatch(name) is not None and name[:2].lower() in LANGUAGES


def _bases(config: str, files: frozenset[str], read: Read) -> list[str]:
    """Return the configurations that one is based on, the nearest first."""
    found: list[str] = []
    while len(found) < MAX_INHERITED:
        match = _INHERIT.search(read_text(read, config))
        config = normpath(join_path(dirname(config), match[1].rstrip())) if match is not None else ""
        if config not in files or config in found:
            break
        found.append(config)
    return found


_INHERIT = re.compile(r"^INHERIT[ \t]*+:[ \t]*+[\"']?([^\"'\n#]{1,300}+)[\"']?[ \t]*+(?:#[^\n]*)?$", re.MULTILINE)


def _settings(config: str, files: frozenset[str], read: Read) -> Settings | None:
    """Return what a configuration says with those that it is based on; None when it is none of MkDocs'."""
    merged: Settings = {}
    for name in reversed((config, *_bases(config, files, read))):
        try:
            settings = load_strings(read_text(read, name))
        except ValueError:
            settings = {}
        if not isinstance(settings, dict):
            return None
        merged = _merged(merged, settings)
    return merged


def _merged(base: Settings, own: Settings) -> Settings:
    """Mappings are joined, at every depth; anything else replaces the base's."""
    found = dict(base)
    for key, value in own.items():
        before = found.get(key)
        found[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return found


def _docs_folder(config: str, settings: Settings) -> str:
    folder = normpath(join_path(dirname(config), str(settings.get("docs_dir") or "docs")))
    return "" if folder == "." else folder


def _languages(
    config: str, settings: Settings, docs: str, files: frozenset[str], read: Read
) -> tuple[tuple[Mount, ...], str, tuple[str, ...]]:
    """Return the folder of each language with its address, the default language, and the languages that follow the
    names of files.
    """
    plugin = _named(settings.get("plugins")).get("i18n")
    if plugin is not None:
        listed = [
            one for one in _list(plugin.get("languages")) if isinstance(one, dict) and one.get("build") != "false"
        ]
        names = [str(one.get("locale")) for one in listed][:MAX_LANGUAGES]
        default = next((str(one["locale"]) for one in listed if one.get("default") == "true"), "en")
        if plugin.get("docs_structure", "suffix") == "suffix":
            return (), default, tuple(names)
        mounts = [(join_path(docs, name), "" if name == default else f"/{name}", "", name) for name in names]
        return tuple(mounts), default, ()
    folder = dirname(config)
    own = basename(folder)
    theme = settings.get("theme")
    said = str(theme.get("language") or "") if isinstance(theme, dict) else ""
    if not _is_language(own):
        return (), said, ()
    mounts = [(docs, "", "", own)]
    for name, at, settings_there in _beside(folder, docs, files, read):
        prefix = _prefix(name, settings, settings_there)
        mounts.append((at, prefix, "", name))
    return tuple(mounts) if len(mounts) > 1 else (), own, ()


def _beside(folder: str, docs: str, files: frozenset[str], read: Read) -> Iterator[tuple[str, str, Settings]]:
    """Yield the other languages: name, folder of pages, and configuration where there is one."""
    above = dirname(folder)
    names = {name[len(above) :].lstrip("/").partition("/")[0] for name in files if within(name, above)}
    for name in sorted(one for one in names if _is_language(one) and one != basename(folder))[:MAX_LANGUAGES]:
        config = join_path(above, name, "mkdocs.yml")
        settings = _settings(config, files, read) if config in files else None
        inside = docs[len(folder) :].lstrip("/") if within(docs, folder) else ""
        at = _docs_folder(config, settings) if settings is not None else join_path(above, name, inside)
        if at != docs and any(within(one, at) and is_markdown(one) for one in files):
            yield name, at, settings or {}


def _prefix(language: str, default: Settings, settings: Settings) -> str:
    """Return where a language's pages are: as its own ``site_url`` says, else the site's list of languages."""
    here, there = (urlsplit(str(one.get("site_url") or "")).path.rstrip("/") for one in (default, settings))
    if there.startswith(f"{here}/"):
        return there[len(here) :]
    extra = default.get("extra")
    for one in _list(extra.get("alternate")) if isinstance(extra, dict) else ():
        link = urlsplit(str(one.get("link") or "")).path.rstrip("/") if isinstance(one, dict) else ""
        if link.rpartition("/")[2] == language:
            return "/" + link.removeprefix(here).strip("/")
    return f"/{language}"


def _entries(layout: Layout, settings: Settings, files: frozenset[str], read: Read) -> dict[str, NavEntry]:
    """Return the navigation of every language, the default one's first."""
    folders = [mount for mount in layout.mounts if mount[3] == layout.default_language]
    folders += [mount for mount in layout.mounts if mount[3] != layout.default_language]
    found: dict[str, NavEntry] = {}
    pages = [name for name in files if layout.is_page(name)]
    not_in_nav = settings.get("not_in_nav")
    hidden = ignore_rules(not_in_nav.splitlines() if isinstance(not_in_nav, str) else ())
    plugins = _named(settings.get("plugins"))
    for folder, _, _, language in folders or [(layout.root, "", "", "")]:
        own = [name for name in pages if within(name, folder)]
        if hidden.lines and not settings.get("nav"):
            own = [name for name in own if not hidden.ignores(name[len(folder) :].lstrip("/"))]
        is_default = language == layout.default_language or not language
        for path, title in navigation(folder, own, plugins, settings.get("nav"), read):
            if path not in found:
                found[path] = NavEntry(len(found), title, "", language, is_default)
    return found


def _named(items: object) -> dict[str, Settings]:
    """Return plugins or extensions by name, without the name of their theme, with what is set for each."""
    found: dict[str, Settings] = {}
    listed: Sequence[object] = list(items.items()) if isinstance(items, dict) else _list(items)
    for item in listed:
        pairs = [item] if isinstance(item, tuple) else item.items() if isinstance(item, dict) else [(item, None)]
        for name, value in pairs:
            found[str(name).rpartition("/")[2]] = value if isinstance(value, dict) else {}
    return found


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _include_folders(root: str, docs: str, snippets: Settings) -> Iterator[str]:
    """Yield where files that pages show are looked for: the folders that are set, those of MkDocs."""
    given = snippets.get("base_path")
    paths = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]
    set_here = [normpath(join_path(root, one)) for one in paths[:10]]
    yield from dict.fromkeys("" if one == "." else one for one in (*set_here, root, docs))


def _slugs(text: str) -> SlugStyle:
    """Return the style of anchors that the ``toc`` extension is set to."""
    if re.search(r"slugify:\s*!!python/\S{0,200}pymdownx\.slugs", text):
        return "pymdownx"
    return "python-unicode" if re.search(r"slugify:\s*!!python/\S{0,200}slugify_unicode", text) else "python"
