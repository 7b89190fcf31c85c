"""A site's rules: which files are its pages, and where it shows them. ``detection`` finds them, ``navigation`` asks."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from posixpath import dirname, normpath
from typing import Literal

from msgspec import Struct, json
from msgspec.structs import replace

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import FrontMatter, is_true, text_field
from service.markup.pages import INDEXED_SUFFIXES, MARKDOWN_SUFFIXES, PAGE_SUFFIXES
from service.retrieval.readers.sphinx.facts import NO_FACTS, SphinxFacts
from service.retrieval.site.documents import DocumentSet
from service.retrieval.site.generators.hugo.addresses import HugoRules
from service.retrieval.site.ignore_files import IgnoreRules
from service.retrieval.site.link_rules import UNKNOWN, LinkRules

Kind = Literal[
    "mintlify", "docusaurus", "mkdocs", "hugo", "sphinx", "mdn", "vitepress", "starlight", "nextra", "gitbook",
    "mdbook", "antora", "jekyll", "fumadocs", "plain",
]  # fmt: skip
GENERATORS: Mapping[Kind, str] = {
    "mintlify": "Mintlify", "docusaurus": "Docusaurus", "mkdocs": "MkDocs", "hugo": "Hugo", "sphinx": "Sphinx",
    "mdn": "MDN", "vitepress": "VitePress", "starlight": "Starlight", "nextra": "Nextra", "gitbook": "GitBook",
    "mdbook": "mdBook", "antora": "Antora", "plain": "No site generator",
}  # fmt: skip
"""Names for people."""
Read = Callable[[str], bytes | None]
Mount = tuple[str, str, str, str]
"""Folder, URL prefix, version, language."""

SHOWN_ON = "Shown on "
"""The beginning of the reason why a file is no page that readers see on one."""
MAX_CONFIG_BYTES = 4 << 20
MAX_FACT = 500
MAX_SCRIPT = 100_000
"""Characters of a configuration in JavaScript, which is only searched, not run."""


class NavEntry(Struct, frozen=True):
    """The facts that the site's navigation states about a page."""

    order: int
    title: str = ""
    version: str = ""
    language: str = ""
    is_default: bool = True
    """Whether the page is in the version and language that a reader sees first."""
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of readers; empty means everyone."""


class Layout(Struct, frozen=True, dict=True):
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
    ignored: IgnoreRules = IgnoreRules()
    """Rules for paths below ``root``."""
    mounts: tuple[Mount, ...] = ()
    """Further folders of pages; the first that fits."""
    documents: tuple[DocumentSet, ...] = ()
    """Folders of pages whose ids and addresses front matter gives; the deepest that holds a page."""
    default_language: str = ""
    descriptions: frozenset[str] = frozenset()
    """Files of OpenAPI."""
    made_pages: Mapping[str, tuple[str, str]] = {}
    """Addresses of pages that the build makes of an operation, with the file of its description and its key, as
    ``get /users``.
    """
    shown: frozenset[str] = frozenset()
    """Operations that pages of their own show, as ``get /users``."""
    addresses: Mapping[str, str] = {}
    """URLs that are known already, by path."""
    include_folders: tuple[str, ...] = ()
    """Where files that pages include are looked for first."""
    appended: tuple[str, ...] = ()
    """Files that every page shows at its end."""
    missing_entries: tuple[str, ...] = ()
    """Pages that the navigation names and that do not exist, as it names them."""
    hidden_pages: Mapping[str, str] = {}
    """Files that are no pages, by path, and why."""
    shown_on: Mapping[str, str] = {}
    """Those of them that readers see on a page, and that page."""
    hugo: HugoRules | None = None
    html_suffix: bool = False
    """Whether the addresses of pages end in ``.html``."""
    moved: Mapping[str, str] = {}
    """By path, the path that a page's address is made from instead."""
    link_prefix: str = ""
    """The beginning of all addresses that links on pages leave out."""
    sphinx: SphinxFacts = NO_FACTS
    language_suffixes: tuple[str, ...] = ()
    """Languages that may follow the name of a page, as in ``page.de.md``."""
    links: LinkRules = UNKNOWN
    """How links are read."""

    @cached_property
    def content_paths(self) -> Mapping[tuple[str, str], str]:
        """Files of Hugo by language and logical path, also those that are no pages of their own."""
        rules = self.hugo
        every = [*self.hidden_pages, *self.entries] if rules is not None else []
        placed = [(path, rules.content_page(path)) for path in every] if rules is not None else []
        return {(at.language, at.path): path for path, at in placed if at is not None}

    @cached_property
    def files_shown(self) -> Mapping[str, Sequence[str]]:
        """The files of ``shown_on`` by page."""
        found: dict[str, list[str]] = {}
        for path, page in sorted(self.shown_on.items()):
            found.setdefault(page, []).append(path)
        return found

    @property
    def reading(self) -> tuple[object, ...]:
        """Return all that the text of pages depends on: two layouts that agree here make the same page of the same
        file.
        """
        return (
            self.kind, self.root, self.docs_folder, self.dialect, self.include_folders, self.appended,
            self.descriptions, self.shown, self.made_pages,
            replace(self.sphinx, titles={}),  # words of references may be older; pages need not be read again
            (self.hugo.params, self.hugo.templates, self.hugo.glossaries) if self.hugo is not None else None,
        )  # fmt: skip

    def is_page(self, path: str) -> bool:
        """Return whether a file is a page, by its name alone; front matter may still hide it (``is_hidden``)."""
        return self.why_excluded(path) == ""

    def why_excluded(self, path: str) -> str | None:
        """Return why a file that looks like a page is none; empty for a page, None for other files."""
        if path not in self._reasons:
            self._reasons[path] = self._why_excluded(path)
        return self._reasons[path]

    @cached_property
    def _reasons(self) -> dict[str, str | None]:
        """Results of ``why_excluded`` by path: indexing goes through the files of a site twice."""
        return {}

    def _why_excluded(self, path: str) -> str | None:
        if path in self.descriptions:
            return ""
        lowered = path.lower()
        if not lowered.endswith(PAGE_SUFFIXES) or not within(path, self.docs_folder):
            return None
        if not lowered.endswith(_SUFFIXES.get(self.kind, MARKDOWN_SUFFIXES)):
            if lowered.endswith((".html", ".htm")):  # what is built, and parts of themes
                return None
            if lowered.endswith(".adoc"):
                return "AsciiDoc is not read."
            return f"The site's generator makes no pages of .{lowered.rpartition('.')[2]} files."
        folder = self.unseen_folder(path)
        if folder:
            return _UNSEEN[folder.rpartition("/")[2].startswith(".")]
        if path in self.hidden_pages:
            return self.hidden_pages[path]
        inside = self._mounted(path)
        if inside is None:
            if lowered.endswith((".html", ".htm")):
                return None
            return f"Outside {self.root or 'the documentation'}, where the site has its pages."
        documents = self.document_set(path)
        excluded = documents.why_excluded(path[len(documents.folder) :].lstrip("/")) if documents is not None else ""
        if excluded:
            return excluded
        if path in self.entries:
            return ""
        if _UNSEEN_NAMES.fullmatch(path.rpartition("/")[2]):
            return "Files of this name are for those who work on the repository."
        unseen = _UNSEEN_PATHS.get(self.kind)
        if unseen is not None and unseen[0].search(path):
            return unseen[1]
        if self.ignored.ignores(path[len(self.root) :].lstrip("/") if within(path, self.root) else inside[1]):
            return f"Excluded by {self.ignored.file}." if self.ignored.file else "Excluded by the site's configuration."
        return ""

    def unseen_folder(self, path: str) -> str:
        """Return the folder above a file that holds no pages, such as ``node_modules``; empty where there is none.

        The packages of others in ``vendor`` lie beside the folder of the pages, or in a repository that is no site.
        """
        begin = len(self.docs_folder) + 1 if self.docs_folder and within(path, self.docs_folder) else 0
        is_found = False
        at = path.find("/", begin)
        while at >= 0:
            name = path[begin:at]
            if name.startswith(".") or name in DEPENDENCY_FOLDERS:
                return path[:at]
            is_found = is_found or name == VENDORED
            begin, at = at + 1, path.find("/", at + 1)
        if not is_found or self._holds_pages(path):
            return ""
        return path[: f"/{path}".index(f"/{VENDORED}/") + len(VENDORED)]

    def _holds_pages(self, path: str) -> bool:
        """Return whether a file is below a folder that is known to be one of documentation."""
        if self.kind != "plain":
            return self._mounted(path) is not None
        folder = self.root or self.docs_folder
        return bool(folder) and within(path, folder)

    def _mounted(self, path: str) -> tuple[tuple[str, str, str], str] | None:
        """URL prefix, version and language, and the path below the folder that gives them."""
        if self.mounts:
            numbers = self._mount_numbers
            above = (path[:end] for end in self._mount_lengths if path[end : end + 1] in ("", "/") or not end)
            number = min((numbers[folder] for folder in above if folder in numbers), default=-1)
            if number >= 0:
                folder, prefix, version, language = self.mounts[number]
                return (prefix, version, language), path[len(folder) :].lstrip("/")
        if within(path, self.root):
            return ("\0", "", ""), path[len(self.root) :].lstrip("/")
        return None

    def document_set(self, path: str) -> DocumentSet | None:
        """Return the documents that a page is one of."""
        if not self.documents:
            return None
        return next((self._sets[folder] for folder in _above(path) if folder in self._sets), None)

    @cached_property
    def _sets(self) -> Mapping[str, DocumentSet]:
        return {each.folder: each for each in reversed(self.documents)}

    def below_mount(self, path: str) -> tuple[str, str]:
        """Return the prefix of the addresses where a page is mounted, NUL for the site's, and the path below it."""
        documents = self.document_set(path)
        if documents is not None:
            return documents.route, path[len(documents.folder) :].lstrip("/")
        mounted = self._mounted(path)
        return ("\0", path) if mounted is None else (mounted[0][0], mounted[1])

    @cached_property
    def _mount_numbers(self) -> Mapping[str, int]:
        """Numbers of the mounts by folder, so that not all versions and languages are searched for each page."""
        return {mount[0]: number for number, mount in reversed(tuple(enumerate(self.mounts)))}

    @cached_property
    def _mount_lengths(self) -> tuple[int, ...]:
        """The few lengths that names of mounts have: fewer than a path has folders."""
        return tuple({len(folder) for folder in self._mount_numbers})

    def resolve_url(self, path: str, front_matter: FrontMatter, base: str) -> tuple[str, str, str]:
        """Return URL, version and language of a page."""
        if path in self.addresses:
            return self.addresses[path], "", ""
        if path in self.descriptions:
            return self._address_of_description(path), "", ""
        documents = self.document_set(path)
        if documents is not None:
            address = documents.address(path[len(documents.folder) :].lstrip("/"), front_matter, base)
            return clean_url(address), documents.version, documents.language
        path = self.moved.get(path, path)
        of_hugo = self.hugo.resolve(path, front_matter) if self.hugo is not None else None
        if of_hugo is not None:
            url, language = clean_url(of_hugo[0]), of_hugo[1]
            first = self.below_mount(path)[1].rpartition("/")[0].partition("/")[0]
            return (
                url,
                first if VERSION.fullmatch(first) else "",
                self.entries[path].language if path in self.entries else language,
            )
        mounted = self._mounted(path)
        if mounted is None:  # a page that only navigation knows
            mounted = ("\0", "", ""), path
        (prefix, version, language), inside = mounted
        place = _Place(path, base if prefix == "\0" else prefix, version, language, *_named(inside))
        if self.language_suffixes:
            place = self._by_suffix(place)
        place = _with_nested(place)
        return clean_url(self._address(place, front_matter)), place.version, place.language

    def _by_suffix(self, place: "_Place") -> "_Place":
        name, _, language = place.name.rpartition(".")
        if language not in self.language_suffixes:
            return replace(place, language=place.language or self.default_language)
        own = "" if place.prefix == "\0" else place.prefix
        prefix = own if language == self.default_language else f"/{language}{own}"
        return replace(place, name=name, prefix=prefix, language=language)

    def _address(self, place: "_Place", front_matter: FrontMatter) -> str:
        """Return the page's address: the one its front matter gives, else that of its folders and name."""
        if self.kind in _BY_FILE:
            return "/".join([place.prefix, *place.folders, self._tail(place)])
        whole = text_field(front_matter, "slug", "url", "permalink")
        if whole.startswith("/") and ":" not in whole:
            return whole
        slug = text_field(front_matter, "slug")
        if self.kind == "mdn" and whole:
            return f"{place.prefix}/{slug}"
        tail = slug.strip("/") if slug and self.kind != "mdn" else self._tail(place)
        return "/".join([place.prefix, *place.folders, tail])

    def _tail(self, place: "_Place") -> str:
        """Return the last part of a page's address; empty for the page of a folder."""
        is_index = self._is_index(place.name)
        if self.html_suffix:
            if is_index and self.kind in _FOLDER_ADDRESSES:
                return ""
            is_home = is_index and not place.folders and not place.prefix
            return "" if is_home else f"{'index' if is_index else place.name}.html"
        if is_index:
            return ""
        is_html = place.path.lower().endswith((".html", ".htm"))
        return place.path.rpartition("/")[2] if is_html and self.kind == "plain" else place.name

    def _address_of_description(self, path: str) -> str:
        """Sites serve the file itself; those that keep such files in a folder of their own, from their root."""
        inside = path[len(self.root) :] if within(path, self.root) else path
        above = dirname(self.root)
        for folder in (join_path(above, "static"), join_path(above, "public")):
            if within(path, folder):
                inside = path[len(folder) :]
        return clean_url(inside)

    def _is_index(self, name: str) -> bool:
        if self.kind in _BY_FILE:
            return name in _BY_FILE[self.kind]
        lowered = name.lower()
        return lowered in ("index", "_index") or (lowered == "readme" and self.kind != "mintlify")

    def included(self, path: str, target: str) -> tuple[str, ...]:
        """Return where a file that a page imports may lie: from the site's root (``/a.mdx``, ``@site/a.mdx``), a folder
        above it (``@/a.mdx``) or its own.
        """
        target = target.replace("@site/", "/", 1)
        if len(target) > MAX_FACT or "\0" in target:
            return ()
        if self.kind == "vitepress" and target.startswith("@"):
            found = normpath(f"{self.root}/{target[1:]}".lstrip("/"))
            return () if found.startswith("..") else (found,)
        if target.startswith(("@/", "~/")):  # by custom the folder of the program, which is above that of the pages
            return tuple(join_path(folder, normpath(target[2:])) for folder in _above(self.root))
        joined = (normpath(f"{folder}/{target}" if folder else target) for folder in self.include_folders)
        first = tuple(path for path in joined if not path.startswith(("..", "/")))
        if self.kind == "docusaurus" and not target.startswith("/"):
            first = ()  # the folder is that of ``@site``
        if not target.startswith("/"):
            found = normpath(f"{dirname(path)}/{target}".lstrip("/"))
            return first if found.startswith("..") else (*first, found)
        folders = dict.fromkeys((self.root, dirname(self.root), self.docs_folder, ""))
        return (*first, *(join_path(folder, normpath(target)) for folder in folders))

    def is_hidden(self, front_matter: FrontMatter) -> bool:
        if is_unsearched(front_matter):
            return True
        if self.kind == "vitepress" and text_field(front_matter, "search").lower() == "false":
            return True
        search = front_matter.get("search")
        if self.kind == "mkdocs" and isinstance(search, dict) and is_true(search, "exclude"):  # Material's
            return True
        build = front_matter.get("_build") or front_matter.get("build")
        return isinstance(build, dict) and text_field(build, "render").lower() in ("never", "false")


def is_unsearched(front_matter: FrontMatter) -> bool:
    """Return whether front matter keeps a text from readers, or from search, whatever the generator."""
    return (
        is_true(front_matter, "draft", "hidden", "unlisted", "headless", "search_exclude")
        or text_field(front_matter, "published").lower() == "false"
        or text_field(front_matter, "searchable").lower() == "false"
    )


class _Place(Struct, frozen=True):
    """Where a page is: what its address is made from."""

    path: str
    prefix: str
    version: str
    language: str
    folders: Sequence[str]
    name: str
    """Without its suffix."""


def _named(inside: str) -> tuple[list[str], str]:
    folder, _, file = inside.rpartition("/")
    return [part for part in folder.split("/") if part], file.rpartition(".")[0]


def _with_nested(place: _Place) -> _Place:
    """Return the place with the version or language that its first folder is named after."""
    first = place.folders[0] if place.folders else ""
    is_language = LANGUAGE.fullmatch(first) and first[:2].lower() in LANGUAGES
    language = place.language or (first if is_language else "")
    return replace(place, language=language, version=place.version or (first if VERSION.fullmatch(first) else ""))


def encode_layout(layout: Layout) -> str:
    return _ENCODER.encode(layout).decode()


def decode_layout(text: str) -> Layout:
    """Raises ValueError for what ``encode_layout`` did not write."""
    return _DECODER.decode(text)


_ENCODER = json.Encoder(order="deterministic")
_DECODER = json.Decoder(Layout)


_SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "plain": INDEXED_SUFFIXES,
    "sphinx": (*MARKDOWN_SUFFIXES, ".rst", ".ipynb"),
    "mkdocs": (*MARKDOWN_SUFFIXES, ".ipynb"),
    "hugo": (*MARKDOWN_SUFFIXES, ".html"),
    "vitepress": (".md",),
    "mdbook": (".md",),
}
"""Suffixes of the files that each generator turns into pages; Markdown only for the others."""
DEPENDENCY_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages", "bower_components"))
"""Folders for the packages of others, wherever they are."""
VENDORED = "vendor"
"""Such a folder where it is not among the pages of a site."""
_UNSEEN = ("Folders of this name hold packages of others.", "Folders whose names begin with a dot are not read.")
_BY_FILE: Mapping[Kind, tuple[str, ...]] = {
    "mkdocs": ("index", "README"), "sphinx": ("index",), "vitepress": ("index",), "mdbook": ("index", "README"),
    "gitbook": ("README", "readme"), "nextra": ("index",), "antora": ("index",),
}  # fmt: skip
"""Generators whose addresses only the names of files decide, not front matter, and the names of a folder's own page."""
_FOLDER_ADDRESSES: frozenset[Kind] = frozenset(("vitepress", "gitbook"))
"""Generators whose addresses of folders end in a slash where those of pages end in ``.html``."""
_UNSEEN_NAMES = re.compile(
    r"(?:LICEN[CS]E|CODE_OF_CONDUCT|AGENTS|CLAUDE|GEMINI|SKILL|PULL_REQUEST_TEMPLATE|ISSUE_TEMPLATE)\.\w+"
)
"""Files for those who work on the repository; in lower case such a name is a page's."""
_UNSEEN_PATHS: Mapping[Kind, tuple[re.Pattern[str], str]] = {
    "mintlify": (
        re.compile(r"(?:^|/)(?:README|CONTRIBUTING|CHANGELOG|SECURITY)\.mdx?$|(?:^|/)_?snippets/", re.IGNORECASE),
        "The site's generator shows files of this name only where the navigation names them.",
    ),
    "vitepress": (re.compile(r"\[\w+\]"), "A program makes pages from it: their addresses and texts are not known."),
}
"""Files that a generator does not show under their own names unless its navigation names them, and why."""
LANGUAGE = re.compile(r"[A-Za-z]{2}(?:[-_][A-Za-z]{2,4})?")
LANGUAGES = frozenset(
    """
    ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nb nl no pl pt ro ru sk sl sr sv th tr
    uk ur vi zh
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
VERSION = re.compile(r"v\d+(?:[.-]\w+)*|\d+(?:\.(?:\d+|x))+")
NUMBER = re.compile(r"^\d+\s*[-_.]+\s*(?=\D)")


def read_text(read: Read, name: str) -> str:
    """Return a configuration's text; empty when it is not there."""
    data = read(name) or b""
    return data[:MAX_CONFIG_BYTES].decode("utf-8", "replace")


def within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def _above(path: str) -> Iterator[str]:
    """The path, and each folder above it."""
    at = len(path)
    while at >= 0:
        yield path[:at]
        at = path.rfind("/", 0, at)
    yield ""


def join_path(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def clean_url(url: str) -> str:
    parts = [part for part in url.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)
