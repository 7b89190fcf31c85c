"""Which generator makes a site, by its configuration, and what that says. No configuration is run: those in Python and
JavaScript are searched. Each generator has a module in ``generators``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname

from msgspec.structs import replace

from service.markup.generator_files import CONFIGURATIONS, matcher
from service.retrieval.readers.openapi_pages import is_description, operation_named
from service.retrieval.site.generators.antora import antora
from service.retrieval.site.generators.books.gitbook import gitbook, gitbook_by_summary
from service.retrieval.site.generators.books.mdbook import mdbook
from service.retrieval.site.generators.docusaurus.configuration import docusaurus
from service.retrieval.site.generators.fumadocs import fumadocs
from service.retrieval.site.generators.hugo.content import hugo, hugo_by_folders
from service.retrieval.site.generators.jekyll import jekyll
from service.retrieval.site.generators.mdn import mdn
from service.retrieval.site.generators.mintlify.configuration import mintlify
from service.retrieval.site.generators.mkdocs.configuration import mkdocs
from service.retrieval.site.generators.nextra import nextra
from service.retrieval.site.generators.plain import plain
from service.retrieval.site.generators.sphinx.configuration import sphinx
from service.retrieval.site.generators.starlight import starlight
from service.retrieval.site.generators.vitepress.configuration import vitepress
from service.retrieval.site.generators.website import WEBSITE, website
from service.retrieval.site.layout import (
    DEPENDENCY_FOLDERS,
    VENDORED,
    Layout,
    Read,
    within,
)

_CONFIGS = {kind: matcher(names) for kind, names in CONFIGURATIONS.items()}
_CONFIG_NAMES = frozenset(name.rpartition("/")[2] for names in CONFIGURATIONS.values() for name in names)
"""Names of all of these without folders: so only few files are compared with each pattern."""
_VITEPRESS = ".vitepress/config"
_TRIALS = frozenset(
    """
    example examples fixture fixtures __fixtures__ playground playgrounds template templates test tests __tests__ e2e
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
"""Folders of sites that are no documentation, unless the project's folder is in them."""
_BESIDE = re.compile(r"(?:^|/)docusaurus\.config\.\w+$")
"""Configurations that may name folders beside their own."""


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
    return any(pattern.search(path) for pattern in _CONFIGS.values())


def _descriptions(layout: Layout, files: frozenset[str], read: Read) -> Iterator[str]:
    """Files of OpenAPI among the documentation, by what they begin with."""
    looked = 0
    data = [one for one in files if one.lower().endswith((".json", ".yaml", ".yml"))]
    for name in sorted(data, key=lambda one: (_OPENAPI_NAME.search(one) is None, one)):
        if not within(name, layout.docs_folder):
            continue
        if layout.unseen_folder(name):
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
        return website(files, read)
    configs = [name for name in files if name[name.rfind("/") + 1 :] in _CONFIG_NAMES]
    for kind, pattern in _CONFIGS.items():
        found = [name for name in configs if pattern.search(name) and _may_be_of(name, docs_folder)]
        for config in sorted(found, key=lambda name: (_distance(_folder(name), docs_folder), name))[:MAX_CONFIGS]:
            if _is_foreign(config, docs_folder):
                continue
            layout = _READERS[kind](config, files, read, docs_folder)
            if layout is not None and any(layout.is_page(name) for name in files):
                return layout
    for layout in (
        mdn(files, docs_folder),
        hugo_by_folders(files, read, docs_folder),
        gitbook_by_summary(files, read, docs_folder),
    ):
        if layout is not None and any(layout.is_page(name) for name in files):
            return layout
    return plain(files, docs_folder)


def _is_foreign(config: str, docs_folder: str) -> bool:
    """Return whether a configuration belongs to a package of others, to a tool, or to an example or a test."""
    below = config[len(docs_folder) :] if within(config, docs_folder) else config
    names = _folder(below).strip("/").split("/")
    if any(name.startswith(".") or name in DEPENDENCY_FOLDERS or name == VENDORED for name in names):
        return True
    is_above = bool(docs_folder) and within(docs_folder, _folder(config))
    return not is_above and any(name in _TRIALS for name in names)


def _folder(config: str) -> str:
    """Return the folder that a configuration is about."""
    return dirname(config.partition(_VITEPRESS)[0] if _VITEPRESS in config else config)


def _may_be_of(config: str, docs_folder: str) -> bool:
    """Return whether a configuration may be that of the documentation: it is in a folder below or above, or it says
    itself where the pages are.
    """
    folder = _folder(config)
    return within(folder, docs_folder) or within(docs_folder, folder) or _BESIDE.search(config) is not None


def _distance(folder: str, docs_folder: str) -> int:
    """Return how far a configuration is: first are those in or below the documentation, then above it, then beside."""
    if not within(folder, docs_folder) and not within(docs_folder, folder):
        return 1_000 + folder.count("/")
    depth = folder.count("/") + bool(folder)
    own = docs_folder.count("/") + bool(docs_folder)
    return depth - own if depth >= own else 100 + own - depth


_READERS: Mapping[str, Callable[[str, frozenset[str], Read, str], Layout | None]] = {
    "mintlify": mintlify,
    "docusaurus": docusaurus,
    "nextra": nextra,
    "starlight": starlight,
    "mkdocs": mkdocs,
    "hugo": hugo,
    "sphinx": sphinx,
    "vitepress": vitepress,
    "mdbook": mdbook,
    "gitbook": gitbook,
    "antora": antora,
    "jekyll": jekyll,
    "fumadocs": fumadocs,
}
