"""New pages that the site's navigation does not name, though it names the pages beside them.

Where a generator lists pages by itself, or a site keeps pages out of its navigation, the pages beside a new one are
not named either: then nothing is amiss. The problem says which line to add to which file, since some of these files
are programs that only people change.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import dirname, normpath

from msgspec import Struct

from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.markup import links_of
from service.agent.checks.rules import PAGE_UNLISTED
from service.agent.guards import configurations
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem
from service.markup.front_matter import FrontMatter, split_front_matter, text_field
from service.markup.pages import INDEX_NAMES, is_page, without_suffix
from service.retrieval.site.generators.sphinx_toctrees import listed_pages
from service.retrieval.site.generators.summary import NOT_NAMED
from service.retrieval.site.layout import Kind, Layout, join_path
from service.retrieval.site.navigation import Site

MAX_NEW_PAGES = 100
_FILES: Mapping[str, re.Pattern[str]] = {
    "mintlify": re.compile(r"(?:^|/)(?:docs|mint)\.json$"),
    "docusaurus": re.compile(r"(?:^|/)sidebars\.\w+$"),
    "mkdocs": re.compile(r"(?:^|/)mkdocs\.ya?ml$"),
    "mdbook": re.compile(r"(?:^|/)SUMMARY\.md$"),
    "gitbook": re.compile(r"(?:^|/)SUMMARY\.md$"),
}
_QUOTED = re.compile(r"['\"`]([^'\"`\n]{1,300})['\"`]")
_SUMMARY = re.compile(r"(?:^|/)(?:SUMMARY|_sidebar)\.md$")
_STARLIGHT = re.compile(r"(?:^|/)astro\.config\.[cm]?[jt]s$")
_HEADING = re.compile(r"\s*+# ([^\n{]{1,200})")
_SPHINX = re.compile(r"(?:^|/)conf\.py$")


class _Navigation(Struct, frozen=True):
    file: str
    root: str
    """The folder whose pages it names."""
    names: Callable[[str], bool]
    line: Callable[[str, str], str]
    """The line that names a page, from its path and title."""


async def check(links: Links, changed: Sequence[Changed]) -> list[Problem]:
    workspace = links.workspace
    made = {
        file.path: file.after
        for file in changed
        if file.after is not None and file.before is None and is_page(file.path)
    }
    if not made or len(made) > MAX_NEW_PAGES:
        return []
    _, now = await links.views()
    layout = await links.layout_now()
    paths = await asyncio.to_thread(workspace.paths)
    named = await _by_files(workspace, paths, layout.kind)
    return await asyncio.to_thread(
        _unlisted, made, [*_by_layout(layout, now.site, paths), *named], layout, workspace, now.titles
    )


def _unlisted(
    made: Mapping[str, str],
    navigations: Sequence[_Navigation],
    layout: Layout,
    workspace: Workspace,
    titles: Mapping[str, str],
) -> list[Problem]:
    folders: dict[str, list[str]] = {}
    for path in workspace.base_paths() if navigations else ():
        if is_page(path) and layout.is_page(path):
            folders.setdefault(dirname(path), []).append(path)
    found: dict[str, Problem] = {}
    for path, text in made.items():
        front_matter = split_front_matter(text)[0]
        is_shown = layout.why_excluded(path) in ("", NOT_NAMED) and not layout.is_hidden(front_matter)
        if not is_shown or _is_orphan(text, front_matter):
            continue
        for each in navigations:
            if _within(path, each.root) and not each.names(path) and _are_named(_beside(path, folders), each):
                title = text_field(front_matter, "title") or titles.get(path, "") or _title(path, text)
                message = f"The navigation does not name this page. Add {each.line(path, title)} to {each.file}."
                found.setdefault(path, PAGE_UNLISTED.problem(path, message))
    return list(found.values())


def _within(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _beside(path: str, folders: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the pages of the same folder; of the nearest folder above that has some, where that has none."""
    folder = dirname(path)
    while folder and folder not in folders:
        folder = dirname(folder)
    return folders.get(folder, ())


def _are_named(pages: Sequence[str], navigation: _Navigation) -> bool:
    return bool(pages) and sum(map(navigation.names, pages)) > len(pages) / 2


def _is_orphan(text: str, front_matter: FrontMatter) -> bool:
    """Return whether a page of Sphinx says that it is in no list."""
    return "orphan" in front_matter or text.lstrip("\ufeff \n").startswith(":orphan:")


def _title(path: str, text: str) -> str:
    """Return the heading that a page begins with, else the words of its name."""
    heading = _HEADING.match(text)
    if heading is not None:
        return heading[1].strip()
    name = without_suffix(path).rpartition("/")[2]
    return name.replace("-", " ").replace("_", " ").capitalize()


def _by_layout(layout: Layout, site: Site, paths: Sequence[str]) -> Iterator[_Navigation]:
    """Yield the navigation that the site's own configuration gives."""
    lines: Mapping[str, Callable[[str, str], str]] = {
        "mintlify": lambda path, _title: f"{json.dumps(without_suffix(path))}",
        "docusaurus": lambda path, _title: f"'{without_suffix(path)}',",
        "mkdocs": lambda path, title: f"- {title}: {path}",
        "mdbook": lambda path, title: f"- [{title}]({path})",
        "gitbook": lambda path, title: f"- [{title}]({path})",
    }
    listed = {path for path, page in site.pages.items() if page.order >= 0}
    if layout.kind not in lines or not listed:
        return
    pattern = _FILES[layout.kind]
    files = sorted((path for path in paths if pattern.search(path)), key=lambda path: _distance(path, layout.root))
    if not files:
        return
    line = lines[layout.kind]
    yield _Navigation(
        files[0], layout.root, listed.__contains__, lambda path, title: line(_inside(path, layout.root), title)
    )


def _distance(path: str, root: str) -> tuple[int, int]:
    """Return how far a file is from the folder of the pages: in one above it first."""
    folder = dirname(path)
    above = not folder or root == folder or root.startswith(f"{folder}/")
    return (0 if above else 1, abs(root.count("/") - path.count("/")))


def _inside(path: str, root: str) -> str:
    return path[len(root) :].lstrip("/")


async def _by_files(workspace: Workspace, paths: Sequence[str], kind: Kind) -> list[_Navigation]:
    """Return the navigation that other files give: VitePress, Starlight, Sphinx, and lists of pages."""
    found: list[_Navigation] = []
    vitepress = [path for path in paths if ".vitepress/" in path and configurations.is_vitepress(path)]
    for root in sorted({path.rpartition(".vitepress/")[0].rstrip("/") for path in vitepress}):
        files = [path for path in vitepress if path.rpartition(".vitepress/")[0].rstrip("/") == root]
        text = "\n".join([await workspace.text(path) or "" for path in files])
        if "sidebar" in text:
            found.append(_quoted(files[0], root, text, "{{ text: {title}, link: {link} }},"))
    for path in [path for path in paths if "astro.config." in path and _STARLIGHT.search(path)][:5]:
        root = join_path(dirname(path), "src/content/docs")
        found.append(_quoted(path, root, await workspace.text(path) or "", "{link},"))
    summaries = [path for path in paths if _SUMMARY.search(path) and kind not in ("mdbook", "gitbook")][:5]
    found += [_summary(path, await workspace.text(path) or "") for path in summaries]
    for path in [path for path in paths if path.endswith("conf.py") and _SPHINX.search(path)][:5]:
        found += await _sphinx(workspace, dirname(path), paths)
    return found


def _quoted(file: str, root: str, text: str, shape: str) -> _Navigation:
    words = frozenset(word.strip("/").removesuffix(".md").removesuffix(".html") for word in _QUOTED.findall(text))
    relative = frozenset(word for word in words if "/" not in word) if "base:" in text else frozenset[str]()

    def names(path: str) -> bool:
        link = _link(path, root)
        return link.strip("/") in words or link.strip("/").rpartition("/")[2] in relative

    def line(path: str, title: str) -> str:
        return shape.format(title=json.dumps(title, ensure_ascii=False), link=json.dumps(_link(path, root)))

    return _Navigation(file, root, names, line)


def _link(path: str, root: str) -> str:
    """Return a page's address below the root: of a folder's index that of the folder."""
    name = without_suffix(_inside(path, root))
    folder, _, last = name.rpartition("/")
    return f"/{folder}/" if last.lower() in INDEX_NAMES and folder else f"/{name}"


def _summary(file: str, text: str) -> _Navigation:
    root = dirname(file)
    targets = (link.target.partition("#")[0] for link in links_of(text, file))
    named = frozenset(normpath(join_path(root, target)) for target in targets if target)
    return _Navigation(
        file,
        root,
        lambda path: path in named or path == file,
        lambda path, title: f"- [{title}]({_inside(path, root)})",
    )


async def _sphinx(workspace: Workspace, root: str, paths: Sequence[str]) -> list[_Navigation]:
    named: set[str] = set()
    known = frozenset(paths)
    listing = ""
    async for texts in workspace.texts(
        [path for path in paths if path.endswith((".rst", ".md")) and _within(path, root)]
    ):
        for path, text in texts.items():
            if "toctree" in text:
                listing = min(listing or path, path, key=lambda one: (one.count("/"), "index." not in one, one))
                named |= {one.path for one in await asyncio.to_thread(listed_pages, path, text, root, known)}
    if not listing:
        return []
    return [
        _Navigation(
            f"the toctree of {listing}",
            root,
            lambda path: path in named or path == listing,
            lambda path, _title: without_suffix(_inside(path, root)),
        )
    ]
