"""Docusaurus: its configuration and sidebars, which are read and never run (docusaurus.io/docs/api/docusaurus-config).

Each instance of its plugin for documents has a folder, of which versions and translations lie beside each other; pages
in ``src/pages`` are where their files are. Posts of blogs are no documentation and left out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, normpath

from msgspec import Struct

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_strings
from service.markup.generator_files import NAVIGATION, matcher
from service.retrieval.site.documents import Category, DocumentSet
from service.retrieval.site.generators.docusaurus.sidebars import sidebars_of
from service.retrieval.site.ignore_files import IgnoreRules, ignore_rules
from service.retrieval.site.javascript.script import exported
from service.retrieval.site.layout import MAX_FACT, Layout, Read, clean_url, join_path, read_text, within
from service.retrieval.site.link_rules import Fallback, LinkRules
from service.retrieval.site.settings import text_setting

MAX_INSTANCES, MAX_VERSIONS, MAX_LANGUAGES, MAX_CATEGORIES, MAX_RULES = 50, 200, 200, 5_000, 100
"""Limits for one configuration."""
_CONFIG = re.compile(r"docusaurus\.config\.(?:[cm]?js|ts)$")
_SIDEBARS = matcher(NAVIGATION["docusaurus"])
_CATEGORY = re.compile(r"_category_\.(?:json|ya?ml)")
_CURRENT = "current"
Options = Mapping[str, object]


class _Language(Struct, frozen=True):
    name: str
    folder: str
    """The folder of its translations."""
    base: str
    """Prefix of all its addresses."""
    is_default: bool


class _Site(Struct, frozen=True):
    root: str
    files: frozenset[str]
    read: Read
    base: str
    languages: tuple[_Language, ...]

    def value(self, path: str) -> object:
        """Return what a program or a JSON file exports."""
        return exported(path, lambda name: read_text(self.read, name) if name in self.files else None)

    def holds(self, folder: str) -> bool:
        return any(within(name, folder) for name in self.files)


def docusaurus(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    beside = [name for name in sorted(files) if dirname(name) == root]
    path = next((name for name in beside if _CONFIG.search(name)), "")
    found = exported(path, lambda name: read_text(read, name) if name in files else None) if path else None
    settings: Options = found if isinstance(found, dict) else {}
    base = clean_url(text_setting(settings, "baseUrl")).rstrip("/")
    languages = tuple(_languages(settings.get("i18n"), root, base, files))
    site = _Site(root, files, read, base, languages)
    sets: list[DocumentSet] = []
    for instance in list(_instances(settings))[:MAX_INSTANCES]:
        sets += _documents(site, instance, is_sure=bool(path))
    if not sets:
        return None
    main = next((each for each in sets if each.folder.endswith("docs") and not each.version), sets[0])
    sets += _pages(site, settings)
    bases = ("/docs", "") if main.prefix == "\0" else (main.prefix,)
    return Layout(
        "docusaurus", docs_folder, main.folder, Dialect(mdx=True), bases,
        redirects=dict(_redirects(settings)),
        mounts=tuple((each.folder, each.prefix, each.version, each.language) for each in sets),
        default_language=next((each.name for each in languages if each.is_default), ""),
        documents=tuple(sets), link_prefix=base, include_folders=(root,),
        links=_link_rules(site, settings, sets, is_read=bool(settings)),
    )  # fmt: skip


_PLAIN_PLUGINS = re.compile(
    r"(?:^|[/@])(?:docusaurus-)?(?:plugin|theme|preset)?-?(?:content-docs|content-blog|content-pages|client-redirects|ideal-image|sitemap|"
    r"google-[\w-]+|debug|pwa|svgr|css-cascade-layers|vercel-analytics|classic|mermaid|live-codeblock|search-algolia|"
    r"lunr|sass|image-zoom|search-local|easyops-cn/docusaurus-search-local|docusaurus-lunr-search|rsdoctor|faster)$"
)
"""Plugins, presets and themes that make no addresses but those that are known."""
_PROGRAM = re.compile(r"\.(?:jsx?|tsx?)$")
_TEST = re.compile(r"(?:^|/)(?:_[^/]*|__tests__/.*|[^/]*\.(?:test|spec)\.[jt]sx?)$")


def _link_rules(site: _Site, settings: Options, sets: list[DocumentSet], *, is_read: bool) -> LinkRules:
    """Return how links are read: a link to a file leads to its page, all others are addresses, which count from that of
    the page, with or without a slash as ``trailingSlash`` says (packages/docusaurus-utils/src/markdownLinks.ts,
    packages/docusaurus/src/server/brokenLinks.ts).
    """
    slash = settings.get("trailingSlash")
    blogs = [*_blogs(site, settings)]
    made = [*blogs]
    for each in sets:
        if each.style == "docusaurus" and each.prefix != "\0":
            made += [(f"{each.prefix}/tags", "the tags of the documents make it"),
                     (f"{each.prefix}/category", "a category of the sidebar makes it")]  # fmt: skip
    prefixes = {each.folder: each.prefix for each in sets}
    return LinkRules(
        relative="address", slash=slash if isinstance(slash, bool) else None, knows_root=True, reads_files=True,
        has_all_addresses=is_read and _has_plain_plugins(settings), has_all_files=is_read,
        made=tuple(made), made_files=tuple((folder, reason) for folder, reason in _blog_folders(site, settings)),
        programs=frozenset(_programs(site, sets)), served=(join_path(site.root, "static"),),
        fallbacks=tuple(
            Fallback(each.folder, each.prefix, each.original, prefixes[each.original])
            for each in sets
            if each.original and each.original in prefixes and "\0" not in (each.prefix, prefixes[each.original])
        ),
    )  # fmt: skip


def _has_plain_plugins(settings: Options) -> bool:
    for key in ("plugins", "presets", "themes"):
        listed = settings.get(key)
        for one in listed if isinstance(listed, list) else ():
            name = _configured(one)[0]
            if not name or not _PLAIN_PLUGINS.search(name):
                return False
    return True


def _blog_options(settings: Options) -> Iterator[Options]:
    presets, plugins = settings.get("presets"), settings.get("plugins")
    for preset in presets if isinstance(presets, list) else ():
        blog = _configured(preset)[1].get("blog")
        if blog is not False:
            yield blog if isinstance(blog, dict) else {}
    for plugin in plugins if isinstance(plugins, list) else ():
        name, options = _configured(plugin)
        if "content-blog" in name:
            yield options


def _blogs(site: _Site, settings: Options) -> Iterator[tuple[str, str]]:
    """Yield where the addresses of each blog begin, in each language."""
    for options in _blog_options(settings):
        given = options.get("routeBasePath")
        route = clean_url(given if isinstance(given, str) else "blog").rstrip("/")
        for base in dict.fromkeys((site.base, *(language.base for language in site.languages))):
            yield f"{base}{route}", "the blog makes its addresses"


def _blog_folders(site: _Site, settings: Options) -> Iterator[tuple[str, str]]:
    for options in _blog_options(settings):
        folder = _below(site.root, text_setting(options, "path") or "blog")
        if folder:
            yield folder, "it is in the blog"


def _programs(site: _Site, sets: list[DocumentSet]) -> Iterator[str]:
    """Yield the addresses of the pages that are programs."""
    for each in sets:
        if each.style != "files" or "\0" in each.prefix:
            continue
        for name in site.files:
            inside = name[len(each.folder) + 1 :]
            if name.startswith(f"{each.folder}/") and _PROGRAM.search(inside) and not _TEST.search(inside):
                stem = re.sub(r"(?:^|/)index$", "", inside.rpartition(".")[0])
                yield clean_url(f"{each.prefix}/{stem}").rstrip("/")


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _languages(i18n: object, root: str, base: str, files: frozenset[str]) -> Iterator[_Language]:
    settings: Options = i18n if isinstance(i18n, dict) else {}
    top = join_path(root, normpath(text_setting(settings, "path") or "i18n"))
    default = text_setting(settings, "defaultLocale")
    listed = _strings(settings.get("locales"))
    if not listed:
        listed = sorted({name[len(top) + 1 :].split("/", 1)[0] for name in files if name.startswith(f"{top}/")})
    configs = settings.get("localeConfigs")
    for name in listed[:MAX_LANGUAGES]:
        own = configs.get(name) if isinstance(configs, dict) else None
        options: Options = own if isinstance(own, dict) else {}
        prefix = base if name == default else f"{base}/{name}"
        if isinstance(options.get("baseUrl"), str):
            prefix = clean_url(text_setting(options, "baseUrl")).rstrip("/")
        yield _Language(name, join_path(top, normpath(text_setting(options, "path") or name)), prefix, name == default)


def _instances(settings: Options) -> Iterator[Options]:
    """Yield the options of each instance of the plugin for documents; the first is that of the preset."""
    presets, plugins = settings.get("presets"), settings.get("plugins")
    is_found = False
    for preset in presets if isinstance(presets, list) else ():
        name, options = _configured(preset)
        docs = options.get("docs")
        if docs is False:
            is_found = True
        elif isinstance(docs, dict) or "preset-classic" in name or name == "classic":
            is_found = True
            yield docs if isinstance(docs, dict) else {}
    for plugin in plugins if isinstance(plugins, list) else ():
        name, options = _configured(plugin)
        if "content-docs" in name:
            is_found = True
            yield options
    if not is_found:
        yield {}


def _configured(plugin: object) -> tuple[str, Options]:
    """Return the name and the options of a preset or plugin."""
    if isinstance(plugin, str):
        return plugin, {}
    parts = plugin if isinstance(plugin, list) else []
    name = parts[0] if parts and isinstance(parts[0], str) else ""
    return name, parts[1] if len(parts) > 1 and isinstance(parts[1], dict) else {}


def _documents(site: _Site, options: Options, *, is_sure: bool) -> Iterator[DocumentSet]:
    """Yield the folders of one instance: each version, in each language."""
    plugin = text_setting(options, "id")
    lead = f"{plugin}_" if plugin and plugin != "default" else ""
    folder = _below(site.root, text_setting(options, "path") or "docs")
    if folder is None:
        return
    given = options.get("routeBasePath")
    route = clean_url(given if isinstance(given, str) else "docs").rstrip("/")
    versions = _versions(site, options, lead)
    last = text_setting(options, "lastVersion") or next((name for name in versions if name != _CURRENT), _CURRENT)
    shown = options.get("versions")
    has_rules = isinstance(options.get("exclude"), list)
    for name in versions:
        own = shown.get(name) if isinstance(shown, dict) else None
        about: Options = own if isinstance(own, dict) else {}
        part = text_setting(about, "path") if isinstance(about.get("path"), str) else _part(name, last)
        at = folder if name == _CURRENT else join_path(site.root, f"{lead}versioned_docs/version-{name}")
        label = (text_setting(about, "label") or _part(name, "")) if name == _CURRENT and len(versions) > 1 else name
        is_alone = name == _CURRENT and len(versions) == 1
        file = _sidebar_file(site, options, name, lead)
        prefix = f"{route}{clean_url(part).rstrip('/')}"
        base = DocumentSet(
            at, "\0" if not is_sure and is_alone else f"{site.base}{prefix}", route,
            version="" if is_alone else label, is_default=name == last,
            keeps_numbers=options.get("numberPrefixParser") is False,
            include=_rules(options.get("include")), exclude=_rules(options.get("exclude")), has_own_rules=has_rules,
            sidebars=(sidebars_of(site.value(file)) if file else ()) if file is not None else None,
            sidebar_file=file or "", categories=_categories(site, at),
        )  # fmt: skip
        if site.holds(at):
            yield base
        for language in site.languages:
            plugin_folder = f"docusaurus-plugin-content-docs{'-' + plugin if lead else ''}"
            inside = _CURRENT if name == _CURRENT else f"version-{name}"
            translated = join_path(language.folder, plugin_folder, inside)
            if site.holds(translated):
                yield _changed(base, translated, f"{language.base}{prefix}", language)


def _changed(base: DocumentSet, folder: str, prefix: str, language: _Language) -> DocumentSet:
    return DocumentSet(
        folder, prefix, base.route, version=base.version, language=language.name, is_default=base.is_default,
        original=base.folder, keeps_numbers=base.keeps_numbers, include=base.include, exclude=base.exclude,
        has_own_rules=base.has_own_rules, sidebars=base.sidebars, sidebar_file=base.sidebar_file,
        categories=base.categories,
    )  # fmt: skip


def _part(version: str, last: str) -> str:
    """Return the part of an address that stands for a version."""
    if version == last:
        return ""
    return "next" if version == _CURRENT else version


def _below(root: str, path: str) -> str | None:
    """Return a folder that is given from the site's, which may be beside it; None outside the repository."""
    if path.startswith("/"):
        return None
    found = normpath(f"{root}/{path}".lstrip("/"))
    return None if found.startswith("..") else "" if found == "." else found


def _versions(site: _Site, options: Options, lead: str) -> list[str]:
    """Return the versions that are built, the current one by that name."""
    listed: list[str] = []
    if options.get("disableVersioning") is not True:
        listed = _json_strings(read_text(site.read, join_path(site.root, f"{lead}versions.json")))[:MAX_VERSIONS]
    if _CURRENT not in listed and (options.get("includeCurrentVersion") is not False or not listed):
        listed.insert(0, _CURRENT)
    only = _strings(options.get("onlyIncludeVersions"))
    return [name for name in listed if name in only] or listed if only else listed


def _sidebar_file(site: _Site, options: Options, version: str, lead: str) -> str | None:
    """Return the file of the sidebars; empty for none, and None for a sidebar that lists all folders."""
    if version != _CURRENT:
        path = join_path(site.root, f"{lead}versioned_sidebars/version-{version}-sidebars.json")
        return path if path in site.files else ""
    given = options.get("sidebarPath")
    if given is False:
        return ""
    if isinstance(given, str):
        path = _below(site.root, given) or ""
        if path in site.files:
            return path
    if "sidebarPath" not in options and (lead or options):
        return None
    path = next((name for name in sorted(site.files) if dirname(name) == site.root and _SIDEBARS.search(name)), "")
    return path if path and not lead else None


def _categories(site: _Site, folder: str) -> dict[str, Category]:
    found: dict[str, Category] = {}
    for name in site.files:
        if name.startswith(f"{folder}/") and _CATEGORY.fullmatch(name.rpartition("/")[2]):
            if len(found) >= MAX_CATEGORIES:
                break
            try:
                value = load_strings(read_text(site.read, name))  # JSON is YAML, too
            except ValueError:
                continue
            if isinstance(value, dict):
                found[dirname(name)[len(folder) + 1 :]] = _category(value)
    return found


def _category(value: Options) -> Category:
    link = value.get("link")
    is_page = isinstance(link, dict) and link.get("type") == "doc"
    page = str(link.get("id") or "") if isinstance(link, dict) and is_page else ""
    try:
        position = float(str(value.get("position")))
    except ValueError:
        position = None
    return Category(position, page[:MAX_FACT], has_link="link" in value)


def _rules(patterns: object) -> IgnoreRules:
    """Return the rules of patterns with ``{a,b}``, from the folder of the documents."""
    lines: list[str] = []
    for pattern in _strings(patterns)[:MAX_RULES]:
        lines += (each if each.startswith(("**/", "/")) else f"/{each}" for each in _without_braces(pattern))
    return ignore_rules(line.removesuffix("/**") + ("/" if line.endswith("/**") else "") for line in lines)


def _without_braces(pattern: str) -> list[str]:
    """Return the patterns that a pattern with lists in braces stands for."""
    found = [pattern]
    while len(found) < MAX_RULES and any("{" in one and "}" in one.partition("{")[2] for one in found):
        found = [each for one in found for each in _opened(one)]
    return found[:MAX_RULES]


def _opened(pattern: str) -> list[str]:
    before, opened, rest = pattern.partition("{")
    inside, closed, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inside.split(",")[:MAX_RULES]] if opened and closed else [pattern]


def _pages(site: _Site, settings: Options) -> Iterator[DocumentSet]:
    """Yield the folders of pages that are no documents."""
    options: Options = {}
    presets = settings.get("presets")
    for preset in presets if isinstance(presets, list) else ():
        given = _configured(preset)[1].get("pages")
        if given is False:
            return
        options = given if isinstance(given, dict) else options
    folder = _below(site.root, text_setting(options, "path") or "src/pages")
    route = clean_url(text_setting(options, "routeBasePath")).rstrip("/")
    if folder is not None:
        yield DocumentSet(folder, f"{site.base}{route}", route, style="files", sidebars=())
    for language in site.languages:
        translated = join_path(language.folder, "docusaurus-plugin-content-pages")
        if site.holds(translated):
            yield DocumentSet(
                translated, f"{language.base}{route}", route, language=language.name, original=folder or "",
                style="files", sidebars=(),
            )  # fmt: skip


def _redirects(settings: Options) -> Iterator[tuple[str, str]]:
    plugins = settings.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        name, options = _configured(plugin)
        rules = options.get("redirects") if "client-redirects" in name else None
        for rule in rules[:MAX_FACT] if isinstance(rules, list) else ():
            if isinstance(rule, dict) and isinstance(rule.get("to"), str):
                came = rule.get("from")
                for source in [came] if isinstance(came, str) else _strings(came):
                    yield source, rule["to"]


def _json_strings(text: str) -> list[str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return _strings(values)
