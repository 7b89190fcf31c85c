"""Which generator makes a site, by its configuration, and what that says. No configuration is run: those in Python and
JavaScript are searched. A generator's rules, where they were read:

- Mintlify, Docusaurus: in modules of their own.
- MkDocs: ``docs_dir``, ``nav`` (mkdocs.org/user-guide/configuration). Hugo: ``content``, a language's folder or suffix,
  ``_index.md``, ``url``, ``slug``, ``aliases``, lower case (gohugo.io/content-management/urls). MDN:
  ``files/<locale>``, ``slug`` in full.
- Plain: a page is where its file is; README and index are their folder's page; a ``slug`` or ``permalink`` from ``/``
  rules.
- Sphinx: ``conf.py`` beside ``index``, toctrees, pages end in ``.html`` (sphinx-doc.org/en/master/usage/configuration).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, normpath

from msgspec.structs import replace

from service.markup.blocks import blocks_of
from service.markup.dialects import Dialect
from service.markup.front_matter import load_strings, load_toml
from service.markup.pages import INDEXED_SUFFIXES, is_markdown
from service.markup.slugs import SlugStyle
from service.retrieval.readers.openapi_pages import is_description, operation_named
from service.retrieval.site.docusaurus import docusaurus
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import (
    LANGUAGE,
    LANGUAGES,
    MAX_FACT,
    MAX_SCRIPT,
    UNSEEN_FOLDERS,
    Kind,
    Layout,
    NavEntry,
    Read,
    clean_url,
    join_path,
    read_text,
    within,
)
from service.retrieval.site.mintlify import mintlify

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
_CONFIG_NAMES = ("docs.", "mint.", "docusaurus.", "sidebars.", "mkdocs.", "conf.", "hugo.", "config.")
"""Beginnings of the names of all of these: so only few files are compared with each pattern."""
_MDN_FOLDER = re.compile(r"(?:^|/)files/([a-z]{2}(?:-[a-z]{2})?)/")
_HUGO_SECTION = re.compile(r"_index(?:\.[a-z-]+)?\.md")
_CONTENT_ROOTS = ("src/content/docs", "content/docs", "content", "docs", "doc", "documentation", "src/pages", "pages")


_OPENAPI_NAME = re.compile(r"openapi|swagger", re.IGNORECASE)
_SHOWS = re.compile(rb"^openapi(?:-schema)?[ \t]*:[ \t]*([^\n]{1,500})", re.MULTILINE)
OWN_INSTRUCTIONS = ".docsmith/assistant.md"
"""The site owner's word to the assistant."""
MAX_LOOKED_AT = 300
"""JSON and YAML files."""
MAX_CONFIGS = 20
"""Limit for the configurations of one generator that are tried, the nearest to the documentation first: for each of
them, all files are looked at.
"""


def detect_layout(names: Iterable[str], read: Read, *, docs_folder: str = "") -> Layout:
    """The rules of the site among these files. ``read`` gives a configuration's bytes."""
    files = frozenset(names)
    docs_folder = docs_folder.strip("/")
    layout = _by_files(files, read, docs_folder)
    descriptions = frozenset(_descriptions(layout, files, read))
    if not descriptions:
        return layout
    return replace(layout, descriptions=descriptions, shown=frozenset(_shown(layout, files, read)))


def is_configuration(path: str) -> bool:
    """Return whether a file of this name may say something of a site, or be the description of an API."""
    name = path.rpartition("/")[2]
    if name == ".mintignore" or path == OWN_INSTRUCTIONS or path.endswith(f"/{OWN_INSTRUCTIONS}"):
        return True
    if _OPENAPI_NAME.search(name) and name.lower().endswith((".json", ".yaml", ".yml")):
        return True
    return any(pattern.search(path) for _, pattern in _CONFIGS)


def _descriptions(layout: Layout, files: frozenset[str], read: Read) -> Iterator[str]:
    """Files of OpenAPI among the documentation, by what they begin with."""
    looked = 0
    for name in sorted(files, key=lambda one: (_OPENAPI_NAME.search(one) is None, one)):
        if not name.lower().endswith((".json", ".yaml", ".yml")) or not within(name, layout.docs_folder):
            continue
        if any(part.startswith(".") or part in UNSEEN_FOLDERS for part in name.split("/")):
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
    configs = [name for name in files if name[name.rfind("/") + 1 :].startswith(_CONFIG_NAMES)]
    for kind, pattern in _CONFIGS:
        found = [name for name in configs if pattern.search(name) and _related(dirname(name), docs_folder)]
        for config in sorted(found, key=lambda name: (_distance(dirname(name), docs_folder), name))[:MAX_CONFIGS]:
            if any(part.startswith(".") or part in UNSEEN_FOLDERS for part in config.split("/")):
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
    return within(folder, docs_folder) or within(docs_folder, folder)


def _distance(folder: str, docs_folder: str) -> int:
    """The nearest configuration rules: first in or under the documentation, then above it."""
    depth = folder.count("/") + bool(folder)
    own = docs_folder.count("/") + bool(docs_folder)
    return depth - own if depth >= own else 100 + own - depth


WEBSITE = ".docsmith/website.json"
"""The file with the addresses and titles of a live site's pages: ``{path: {url, title}}``."""


def _website(files: frozenset[str], read: Read) -> Layout:
    try:
        told = json.loads(read_text(read, WEBSITE))
    except (ValueError, RecursionError):
        told = {}
    addresses: dict[str, str] = {}
    entries: dict[str, NavEntry] = {}
    for path, page in told.items() if isinstance(told, dict) else ():
        if path in files and isinstance(page, dict) and isinstance(page.get("url"), str):
            addresses[path] = clean_url(page["url"])
            entries[path] = NavEntry(len(entries), str(page.get("title") or "")[:MAX_FACT])
    return Layout("plain", "", "", Dialect(), ("",), entries, addresses=addresses)


def _mkdocs(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    text = read_text(read, config)
    try:
        settings = load_strings(text)
    except ValueError:
        settings = {}
    if not isinstance(settings, dict):
        return None
    docs = join_path(root, normpath(str(settings.get("docs_dir") or "docs")))
    entries: dict[str, NavEntry] = {}
    stack: list[tuple[str, object]] = [("", settings.get("nav"))]
    for _ in range(100_000):
        if not stack:
            break
        title, node = stack.pop()
        if isinstance(node, str):
            path = join_path(docs, node)
            if path in files and path not in entries:
                entries[path] = NavEntry(len(entries), title)
        elif isinstance(node, list):
            stack.extend(("", item) for item in reversed(node))
        elif isinstance(node, dict):
            stack.extend((str(key), value) for key, value in reversed(node.items()))
    excluded = settings.get("exclude_docs")
    ignored = ignore_rules(excluded.splitlines() if isinstance(excluded, str) else (), file=config)
    folders = (root, docs, *(join_path(root, normpath(one)) for one in _BASE_PATH.findall(text)[:10]))
    return Layout(
        "mkdocs", docs_folder, docs, Dialect(slugs=_mkdocs_slugs(text)), ("",), entries, ignored=ignored,
        include_folders=tuple(dict.fromkeys(folders)),
    )  # fmt: skip


_BASE_PATH = re.compile(r"base_path:[ \t]*+(?:\[[ \t]*+)?[\"']?([\w./-]{1,200})")


def _mkdocs_slugs(text: str) -> SlugStyle:
    """Return the style of anchors that the ``toc`` extension is set to."""
    if re.search(r"slugify:\s*!!python/\S{0,200}pymdownx\.slugs", text):
        return "pymdownx"
    return "python-unicode" if re.search(r"slugify:\s*!!python/\S{0,200}slugify_unicode", text) else "python"


def _hugo(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = re.sub(r"/?config/_default$", "", dirname(config))
    content = join_path(root, "content")
    if not any(within(name, content) for name in files):
        return None
    default = ""
    text = read_text(read, config)
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
    return _hugo_layout(content, files, docs_folder, "", "hugo")


def _hugo_layout(content: str, files: frozenset[str], docs_folder: str, default: str, slugs: SlugStyle) -> Layout:
    inside = {name[len(content) + 1 :].split("/", 1)[0] for name in files if name.startswith(content + "/")}
    languages = sorted(part for part in inside if LANGUAGE.fullmatch(part) and part[:2].lower() in LANGUAGES)
    default = default if default in languages or (default and not languages) else "en"
    if languages and default not in languages:
        default = languages[0]
    mounts = tuple((join_path(content, part), "" if part == default else f"/{part}", "", part) for part in languages)
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
    r"^([ \t]*)(?:\.\. toctree::|:::\{toctree\})[^\n]*\n"
    r"((?:[ \t]*\n|\1[ \t]+[^\n]*(?:\n|\Z)|[^\s`:.][^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_TOCTREE_LINE = re.compile(r"([^<\n]*)<([^<>\s]+)>|([^:`\s<]\S*)")
MAX_TOCTREE = 20_000
"""Pages."""
_EXCLUDED = re.compile(r"^exclude_patterns\s*=\s*\[([^\]]{0,5000})\]", re.MULTILINE)


def _sphinx(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    """``conf.py`` is looked at, not run; the order of pages is that of the toctrees, from the root down."""
    root = dirname(config)
    index = next((name for s in (".rst", ".md") if (name := join_path(root, f"index{s}")) in files), None)
    text = read_text(read, config)[:MAX_SCRIPT]
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
        for block in toctrees(page, read_text(read, page)[:MAX_SCRIPT]):
            for line in block.splitlines()[:2000]:
                match = _TOCTREE_LINE.fullmatch(line.strip())
                found = _sphinx_page(match[2] or match[3], page, root, files) if match is not None else None
                if match is not None and found is not None and found not in order:
                    titles.setdefault(found, (match[1] or "").rstrip())
                    listed.append(found)
        stack.extend(reversed(listed))
    excluded = _EXCLUDED.search(text)
    patterns = _QUOTED_GLOB.findall(excluded[1]) if excluded is not None else []
    ignored = ignore_rules((*patterns, "_build", "_templates"), file=config)
    return Layout("sphinx", docs_folder, root, Dialect(slugs="docutils"), ("",), order, ignored=ignored)


def toctrees(path: str, text: str) -> Iterator[str]:
    """Yield the text of each list of pages in a page of Sphinx, one page a line."""
    if is_markdown(path) and "{toctree}" in text:
        yield from (block.text for block in blocks_of(text) if block.info.startswith("{toctree}"))
    yield from (block[2] for block in _TOCTREE.finditer(text))


_QUOTED_GLOB = re.compile(r"['\"]([^'\"\n]{1,300})['\"]")


def _sphinx_page(target: str, page: str, root: str, files: frozenset[str]) -> str | None:
    base = root if target.startswith("/") else dirname(page)
    name = normpath(join_path(base, target))
    return next((path for suffix in ("", ".rst", ".md", ".ipynb") if (path := name + suffix) in files), None)


def _mdn(files: frozenset[str], docs_folder: str) -> Layout | None:
    pages = [name for name in files if name.endswith("index.md") and within(name, docs_folder)]
    found = [match for name in pages if (match := _MDN_FOLDER.search(name))]
    if len(found) < 2:
        return None
    root = min(found[0].string[: match.start()] for match in found[:1])
    languages = sorted({match[1] for match in found})
    mounts = []
    for language in languages:
        code, _, region = language.partition("-")
        shown = f"{code}-{region.upper()}" if region else code
        mounts.append((join_path(root, "files", language), f"/{shown}/docs", "", shown))
    return Layout("mdn", docs_folder, join_path(root, "files"), Dialect(slugs="mdn"), ("",), mounts=tuple(mounts))


def _plain(files: frozenset[str], docs_folder: str) -> Layout:
    pages = [name for name in files if name.lower().endswith(INDEXED_SUFFIXES) and within(name, docs_folder)]
    root = docs_folder
    if not docs_folder:
        for folder in _CONTENT_ROOTS:
            if pages and sum(within(name, folder) for name in pages) > 0.8 * len(pages):
                root = folder
                break
    else:
        root = next(
            (r for f in _CONTENT_ROOTS[:2] if any(within(n, r := join_path(docs_folder, f)) for n in pages)), root
        )
    name = "/" + root.rpartition("/")[2]
    bases = ("", name) if root else ("",)
    # A README beside the pages' folder belongs to the repository, not to the site; without that folder it is the front
    # page.
    return Layout("plain", docs_folder, root, Dialect(), bases)


_READERS: Mapping[str, Callable[[str, frozenset[str], Read, str], Layout | None]] = {
    "mintlify": mintlify,
    "docusaurus": docusaurus,
    "mkdocs": _mkdocs,
    "hugo": _hugo,
    "sphinx": _sphinx,
}
