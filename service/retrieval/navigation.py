"""Which files are pages, where the site shows them, and what a link on one of them leads to.

``detect_layout`` finds the site's generator by its configuration and answers by its rules; ``make_site`` places pages
by them; ``resolve_link`` and ``link_problem`` then answer for links. A generator's rules, where they were read:

- Mintlify: docs.json (mint.json before); a page's URL is its path; ``snippets`` and the default ignores are no pages
  (mintlify.com/docs/organize/mintignore).
- Docusaurus: ``docs`` below the site's folder, under ``/docs`` unless ``routeBasePath`` says else; ``slug``, ``id``,
  numbers before names, ``_`` before what is no page, versioned_docs and i18n (docusaurus.io/docs/create-doc).
- MkDocs: ``docs_dir``, ``nav`` (mkdocs.org/user-guide/configuration). Hugo: ``content``, a language's folder or suffix,
  ``_index.md``, ``url``, ``slug``, ``aliases``, lower case (gohugo.io/content-management/urls). MDN:
  ``files/<locale>``, ``slug`` in full.
- Plain: a page is where its file is; README and index are their folder's page; a ``slug`` or ``permalink`` from ``/``
  rules.

What a configuration does not say (a generator's base path, when it is not in the archive) the pages' own links decide.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from posixpath import dirname, normpath
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from service.domain.sites import Skipped
from service.retrieval.front_matter import Facts, fact, facts_list, is_true, load_strings, load_toml
from service.retrieval.inline import Dialect
from service.retrieval.markdown import SUFFIXES, ParsedPage, parse_page
from service.retrieval.openapi_pages import is_description, operation_named
from service.retrieval.slugs import SlugStyle

Kind = Literal["mintlify", "docusaurus", "mkdocs", "hugo", "sphinx", "mdn", "plain"]
Read = Callable[[str], bytes | None]

MAX_CONFIG_BYTES = 4 << 20
MAX_VOTES = 3000
MAX_FACT = 500
MAX_SCRIPT = 100_000
"""Characters of a configuration in JavaScript, which is only looked through, not run."""


class NavEntry(Struct, frozen=True):
    """What the site's navigation says of a page."""

    order: int
    title: str = ""
    version: str = ""
    language: str = ""
    is_default: bool = True
    """Of the version or language that a reader sees first."""


class SitePage(Struct, frozen=True, gc=False):
    path: str
    url: str
    title: str
    anchors: frozenset[str]
    version: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Of readers; empty means everyone."""
    order: int = -1
    """In the navigation, from 0; -1 when it is not there."""
    is_default: bool = True


class Site(Struct, frozen=True):
    """The pages of a site and where they are."""

    kind: Kind
    docs_folder: str
    pages: Mapping[str, SitePage]
    """By path in the repository."""
    paths: Mapping[str, str]
    """By URL, redirects included; case and a trailing slash play no part: ask through ``path_of``."""
    files: frozenset[str]
    """Every file that was given, pages or not."""

    def path_of(self, url: str) -> str | None:
        return self.paths.get(_url_key(url))


class Layout(Struct, frozen=True):
    """A site's rules, before its pages are read."""

    kind: Kind
    docs_folder: str
    root: str
    """The folder that URLs count from."""
    dialect: Dialect
    bases: tuple[str, ...] = ("",)
    """URL prefixes that the site may have under ``root``, likeliest first."""
    entries: Mapping[str, NavEntry] = {}
    """By path in the repository."""
    redirects: Mapping[str, str] = {}
    ignored: tuple[re.Pattern[str], ...] = ()
    mounts: tuple[tuple[str, str, str, str], ...] = ()
    """Further folders of pages: folder, URL prefix, version, language; the first that fits."""
    keep_numbers: bool = True
    default_language: str = ""
    descriptions: frozenset[str] = frozenset()
    """Files of OpenAPI."""
    shown: frozenset[str] = frozenset()
    """Operations that pages of their own show, as ``get /users``."""
    addresses: Mapping[str, str] = {}
    """URLs that are known already, by path."""
    include_folders: tuple[str, ...] = ()
    """Where files that pages include are looked for first."""

    def is_page(self, path: str) -> bool:
        """By its name alone; front matter may still hide it (``is_hidden``)."""
        if path in self.descriptions:
            return True
        if not path.lower().endswith(_SUFFIXES.get(self.kind, SUFFIXES)) or not _within(path, self.docs_folder):
            return False
        parts = path.split("/")
        if any(part.startswith(".") or part in _UNSEEN_FOLDERS for part in parts):
            return False
        if _UNSEEN_NAMES.fullmatch(parts[-1]):
            return False
        inside = self._mounted(path)
        if inside is None:
            return False
        if self.kind == "docusaurus" and any(part.startswith("_") for part in inside[1].split("/")):
            return False
        return path in self.entries or not any(pattern.search(path) for pattern in self.ignored)

    def _mounted(self, path: str) -> tuple[tuple[str, str, str], str] | None:
        """URL prefix, version and language, and the path below the folder that gives them."""
        for folder, prefix, version, language in self.mounts:
            if _within(path, folder):
                return (prefix, version, language), path[len(folder) :].lstrip("/")
        if _within(path, self.root):
            return ("\0", "", ""), path[len(self.root) :].lstrip("/")
        return None

    def place(self, path: str, facts: Facts, base: str) -> tuple[str, str, str]:
        """URL, version, language."""
        if path in self.addresses:
            return self.addresses[path], "", ""
        if path in self.descriptions:
            return self._address_of_description(path), "", ""
        mounted = self._mounted(path)
        if mounted is None:  # a page that only navigation knows
            mounted = ("\0", "", ""), path
        (prefix, version, language), inside = mounted
        if prefix == "\0":
            prefix = base
        folder, _, file = inside.rpartition("/")
        name = file.rpartition(".")[0]
        folders = [part for part in folder.split("/") if part]
        if self.kind == "hugo":
            name, _, suffix = name.partition(".") if _LANGUAGE.fullmatch(name.rpartition(".")[2]) else (name, "", "")
            language = suffix or language
            folders = [part.lower().replace(" ", "-") for part in folders]
            name = name.lower().replace(" ", "-")
            if suffix and suffix != self.default_language:
                prefix = f"/{suffix}"
        if self.kind == "docusaurus" and not self.keep_numbers:
            folders = [_NUMBER.sub("", part) for part in folders]
            name = _NUMBER.sub("", name)
        if not language and folders and _LANGUAGE.fullmatch(folders[0]) and folders[0][:2].lower() in _LANGUAGES:
            language = folders[0]
        if not version and folders and _VERSION.fullmatch(folders[0]):
            version = folders[0]
        address = fact(facts, "slug", "url", "permalink")
        if address.startswith("/") and "://" not in address and ":" not in address:
            return _clean_url((prefix if self.kind == "docusaurus" else "") + address), version, language
        if self.kind == "mdn" and address:
            return _clean_url(f"{prefix}/{fact(facts, 'slug')}"), version, language
        tail = [] if self._is_index(name, folders) else [name]
        if self.kind == "sphinx":
            tail = [f"{name}.html"] if tail or folders else []
        elif file.lower().endswith((".html", ".htm")) and tail and self.kind == "plain":
            tail = [file]
        if self.kind == "docusaurus" and tail and fact(facts, "id"):
            tail = [fact(facts, "id").rpartition("/")[2]]
        if (given := fact(facts, "slug")) and self.kind != "mdn":
            tail = [*(tail[:0]), *given.strip("/").split("/")]
        return _clean_url("/".join([prefix, *folders, *tail])), version, language

    def _address_of_description(self, path: str) -> str:
        """Sites serve the file itself; those that keep such files in a folder of their own, from their root."""
        inside = path[len(self.root) :] if _within(path, self.root) else path
        above = dirname(self.root)
        for folder in (_join(above, "static"), _join(above, "public")):
            if _within(path, folder):
                inside = path[len(folder) :]
        return _clean_url(inside)

    def _is_index(self, name: str, folders: Sequence[str]) -> bool:
        lowered = name.lower()
        if lowered in ("index", "_index") or (lowered == "readme" and self.kind != "mintlify"):
            return True
        return self.kind == "docusaurus" and bool(folders) and lowered == folders[-1].lower()

    def included(self, path: str, target: str) -> tuple[str, ...]:
        """Where a file that a page imports may lie: from the site's root (``/a.mdx``, ``@site/a.mdx``) or its own."""
        target = target.replace("@site/", "/", 1)
        if len(target) > MAX_FACT or "\0" in target:
            return ()
        first = tuple(_join(folder, normpath(f"/{target}")) for folder in self.include_folders)
        if not target.startswith("/"):
            found = normpath(f"{dirname(path)}/{target}".lstrip("/"))
            return first if found.startswith("..") else (*first, found)
        folders = dict.fromkeys((self.root, dirname(self.root), self.docs_folder, ""))
        return (*first, *(_join(folder, normpath(target)) for folder in folders))

    def is_hidden(self, facts: Facts) -> bool:
        if (
            is_true(facts, "draft", "hidden", "unlisted", "headless")
            or str(facts.get("published", "")).lower() == "false"
        ):
            return True
        if str(facts.get("searchable", "")).lower() == "false" or is_true(facts, "search_exclude"):
            return True
        build = facts.get("_build") or facts.get("build")
        return isinstance(build, dict) and str(build.get("render", "")).lower() in ("never", "false")


class _Placed(Struct, gc=False):
    """What is kept of a parsed page until the whole site is known."""

    path: str
    title: str
    has_own_title: bool
    facts: dict[str, object]
    anchors: frozenset[str]


def _small(value: object) -> object:
    if isinstance(value, list):
        return [item[:MAX_FACT] for item in value[:100] if isinstance(item, str)]
    return str(value)[:MAX_FACT] if isinstance(value, str | int | float) else None


_PLACING = (
    *("slug", "url", "permalink", "id", "aliases", "redirect_from"),
    *("version", "language", "lang", "locale", "tag", "tags", "groups"),
)
_SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "plain": (*SUFFIXES, ".rst", ".html", ".htm", ".ipynb"),
    "sphinx": (*SUFFIXES, ".rst", ".ipynb"),
    "mkdocs": (*SUFFIXES, ".ipynb"),
    "hugo": (*SUFFIXES, ".html"),
}
"""What each generator makes pages of; else Markdown only."""
PAGE_SUFFIXES = _SUFFIXES["plain"]
_UNSEEN_FOLDERS = frozenset(("node_modules", "vendor", "__pycache__", "site-packages", "bower_components"))
_UNSEEN_NAMES = re.compile(
    r"(?:LICEN[CS]E|CODE_OF_CONDUCT|AGENTS|CLAUDE|GEMINI|SKILL|PULL_REQUEST_TEMPLATE|ISSUE_TEMPLATE)\.\w+"
)
"""Files for those who work on the repository; in lower case such a name is a page's."""
_LANGUAGE = re.compile(r"[A-Za-z]{2}(?:[-_][A-Za-z]{2,4})?")
_LANGUAGES = frozenset(
    """
    ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nb nl no pl pt ro ru sk sl sr sv th tr
    uk ur vi zh
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
_VERSION = re.compile(r"v\d+(?:[.-]\w+)*|\d+(?:\.(?:\d+|x))+")
_NUMBER = re.compile(r"^\d+\s*[-_.]+\s*(?=\D)")
_CONFIGS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("mintlify", re.compile(r"(?:^|/)(?:docs|mint)\.json$")),
    ("docusaurus", re.compile(r"(?:^|/)(?:docusaurus\.config\.(?:[cm]?js|ts)|sidebars\.(?:[cm]?js|ts|json))$")),
    ("mkdocs", re.compile(r"(?:^|/)mkdocs\.ya?ml$")),
    ("sphinx", re.compile(r"(?:^|/)conf\.py$")),
    (
        "hugo",
        re.compile(
            r"(?:^|/)(?:hugo\.(?:toml|ya?ml|json)|config/_default/(?:hugo|config)\.(?:toml|ya?ml)|config\.toml)$"
        ),
    ),
)
_MINTLIFY_IGNORES = re.compile(
    r"(?:^|/)(?:README|CONTRIBUTING|CHANGELOG|SECURITY)\.mdx?$|(?:^|/)snippets/|(?:^|/)_snippets/", re.IGNORECASE
)
_MDN_FILE = re.compile(r"(?:^|/)files/([a-z]{2}(?:-[a-z]{2})?)/.*index\.md$")
_HUGO_SECTION = re.compile(r"(?:^|/)content/(?:.*/)?_index(?:\.[a-z-]+)?\.md$")
_CONTENT_ROOTS = ("src/content/docs", "content/docs", "content", "docs", "doc", "documentation", "src/pages", "pages")


_OPENAPI_NAME = re.compile(r"openapi|swagger", re.IGNORECASE)
_SHOWS = re.compile(rb"^openapi(?:-schema)?[ \t]*:[ \t]*([^\n]{1,500})", re.MULTILINE)
MAX_LOOKED_AT = 300
"""JSON and YAML files."""

# Detection


def detect_layout(names: Iterable[str], read: Read, *, docs_folder: str = "") -> Layout:
    """The rules of the site among these files. ``read`` gives a configuration's bytes."""
    files = frozenset(names)
    docs_folder = docs_folder.strip("/")
    layout = _by_files(files, read, docs_folder)
    descriptions = frozenset(_descriptions(layout, files, read))
    if not descriptions:
        return layout
    return replace(layout, descriptions=descriptions, shown=frozenset(_shown(layout, files, read)))


def _descriptions(layout: Layout, files: frozenset[str], read: Read) -> Iterator[str]:
    """Files of OpenAPI among the documentation, by what they begin with."""
    looked = 0
    for name in sorted(files, key=lambda one: (_OPENAPI_NAME.search(one) is None, one)):
        if not name.lower().endswith((".json", ".yaml", ".yml")) or not _within(name, layout.docs_folder):
            continue
        if any(part.startswith(".") or part in _UNSEEN_FOLDERS for part in name.split("/")):
            continue
        if looked >= MAX_LOOKED_AT:
            return
        looked += 1
        if is_description(read(name) or b""):
            yield name


def _shown(layout: Layout, files: frozenset[str], read: Read) -> Iterator[str]:
    for name in files:
        if name.endswith(".mdx") and layout.is_page(name):
            match = _SHOWS.search((read(name) or b"")[:4096])
            named = operation_named(match[1].decode("utf-8", "replace").strip("'\" \r")) if match is not None else None
            if named is not None:
                yield named[1].casefold()


def _by_files(files: frozenset[str], read: Read, docs_folder: str) -> Layout:
    if WEBSITE in files:
        return _website(files, read)
    for kind, pattern in _CONFIGS:
        found = [name for name in files if pattern.search(name) and _related(dirname(name), docs_folder)]
        for config in sorted(found, key=lambda name: (_distance(dirname(name), docs_folder), name)):
            if any(part.startswith(".") or part in _UNSEEN_FOLDERS for part in config.split("/")):
                continue
            layout = _READERS[kind](config, files, read, docs_folder)
            if layout is not None and any(layout.is_page(name) for name in files):
                return layout
    for recognize in (_mdn, _hugo_by_folders):
        layout = recognize(files, docs_folder)
        if layout is not None and any(layout.is_page(name) for name in files):
            return layout
    return _plain(files, docs_folder)


def _related(folder: str, docs_folder: str) -> bool:
    return _within(folder, docs_folder) or _within(docs_folder, folder)


def _distance(folder: str, docs_folder: str) -> int:
    """The nearest configuration rules: first in or under the documentation, then above it."""
    depth = folder.count("/") + bool(folder)
    own = docs_folder.count("/") + bool(docs_folder)
    return depth - own if depth >= own else 100 + own - depth


def _within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def _text(read: Read, name: str) -> str:
    data = read(name) or b""
    return data[:MAX_CONFIG_BYTES].decode("utf-8", "replace")


WEBSITE = ".docsmith/website.json"
"""What came with the pages of a live site: ``{path: {url, title}}``."""


def _website(files: frozenset[str], read: Read) -> Layout:
    try:
        told = json.loads(_text(read, WEBSITE))
    except (ValueError, RecursionError):
        told = {}
    addresses: dict[str, str] = {}
    entries: dict[str, NavEntry] = {}
    for path, page in told.items() if isinstance(told, dict) else ():
        if path in files and isinstance(page, dict) and isinstance(page.get("url"), str):
            addresses[path] = _clean_url(page["url"])
            entries[path] = NavEntry(len(entries), str(page.get("title") or "")[:MAX_FACT])
    return Layout("plain", "", "", Dialect(), ("",), entries, addresses=addresses)


def _mintlify(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    try:
        settings = json.loads(_text(read, config))
    except (ValueError, RecursionError):
        settings = {}
    if not isinstance(settings, dict) or not (
        {"navigation", "theme", "$schema", "name"} & settings.keys() or not settings
    ):
        return None
    entries: dict[str, NavEntry] = {}
    _walk_docs_json(settings.get("navigation"), root, files, entries)
    redirects = {}
    rules = settings.get("redirects")
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, dict) and isinstance(rule.get("source"), str) and isinstance(rule.get("destination"), str):
            redirects[rule["source"]] = rule["destination"]
    ignored = [_MINTLIFY_IGNORES]
    for line in _text(read, _join(root, ".mintignore")).splitlines()[:1000]:
        pattern = _ignore_pattern(line.strip(), root)
        if pattern is not None:
            ignored.append(pattern)
    return Layout("mintlify", docs_folder, root, Dialect(mdx=True), ("",), entries, redirects, tuple(ignored))


_WILDCARDS = {r"\*\*/": "(?:.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]"}


def _ignore_pattern(line: str, root: str) -> re.Pattern[str] | None:
    """One line of .gitignore's language; a negation is not understood, and ignores nothing."""
    if not line or line[0] in "#!" or len(line) > 500 or line.count("*") > 6:
        return None
    body = re.sub(r"\\\*\\\*/|\\\*\\\*|\\\*|\\\?", lambda found: _WILDCARDS[found[0]], re.escape(line.strip("/")))
    anchor = re.escape(root + "/" if root else "") if "/" in line.strip("/") or line.startswith("/") else ""
    start = f"^{anchor}" if anchor or line.startswith("/") or "/" in line.strip("/") else "(?:^|/)"
    return re.compile(f"{start}{body}" + ("/" if line.endswith("/") else "(?:/|$)"))


def _walk_docs_json(navigation: object, root: str, files: frozenset[str], entries: dict[str, NavEntry]) -> None:
    """Groups, tabs, versions and languages nest in any order; strings are pages."""
    stack: list[tuple[object, str, str, bool]] = [(navigation, "", "", True)]
    for _ in range(200_000):
        if not stack:
            return
        node, version, language, is_default = stack.pop()
        if isinstance(node, str):
            path = next((p for s in (".mdx", ".md", "") if (p := _join(root, node) + s) in files), None)
            if path is not None and path not in entries:
                entries[path] = NavEntry(len(entries), "", version, language, is_default)
        elif isinstance(node, list):
            ranked = [item for item in node if isinstance(item, dict) and ("version" in item or "language" in item)]
            first = next((item for item in ranked if item.get("default") is True), ranked[0] if ranked else None)
            later = {id(item) for item in ranked if item is not first}
            stack.extend((item, version, language, is_default and id(item) not in later) for item in reversed(node))
        elif isinstance(node, dict):
            if isinstance(node.get("version"), str):
                version = node["version"]
            if isinstance(node.get("language"), str):
                language = node["language"]
            children = [node[key] for key in _NAVIGATION_KEYS if key in node]
            stack.extend((child, version, language, is_default) for child in reversed(children))


_NAVIGATION_KEYS = (
    "root",
    "pages",
    "groups",
    "tabs",
    "anchors",
    "dropdowns",
    "products",
    "menu",
    "versions",
    "languages",
    "global",
)
_ROUTE = re.compile(r"routeBasePath\s*:\s*['\"]([^'\"\n]{0,200})['\"]")
_DOCS_PATH = re.compile(r"(?<![\w.])path\s*:\s*['\"]([^'\"\n]{1,200})['\"]")
_QUOTED = re.compile(r"['\"]([\w./-]{1,300})['\"]")


def _docusaurus(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    text = ""
    for name in sorted(files):
        if dirname(name) == root and re.search(r"docusaurus\.config\.(?:[cm]?js|ts)$", name):
            text = _text(read, name)
            break
    text = re.sub(r"^[ \t]*//[^\n]*$", "", text, flags=re.MULTILINE)[:MAX_SCRIPT]
    mounts: list[tuple[str, str, str, str]] = []
    routes: list[tuple[str, str]] = []  # folder, base
    for match in _ROUTE.finditer(text):
        near = [(abs(path.start() - match.start()), path[1]) for path in _DOCS_PATH.finditer(text)
                if abs(path.start() - match.start()) < 400]  # fmt: skip
        folder = min(near)[1] if near else "docs"
        base = "/" + match[1].strip("/") if match[1].strip("/") else ""
        if any(_within(name, _join(root, folder)) for name in files) and folder != "blog":
            routes.append((_join(root, normpath(folder)), base))
    main = next((folder for folder, _ in routes if folder.endswith("docs")), _join(root, "docs"))
    given = dict(routes).get(main)
    bases: tuple[str, ...] = (given,) if given is not None else ("/docs",) if text else ("/docs", "")
    lead = bases[0]
    versions = _json_strings(_text(read, _join(root, "versions.json")))
    for index, version in enumerate(versions):
        prefix = lead if index == 0 else f"{lead}/{version}"
        mounts.append((_join(root, f"versioned_docs/version-{version}"), prefix, version, ""))
    languages = {
        name[len(_join(root, "i18n")) + 1 :].split("/", 1)[0] for name in files if _within(name, _join(root, "i18n"))
    }
    for language in sorted(languages):
        at = _join(root, "i18n", language, "docusaurus-plugin-content-docs")
        mounts.append((f"{at}/current", f"/{language}{lead}", "", language))
        mounts.extend((f"{at}/version-{v}", f"/{language}{lead}" + ("" if v == versions[0] else f"/{v}"), v, language)
                      for v in versions)  # fmt: skip
    mounts.extend((folder, base, "", "") for folder, base in routes if folder != main)
    mounts.append((_join(root, "src/pages"), "", "", ""))
    ids: list[str] = []
    for name in sorted(files):
        if dirname(name) == root and re.search(r"sidebars\.(?:[cm]?js|ts|json)$", name):
            ids.extend(_QUOTED.findall(re.sub(r"//[^\n]*", "", _text(read, name))))
    entries: dict[str, NavEntry] = {}
    for page_id in ids:
        path = next((p for s in (".md", ".mdx") if (p := _join(main, page_id) + s) in files), None)
        if path is not None and path not in entries:
            entries[path] = NavEntry(len(entries))
    keeps = "numberPrefixParser: false" in text or any(_NUMBER.match(page_id.rpartition("/")[2]) for page_id in ids)
    if versions and text and "includeCurrentVersion: false" not in text:
        lead = f"{bases[0]}/next"
        bases = (lead,)
    return Layout(
        "docusaurus", docs_folder, main, Dialect(mdx=True), bases, entries, mounts=tuple(mounts), keep_numbers=keeps
    )  # fmt: skip


def _json_strings(text: str) -> list[str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [value for value in values if isinstance(value, str)][:200] if isinstance(values, list) else []


def _mkdocs(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    text = _text(read, config)
    try:
        settings = load_strings(text)
    except ValueError:
        settings = {}
    if not isinstance(settings, dict):
        return None
    docs = _join(root, normpath(str(settings.get("docs_dir") or "docs")))
    entries: dict[str, NavEntry] = {}
    stack: list[tuple[str, object]] = [("", settings.get("nav"))]
    for _ in range(100_000):
        if not stack:
            break
        title, node = stack.pop()
        if isinstance(node, str):
            path = _join(docs, node)
            if path in files and path not in entries:
                entries[path] = NavEntry(len(entries), title)
        elif isinstance(node, list):
            stack.extend(("", item) for item in reversed(node))
        elif isinstance(node, dict):
            stack.extend((str(key), value) for key, value in reversed(node.items()))
    excluded = settings.get("exclude_docs")
    lines = excluded.splitlines()[:500] if isinstance(excluded, str) else []
    ignored = tuple(p for line in lines if (p := _ignore_pattern(line.strip(), docs)) is not None)
    folders = (root, docs, *(_join(root, normpath(one)) for one in _BASE_PATH.findall(text)[:10]))
    return Layout(
        "mkdocs", docs_folder, docs, Dialect(slugs=_mkdocs_slugs(text)), ("",), entries, ignored=ignored,
        include_folders=tuple(dict.fromkeys(folders)),
    )  # fmt: skip


_BASE_PATH = re.compile(r"base_path:[ \t]*\[?[ \t]*[\"']?([\w./-]{1,200})")


def _mkdocs_slugs(text: str) -> SlugStyle:
    """What the ``toc`` extension is told to make anchors with."""
    if re.search(r"slugify:\s*!!python/\S*pymdownx\.slugs", text):
        return "pymdownx"
    return "python-unicode" if re.search(r"slugify:\s*!!python/\S*slugify_unicode", text) else "python"


def _hugo(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = re.sub(r"/?config/_default$", "", dirname(config))
    content = _join(root, "content")
    if not any(_within(name, content) for name in files):
        return None
    default = ""
    text = _text(read, config)
    try:
        settings = load_toml(text) if config.endswith(".toml") else load_strings(text)
        if isinstance(settings, dict):
            default = str(settings.get("defaultContentLanguage") or settings.get("defaultcontentlanguage") or "")
    except (ValueError, RecursionError):
        pass  # its defaults then
    found = re.search(r"autoHeadingIDType[\"']?\s*[:=]\s*[\"']?([\w-]{1,30})", text, re.IGNORECASE)
    return _hugo_layout(content, files, docs_folder, default, _HUGO_SLUGS.get(found[1] if found else "", "hugo"))


_HUGO_SLUGS: Mapping[str, SlugStyle] = {"github-ascii": "hugo-ascii", "blackfriday": "blackfriday"}


def _hugo_by_folders(files: frozenset[str], docs_folder: str) -> Layout | None:
    """Without its configuration Hugo is known by ``content`` and its ``_index.md``."""
    sections = [name for name in files if _HUGO_SECTION.search(name) and _within(name, docs_folder)]
    if not sections:
        return None
    shallow = min(sections, key=lambda name: (name.count("/"), name))
    content = shallow[: shallow.index("content/") + len("content")]
    return _hugo_layout(content, files, docs_folder, "", "hugo")


def _hugo_layout(content: str, files: frozenset[str], docs_folder: str, default: str, slugs: SlugStyle) -> Layout:
    inside = {name[len(content) + 1 :].split("/", 1)[0] for name in files if name.startswith(content + "/")}
    languages = sorted(part for part in inside if _LANGUAGE.fullmatch(part) and part[:2].lower() in _LANGUAGES)
    default = default if default in languages or (default and not languages) else "en"
    if languages and default not in languages:
        default = languages[0]
    mounts = tuple((_join(content, part), "" if part == default else f"/{part}", "", part) for part in languages)
    return Layout(
        "hugo",
        docs_folder,
        content,
        Dialect(shortcodes=True, slugs=slugs),
        ("",),
        mounts=mounts,
        default_language=default,
    )


_TOCTREE = re.compile(
    r"^([ \t]*)(?:\.\. toctree::|```\{toctree\}|:::\{toctree\})[^\n]*\n"
    r"((?:[ \t]*\n|\1[ \t]+[^\n]*(?:\n|\Z)|[^\s`:.][^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_TOCTREE_LINE = re.compile(r"\s*(?:([^<\n]*?)\s*<([^<>\s]+)>|([^:`\s<]\S*))\s*")
MAX_TOCTREE = 20_000
"""Pages."""
_EXCLUDED = re.compile(r"^exclude_patterns\s*=\s*\[([^\]]{0,5000})\]", re.MULTILINE)


def _sphinx(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    """``conf.py`` is looked at, not run; the order of pages is that of the toctrees, from the root down."""
    root = dirname(config)
    index = next((name for s in (".rst", ".md") if (name := _join(root, f"index{s}")) in files), None)
    text = _text(read, config)[:MAX_SCRIPT]
    if index is None or not re.search(
        r"^(?:extensions|project|html_theme|master_doc|root_doc)\s*=", text, re.MULTILINE
    ):
        return None
    titles = {index: ""}
    order: dict[str, NavEntry] = {}
    stack = [index]
    while stack and len(order) < MAX_TOCTREE:
        page = stack.pop()
        if page in order:
            continue
        order[page] = NavEntry(len(order), titles[page])
        listed: list[str] = []
        for block in _TOCTREE.finditer(_text(read, page)[:MAX_SCRIPT]):
            for line in block[2].splitlines()[:2000]:
                match = _TOCTREE_LINE.fullmatch(line)
                found = _sphinx_page(match[2] or match[3], page, root, files) if match is not None else None
                if match is not None and found is not None and found not in order:
                    titles.setdefault(found, match[1] or "")
                    listed.append(found)
        stack.extend(reversed(listed))
    excluded = _EXCLUDED.search(text)
    patterns = _QUOTED_GLOB.findall(excluded[1])[:200] if excluded is not None else []
    ignored = [p for one in (*patterns, "_build", "_templates") if (p := _ignore_pattern(one, root)) is not None]
    return Layout("sphinx", docs_folder, root, Dialect(slugs="docutils"), ("",), order, ignored=tuple(ignored))


_QUOTED_GLOB = re.compile(r"['\"]([^'\"\n]{1,300})['\"]")


def _sphinx_page(target: str, page: str, root: str, files: frozenset[str]) -> str | None:
    base = root if target.startswith("/") else dirname(page)
    name = normpath(_join(base, target))
    return next((path for suffix in ("", ".rst", ".md", ".ipynb") if (path := name + suffix) in files), None)


def _mdn(files: frozenset[str], docs_folder: str) -> Layout | None:
    found = [match for name in files if (match := _MDN_FILE.search(name)) and _within(name, docs_folder)]
    if len(found) < 2:
        return None
    root = min(found[0].string[: match.start()] for match in found[:1])
    languages = sorted({match[1] for match in found})
    mounts = []
    for language in languages:
        code, _, region = language.partition("-")
        shown = f"{code}-{region.upper()}" if region else code
        mounts.append((_join(root, "files", language), f"/{shown}/docs", "", shown))
    return Layout("mdn", docs_folder, _join(root, "files"), Dialect(slugs="mdn"), ("",), mounts=tuple(mounts))


def _plain(files: frozenset[str], docs_folder: str) -> Layout:
    pages = [name for name in files if name.lower().endswith(PAGE_SUFFIXES) and _within(name, docs_folder)]
    root = docs_folder
    if not docs_folder:
        for folder in _CONTENT_ROOTS:
            if pages and sum(_within(name, folder) for name in pages) > 0.8 * len(pages):
                root = folder
                break
    else:
        root = next((r for f in _CONTENT_ROOTS[:2] if any(_within(n, r := _join(docs_folder, f)) for n in pages)), root)
    name = "/" + root.rpartition("/")[2]
    bases = ("", name) if root else ("",)
    # A README beside the pages' folder is the repository's, not the site's; with no such folder it is the front page.
    return Layout("plain", docs_folder, root, Dialect(), bases)


_READERS: Mapping[str, Callable[[str, frozenset[str], Read, str], Layout | None]] = {
    "mintlify": _mintlify,
    "docusaurus": _docusaurus,
    "mkdocs": _mkdocs,
    "hugo": _hugo,
    "sphinx": _sphinx,
}


# The site


class SiteBuilder:
    """Takes parsed pages one by one and keeps little of each, so that a large site need not be held whole."""

    def __init__(self, layout: Layout, files: Iterable[str]) -> None:
        self._layout = layout
        self._files = frozenset(files)
        self._placed: list[_Placed] = []
        self._absolute: dict[str, None] = {}

    def add(self, page: ParsedPage) -> None:
        facts = {key: _small(page.facts[key]) for key in _PLACING if key in page.facts}
        own = bool(fact(page.facts, "title", "sidebar_label", "sidebarTitle", "linkTitle"))
        self._placed.append(_Placed(page.path, page.title, own, facts, page.anchors))
        if len(self._absolute) < MAX_VOTES and len(self._layout.bases) > 1:
            self._absolute.update((_url_key(link.href), None) for link in page.links[:20] if link.href.startswith("/"))

    def site(self) -> Site:
        base = max(self._layout.bases, key=self._votes) if self._absolute else self._layout.bases[0]
        pages: dict[str, SitePage] = {}
        paths: dict[str, str] = {}
        redirects: list[tuple[str, str]] = list(self._layout.redirects.items())
        for placed in self._placed:
            page = self._page(placed, base)
            pages[page.path] = page
            paths.setdefault(_url_key(page.url), page.path)
            if page.url.endswith(".html"):
                paths.setdefault(_url_key(page.url.removesuffix(".html")), page.path)
            redirects.extend(
                (alias if alias.startswith("/") else f"{dirname(page.url)}/{alias}", page.url)
                for alias in facts_list(placed.facts, "aliases", "redirect_from")
            )
        for source, destination in redirects:
            target = paths.get(_url_key(destination.partition("#")[0]))
            if target is not None:
                paths.setdefault(_url_key(source), target)
        return Site(self._layout.kind, self._layout.docs_folder, pages, paths, self._files)

    def _votes(self, base: str) -> int:
        urls = {_url_key(self._layout.place(placed.path, placed.facts, base)[0]) for placed in self._placed}
        return sum(url in urls for url in self._absolute)

    def _page(self, placed: _Placed, base: str) -> SitePage:
        url, version, language = self._layout.place(placed.path, placed.facts, base)
        entry = self._layout.entries.get(placed.path, NavEntry(-1))
        title = (entry.title if not placed.has_own_title else "") or placed.title or _title_of(placed.path)
        mounted = bool(version) and self._layout.kind == "docusaurus"
        newest = next((mount[2] for mount in self._layout.mounts if mount[2]), "")
        return SitePage(
            path=placed.path,
            url=url,
            title=title,
            anchors=placed.anchors,
            version=fact(placed.facts, "version") or entry.version or version,
            language=fact(placed.facts, "language", "lang", "locale") or entry.language or language,
            tags=facts_list(placed.facts, "tag", "tags"),
            groups=facts_list(placed.facts, "groups"),
            order=entry.order,
            is_default=entry.is_default and (not mounted or version == newest),
        )


def make_site(layout: Layout, pages: Iterable[ParsedPage], files: Iterable[str]) -> Site:
    builder = SiteBuilder(layout, files)
    for page in pages:
        if not layout.is_hidden(page.facts):
            builder.add(page)
    return builder.site()


def read_site(files: Mapping[str, bytes], *, docs_folder: str = "") -> Site:
    """A site from its files in memory; those that cannot be read are not in it."""
    layout = detect_layout(files, files.get, docs_folder=docs_folder)
    parsed = (parse_page(data, path, layout.dialect) for path, data in files.items() if layout.is_page(path))
    return make_site(layout, (page for page in parsed if not isinstance(page, Skipped)), files)


def _title_of(path: str) -> str:
    folder, _, file = path.rpartition("/")
    name = file.rpartition(".")[0]
    if name.lower() in ("index", "_index", "readme"):
        name = folder.rpartition("/")[2] or name
    words = re.sub(r"[-_]+", " ", _NUMBER.sub("", name)).strip()
    return words[:1].upper() + words[1:]


def _clean_url(url: str) -> str:
    parts = [part for part in url.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)


def _url_key(url: str) -> str:
    return _clean_url(unquote(url.partition("#")[0].partition("?")[0])).casefold()


# Links


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_INDEX_TAIL = re.compile(r"(?:^|/)(?:index|_index|readme)$", re.IGNORECASE)


def is_external(href: str) -> bool:
    """It leaves the site: another scheme or host."""
    return _SCHEME.match(href.strip()) is not None


def resolve_link(from_path: str, href: str, site: Site) -> str | None:
    """The path of the page that a link on ``from_path`` leads to; None when it leads to none, or off the site.

    Read as sites do: from the page's file (``../a/b.md``), from its URL (``../b``), from the site's root
    (``/a/b``), with or without ``.md``, ``.mdx``, ``.html`` or a trailing slash. Query and anchor play no part; an
    anchor alone is the page itself.
    """
    href = href.strip()
    if is_external(href):
        return None
    target = unquote(href.partition("#")[0].partition("?")[0])
    if not target:
        return from_path if from_path in site.pages else None
    for candidate in _as_files(from_path, target, site):
        if candidate in site.pages:
            return candidate
    for url in _as_urls(from_path, target, site):
        path = site.paths.get(_url_key(url))
        if path is not None:
            return path
    return None


def link_problem(from_path: str, href: str, site: Site) -> str | None:
    """What is wrong with a link, as a sentence; None when it is sound or leads off the site.

    Anchors are compared without punctuation, since generators differ there.
    """
    href = href.strip()
    if is_external(href) or "{" in href or "<" in href:
        return None
    target, _, anchor = href.partition("#")
    path = resolve_link(from_path, href, site)
    if path is None:
        return None if _is_asset(from_path, target, site) else f"No page is at {target!r}."
    anchor = unquote(anchor)
    if not anchor or anchor.casefold() in ("top", "_top") or anchor.startswith((":~:", "/", "!")):
        return None
    known = site.pages[path].anchors
    if anchor in known or _loosely(anchor) in {_loosely(name) for name in known}:
        return None
    return f"{path} has no heading {anchor!r}."


def _loosely(anchor: str) -> str:
    return re.sub(r"[\W_]+", "", anchor.casefold())


def _is_asset(from_path: str, target: str, site: Site) -> bool:
    """A file that is no page; one with a suffix of its own may lie where the archive does not reach."""
    suffix = target.rpartition("/")[2].partition("?")[0].rpartition(".")[2].lower()
    if "." not in target.rpartition("/")[2] or f".{suffix}" in SUFFIXES:
        return any(candidate in site.files for candidate in _as_files(from_path, target, site))
    return suffix not in ("html", "htm")


def _as_files(from_path: str, target: str, site: Site) -> Iterable[str]:
    folders = ["", site.docs_folder] if target.startswith("/") else [dirname(from_path)]
    if target.startswith("/"):
        folders.append(dirname(site.docs_folder))
    for folder in dict.fromkeys(folders):
        joined = normpath(f"{folder}/{target.lstrip('/')}" if folder else target.lstrip("/"))
        if joined.startswith("../") or joined == "..":
            continue
        joined = "" if joined == "." else joined
        yield joined
        for suffix in SUFFIXES:
            yield joined + suffix
        for suffix in SUFFIXES:
            for name in ("index", "_index", "README", "readme"):
                yield f"{joined}/{name}{suffix}" if joined else f"{name}{suffix}"


def _as_urls(from_path: str, target: str, site: Site) -> Iterable[str]:
    bare = re.sub(r"\.(?:mdx?|markdown|html?|rst|ipynb)$", "", target, flags=re.IGNORECASE)
    bare = _INDEX_TAIL.sub("", bare) or "/"
    if target.startswith("/"):
        yield target
        yield bare
        return
    page = site.pages.get(from_path)
    if page is None:
        return
    for base in (dirname(page.url), page.url):  # without and with a slash at the end of the page's own address
        for each in (target, bare):
            yield normpath(f"{base}/{each}")
