"""Hugo: the folders of content, languages, cascades, bundles, and the order of sections and menus
(gohugo.io/content-management). Addresses are in ``addresses``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from posixpath import dirname, normpath

from msgspec import Struct
from msgspec.structs import replace

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import FrontMatter, is_true, list_field, split_front_matter, text_field
from service.markup.pages import MARKDOWN_SUFFIXES
from service.markup.slugs import SlugStyle
from service.retrieval.site.generators.hugo.addresses import Cascade, ContentPage, HugoRules, Source
from service.retrieval.site.generators.hugo.configuration import (
    Settings,
    base_path,
    is_on,
    read_settings,
    site_root,
    table,
    tables,
    text,
)
from service.retrieval.site.layout import (
    LANGUAGE,
    LANGUAGES,
    SHOWN_ON,
    Layout,
    Mount,
    NavEntry,
    Read,
    clean_url,
    is_unsearched,
    join_path,
    within,
)
from service.retrieval.site.link_rules import LinkRules

MAX_PAGES = 50_000
"""Pages whose front matter is read for their order."""
MAX_MADE = 2_000
"""Addresses that are made of no page that readers find."""
MAX_PARAMS, MAX_PARAMS_DEPTH, MAX_TEMPLATES = 500, 5, 300
_TEMPLATE = re.compile(r"(?:^|/)layouts/_?shortcodes/([\w./-]{1,100})\.html$")
MAX_HEAD = 64 << 10
_HUGO_SECTION = re.compile(r"_index(?:\.[a-z-]+)?\.md")
_HUGO_SLUGS: Mapping[str, SlugStyle] = {"github-ascii": "hugo-ascii", "blackfriday": "blackfriday"}
_CASCADED = frozenset(
    ("url", "slug", "build", "draft", "headless", "publishDate", "publishdate", "expiryDate", "expirydate", "toc_hide")
)


def hugo(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = site_root(config)
    settings = read_settings(config, files, read)
    languages = _languages(settings)
    sources = _sources(settings, root, languages)
    if not any(within(name, source.folder) for name in files for source in sources):
        return None
    default = text(settings, "defaultcontentlanguage").lower()
    if not languages and len(sources) == 1:
        found = _language_folders(sources[0].folder, files)
        if found:
            default = default if default in found else "en" if "en" in found else found[0]
            sources = [Source(join_path(sources[0].folder, part), "", part.lower()) for part in found] + sources
            languages = {part.lower(): {} for part in found}
    if languages and default not in languages:
        default = min(languages, key=lambda code: _weight(text(languages[code], "weight")))
    anchors = text(table(settings, "markup", "goldmark", "parser"), "autoheadingidtype")
    if is_on({"b": "blackfriday" in text(table(settings, "markup"), "defaultmarkdownhandler")}, "b"):
        anchors = "blackfriday"
    rules = HugoRules(
        tuple(sources),
        _prefixes(settings, languages, default),
        default,
        _permalinks(table(settings, "permalinks")),
        _ugly(settings.get("uglyurls")),
        is_on(settings, "disablepathtolower"),
        tuple(_cascades(settings.get("cascade"), "", "")),
        any_suffix=not languages,
    )
    return _Site(rules, files, read, docs_folder, settings).layout(_HUGO_SLUGS.get(anchors, "hugo"))


def hugo_by_folders(files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    """Without its configuration Hugo is known by ``content`` and its ``_index.md``."""
    sections = [
        name
        for name in files
        if within(name, docs_folder)
        and _HUGO_SECTION.fullmatch(name[name.rfind("/") + 1 :])
        and "content" in name.split("/")[:-1]
    ]
    if not sections:
        return None
    shallow = min(sections, key=lambda name: (name.count("/"), name))
    content = shallow[: shallow.index("content/") + len("content")]
    found = _language_folders(content, files)
    default = "en" if not found or "en" in found else found[0].lower()
    sources = [*(Source(join_path(content, part), "", part.lower()) for part in found), Source(content)]
    prefixes = {part.lower(): "" if part.lower() == default else f"/{part.lower()}" for part in found}
    rules = HugoRules(tuple(sources), prefixes, default if found else "", any_suffix=not found)
    site = _Site(rules, files, read, docs_folder, {})
    return None if site.has_whole_slugs() else site.layout("hugo")


def _language_folders(content: str, files: frozenset[str]) -> list[str]:
    inside = {name[len(content) + 1 :].split("/", 1)[0] for name in files if name.startswith(content + "/")}
    return sorted(part for part in inside if LANGUAGE.fullmatch(part) and part[:2].lower() in LANGUAGES)


def _languages(settings: Settings) -> dict[str, Settings]:
    disabled = {code.lower() for code in list_field(settings, "disablelanguages")}
    every = {code: table(settings, "languages", code) for code in table(settings, "languages")}
    return {code: one for code, one in every.items() if code not in disabled and not is_on(one, "disabled")}


def _sources(settings: Settings, root: str, languages: Mapping[str, Settings]) -> list[Source]:
    """Return the folders of content, those of mounts first: they take the place of the others."""
    mounts: list[Source] = []
    for one in tables(table(settings, "module").get("mounts")):
        target = text(one, "target").strip("/")
        if target != "content" and not target.startswith("content/"):
            continue
        if target.lower().endswith(MARKDOWN_SUFFIXES):
            continue  # a file alone, which ``_link_rules`` knows
        listed = list_field(table(one, "sites", "matrix"), "languages")
        language = text(one, "lang").lower() or (listed[0].lower() if len(listed) == 1 else "")
        mounts.append(Source(_inside(root, text(one, "source")), target[len("content") :].strip("/"), language))
    own = [
        Source(_inside(root, text(one, "contentdir")), "", code)
        for code, one in languages.items()
        if text(one, "contentdir")
    ]
    if mounts or own:
        return (
            [*own, *mounts]
            if any(not one.below for one in (*own, *mounts))
            else [*own, *mounts, _content(settings, root)]
        )
    return [_content(settings, root)]


def _content(settings: Settings, root: str) -> Source:
    return Source(_inside(root, text(settings, "contentdir") or "content"))


def _inside(root: str, folder: str) -> str:
    found = normpath("/" + join_path(root, folder)).strip("/") if not folder.startswith("..") else folder
    return normpath(join_path(root, folder)) if folder.startswith("..") else found


def _prefixes(settings: Settings, languages: Mapping[str, Settings], default: str) -> dict[str, str]:
    base = base_path(settings)
    in_folder = is_on(settings, "defaultcontentlanguageinsubdir")
    prefixes = {"": base}
    for code, one in languages.items():
        if text(one, "baseurl"):
            prefixes[code] = base_path(one)
        else:
            prefixes[code] = base if code == default and not in_folder else f"{base}/{code}"
    if not languages and default:
        prefixes[default] = f"{base}/{default}" if in_folder else base
    return prefixes


def _permalinks(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the patterns by kind and section; patterns of a section alone are for its pages."""
    found: dict[str, dict[str, str]] = {"page": {}, "section": {}}
    for key, value in settings.items():
        if isinstance(value, dict):
            found.setdefault(key, {}).update({one.strip("/"): str(pattern)[:500] for one, pattern in value.items()})
        elif isinstance(value, str):
            found["page"][key.strip("/")] = value[:500]
    return found


def _ugly(value: object) -> frozenset[str]:
    if isinstance(value, dict):
        return frozenset(key for key in value if is_on(value, key))
    return frozenset(("*",)) if is_on({"ugly": value}, "ugly") else frozenset()


def _cascades(value: object, section: str, language: str) -> Iterator[Cascade]:
    for one in tables(value):
        target = next((table(one, key) for key in ("target", "_target") if table(one, key)), {})
        values = {("build" if key == "_build" else key): each for key, each in one.items()}
        languages = text(target, "lang") or text(table(target, "sites", "matrix"), "languages")
        yield Cascade(
            section, {key: each for key, each in values.items() if key in _CASCADED}, text(target, "path"),
            text(target, "kind"), languages, language,
        )  # fmt: skip


def _weight(value: object) -> float:
    """Return a weight for sorting: those without one, or with 0, come last."""
    try:
        return float(str(value)) or float("inf")
    except ValueError:
        return float("inf")


class _Page(Struct):
    path: str
    at: ContentPage
    front_matter: FrontMatter
    has_text: bool
    menu_weight: float = float("inf")

    @property
    def shows_resources(self) -> bool:
        """Return whether a bundle's Markdown is shown by its page: the usual templates do not."""
        layout = text_field(self.front_matter, "layout")
        return not self.has_text or layout.lower() not in ("", "single", "page", "default", "docs")

    @property
    def key(self) -> tuple[float, str, str, str]:
        """Hugo's order: weight, then the newest first, then the title, then the path."""
        date = text_field(self.front_matter, "date")[:10]
        newest = "".join(chr(0x10FFFF - ord(letter)) for letter in date) or chr(0x10FFFF)
        title = text_field(self.front_matter, "linkTitle", "linktitle", "title") or self.at.name
        return _weight(text_field(self.front_matter, "weight")), newest, title.casefold(), self.path


def _sorted(pages: Sequence[_Page]) -> list[_Page]:
    """Return the pages of a section in Hugo's order; in that of a menu where it has most of them."""
    by_menu = 2 * sum(page.menu_weight < float("inf") for page in pages) > len(pages)
    return sorted(pages, key=lambda page: (page.menu_weight if by_menu else 0.0, page.key))


class _Site:
    def __init__(
        self, rules: HugoRules, files: frozenset[str], read: Read, docs_folder: str, settings: Settings
    ) -> None:
        self._rules, self._files, self._read, self._docs_folder = rules, files, read, docs_folder
        self._settings = settings
        self._today = datetime.now(UTC).date().isoformat()

    def has_whole_slugs(self) -> bool:
        """Return whether most slugs are whole addresses, as other generators have them: Hugo's are the last part."""
        slugs = [slug for page in self._pages if (slug := text_field(page.front_matter, "slug"))]
        return 2 * sum(slug.startswith("/") for slug in slugs) > len(slugs)

    def layout(self, slugs: SlugStyle) -> Layout:
        pages = self._pages
        sections = [page for page in pages if not page.at.name]
        cascades = list(self._rules.cascades)
        for page in sections:
            cascades += _cascades(page.front_matter.get("cascade"), page.at.path.rstrip("/"), page.at.language)
        rules = replace(
            self._rules,
            cascades=tuple(one for one in cascades if one.values),
            sections=frozenset("/".join(page.at.folders) for page in sections),
            params=dict(islice(_params(table(self._settings, "params"), "", 0), MAX_PARAMS)),
            templates=dict(islice(self._templates(), MAX_TEMPLATES)),
            glossaries=tuple(page.path for page in pages if page.at.name and page.at.folders[-1:] == ("glossary",)),
        )
        bundles = dict(self._resources(pages))
        hidden = {path: f"A resource of the page {bundle}." for path, bundle in bundles.items()}
        for page in pages:
            page.front_matter = rules.with_cascades(page.at, page.front_matter)
            reason = self._why_hidden(page.front_matter)
            if reason:
                hidden.setdefault(page.path, reason)
        shown_on = {path: on for path, on in self._shown_on(pages, bundles) if on not in hidden}
        hidden |= {path: f"{SHOWN_ON}{on}." for path, on in shown_on.items()}
        shown = [page for page in pages if page.path not in hidden]
        missing = tuple(self._menu_weights(shown))
        mounts: list[Mount] = [(s.folder, rules.prefixes.get(s.language, ""), "", s.language) for s in rules.sources]
        return Layout(
            "hugo",
            self._docs_folder,
            rules.sources[-1].folder,
            Dialect(shortcodes=True, slugs=slugs),
            ("",),
            self._entries(shown),
            mounts=tuple(mounts),
            default_language=rules.default_language,
            missing_entries=missing,
            hugo=rules,
            hidden_pages=hidden,
            shown_on=shown_on,
            links=self._link_rules(rules, pages, sections, hidden),
        )

    def _link_rules(
        self, rules: HugoRules, pages: Sequence[_Page], sections: Sequence[_Page], hidden: Mapping[str, str]
    ) -> LinkRules:
        """Return how links are read: as written, or as a theme's render hook has them, which may find files of pages,
        too (gohugo.io/render-hooks/links). Taxonomies, sections without a page and mounts of files make addresses.
        """
        settings, base = self._settings, self._rules.prefixes.get("", "")
        module = table(settings, "module")
        taxonomies = [str(one).strip("/") for one in table(settings, "taxonomies").values()] or ["tags", "categories"]
        made: list[tuple[str, str]] = []
        made_files: list[tuple[str, str]] = []
        for prefix in dict.fromkeys(self._rules.prefixes.values()):
            made += [(f"{prefix}/{one}", f"the taxonomy {one} makes it") for one in taxonomies]
        for one in tables(module.get("mounts")):
            target, source = text(one, "target").strip("/"), text(one, "source")
            if target.startswith("content/") and target.lower().endswith(MARKDOWN_SUFFIXES):
                made_files.append((join_path(dirname(rules.sources[-1].folder), target), f"{source} is mounted there"))
                made.append(
                    (f"{base}/{target[len('content/') : target.rindex('.')]}".lower(), f"{source} is mounted there")
                )
        for page in pages:
            placed = rules.resolve(page.path, page.front_matter) if page.path in hidden else None
            if placed is not None:
                why = hidden[page.path].rstrip(".")
                made.append((clean_url(placed[0]), f"{page.path} is not published: {why[:1].lower()}{why[1:]}"))
        named = {(page.at.language, page.at.folders[:1]) for page in sections}
        programs = set[str]()
        for page in pages:
            first = page.at.folders[:1]
            if first and (page.at.language, first) not in named:
                programs.add(f"{rules.prefixes.get(page.at.language, base)}/{first[0].lower()}")
        themes = [text(settings, "theme"), *list_field(settings, "theme")]
        is_whole = not module.get("imports") and not any(themes)
        has_hook = any("/_markup/render-link." in path for path in self._files)
        return LinkRules(
            relative="address" if is_whole and bool(settings) and not has_hook else "", slash=True,
            has_all_addresses=is_whole and bool(settings), has_all_files=is_whole,
            knows_root=bool(settings) and not base,
            made=tuple(made[:MAX_MADE]), made_files=tuple(made_files), programs=frozenset(programs),
            served=(join_path(dirname(rules.sources[-1].folder), "static"),),
        )  # fmt: skip

    def _templates(self) -> Iterator[tuple[str, str]]:
        """Yield the site's own shortcodes; those of themes come first, so that the site's take their place."""
        for path in sorted(self._files, key=lambda name: "/themes/" not in f"/{name}"):
            found = _TEMPLATE.search(path)
            if found is not None:
                yield found[1].lower(), path

    @cached_property
    def _pages(self) -> list[_Page]:
        found: list[_Page] = []
        for path in sorted(self._files):
            if not path.lower().endswith((*MARKDOWN_SUFFIXES, ".html")) or len(found) >= MAX_PAGES:
                continue
            at = self._rules.content_page(path)
            if at is not None:
                head = (self._read(path) or b"")[:MAX_HEAD].decode("utf-8", "replace").lstrip("\ufeff")
                front_matter, start = split_front_matter(head := head.replace("\r\n", "\n"))
                found.append(_Page(path, at, front_matter, has_text=bool(head[start:].strip())))
        return found

    def _resources(self, pages: list[_Page]) -> Iterator[tuple[str, str]]:
        """Yield the files in page bundles, which are resources, each with its page: that of its language, if any."""
        own = [page for page in pages if page.at.is_bundle]
        bundles = {page.path.rpartition("/")[0]: page.path for page in own}
        of_language = {(page.path.rpartition("/")[0], page.at.language): page.path for page in own}
        for page in pages:
            folder = page.path.rpartition("/")[0]
            if page.at.is_bundle:
                continue
            while folder:
                if folder in bundles:
                    yield page.path, of_language.get((folder, page.at.language), bundles[folder])
                    break
                folder = folder.rpartition("/")[0]

    def _shown_on(self, pages: list[_Page], bundles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the files that are no pages and whose text readers see, and the page that shows each: pages that are
        listed but not rendered are on that of their section, and the resources of a bundle on its page, where that has
        a template for them. Others are there to be included.
        """
        showing = {page.path for page in pages if page.shows_resources}
        sections = {(page.at.language, page.at.folders): page.path for page in pages if not page.at.name}
        for page in pages:
            build = table(page.front_matter, "build") or table(page.front_matter, "_build")
            is_restricted = bool(list_field(page.front_matter, "groups")) or is_unsearched(page.front_matter)
            if is_restricted or _is_never(build, "list") or self._why_unpublished(page.front_matter):
                continue
            folders = page.at.folders
            if page.path in bundles:
                if bundles[page.path] in showing:
                    yield page.path, bundles[page.path]
            elif page.at.name and _is_never(build, "render"):
                while len(folders) > 1 and (page.at.language, folders) not in sections:
                    folders = folders[:-1]
                if (page.at.language, folders) in sections:
                    yield page.path, sections[page.at.language, folders]

    def _why_hidden(self, front_matter: FrontMatter) -> str:
        build = table(front_matter, "build") or table(front_matter, "_build")
        if _is_never(build, "render") or text(build, "render").lower() == "link":
            return "Its front matter, or that of a section above it, says that it is not rendered."
        return self._why_unpublished(front_matter)

    def _why_unpublished(self, front_matter: FrontMatter) -> str:
        if is_true(front_matter, "headless"):
            return "It is headless."
        if is_true(front_matter, "draft") and not is_on(self._settings, "builddrafts"):
            return "It is a draft."
        published = text_field(front_matter, "publishDate", "publishdate", "date")[:10]
        if _is_date(published) and published > self._today and not is_on(self._settings, "buildfuture"):
            return f"It is published on {published}."
        expired = text_field(front_matter, "expiryDate", "expirydate")[:10]
        if _is_date(expired) and expired <= self._today and not is_on(self._settings, "buildexpired"):
            return f"It expired on {expired}."
        return ""

    def _menu_weights(self, pages: list[_Page]) -> Iterator[str]:
        """Give the pages in menus their weights; yield the pages that menus name and that do not exist."""
        by_path: dict[str, list[_Page]] = {}
        folders: set[str] = {"/"}
        for page in pages:
            by_path.setdefault(page.at.path, []).append(page)
            for number in range(len(page.at.folders)):
                folders.add("/" + "/".join(page.at.folders[: number + 1]).lower())
            for one in _front_matter_menus(page.front_matter):
                page.menu_weight = min(page.menu_weight, _weight(one.get("weight")))
        taxonomies = {one.lower() for one in map(str, table(self._settings, "taxonomies").values())}
        taxonomies |= {"tags", "categories"}
        every = [
            self._settings,
            *(table(self._settings, "languages", code) for code in table(self._settings, "languages")),
        ]
        for settings in every:
            for menu in (*table(settings, "menus").values(), *table(settings, "menu").values()):
                for entry in tables(menu):
                    named = text(entry, "pageref")
                    path = "/" + named.strip("/").lower().removesuffix(".md").removesuffix("/_index").removesuffix(
                        "/index"
                    )
                    for page in by_path.get(path, ()):
                        page.menu_weight = min(page.menu_weight, _weight(entry.get("weight")))
                    if named and path not in by_path and path not in folders and path.split("/")[1] not in taxonomies:
                        yield named

    def _entries(self, pages: list[_Page]) -> dict[str, NavEntry]:
        """Return the pages in the order of the sections: a section's page, then its pages and sections together."""
        known = {(page.at.language, page.at.folders) for page in pages if page.at.kind == "section"}
        children: dict[tuple[str, tuple[str, ...]], list[_Page]] = {}
        for page in pages:
            language, folders = page.at.language, page.at.folders if page.at.name else page.at.folders[:-1]
            while len(folders) > 1 and (language, folders) not in known:
                folders = folders[:-1]
            if folders and (language, folders) not in known:  # at the top, each folder is a section
                known.add((language, folders))
                section = _Page("", ContentPage(language, folders, ""), {}, has_text=False)
                children.setdefault((language, ()), []).append(section)
            if page.at.kind != "home":
                children.setdefault((language, folders), []).append(page)
        order: dict[str, NavEntry] = {}
        first = self._rules.default_language
        for language in sorted({page.at.language for page in pages}, key=lambda one: (one != first, one)):
            homes = [page for page in pages if page.at.kind == "home" and page.at.language == language]
            stack = [*reversed(_sorted(children.get((language, ()), ()))), *homes]
            while stack:
                page = stack.pop()
                if page.path:
                    order[page.path] = self._entry(page, len(order))
                if page.at.kind == "section":
                    stack += reversed(_sorted(children.get((language, page.at.folders), ())))
        return order

    def _entry(self, page: _Page, order: int) -> NavEntry:
        build = table(page.front_matter, "build") or table(page.front_matter, "_build")
        unlisted = text(build, "list").lower() in ("never", "false") or is_true(page.front_matter, "toc_hide")
        title = text_field(page.front_matter, "linkTitle", "linktitle", "title")
        is_known = page.at.language in self._rules.prefixes or page.at.language != self._rules.default_language
        return NavEntry(-1 if unlisted else order, title[:500], language=page.at.language if is_known else "")


def _params(values: Settings, lead: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict) and depth < MAX_PARAMS_DEPTH:
            yield from _params(value, f"{lead}{key}.", depth + 1)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{lead}{key}", str(value)[:500]


def _is_never(build: Settings, name: str) -> bool:
    return text(build, name).lower() in ("never", "false") or build.get(name) is False


def _is_date(text_: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text_) is not None


def _front_matter_menus(front_matter: FrontMatter) -> list[Settings]:
    """Return the entries that a page has in menus: names alone, or a table for each menu."""
    for key in ("menus", "menu"):
        found = front_matter.get(key)
        if isinstance(found, dict):
            return [one for one in found.values() if isinstance(one, dict)]
    return []
