"""Names of pages outside of their text: in configurations, redirects, lists of pages that are programs, front matter.

A page that moves or goes is looked for there by every name that generators have for it: its path, with and without the
folder of the pages and its suffix, its address, its id. Data that a job may write is changed; what is in a program, or
is no address, is named for people.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from posixpath import dirname
from typing import NamedTuple

from service.agent.checks.links.guesses import BrokenLink
from service.agent.checks.links.site_view import SiteView
from service.markup.front_matter import block_of
from service.markup.pages import is_markdown, is_page, without_suffix
from service.retrieval.site.detection import is_configuration
from service.retrieval.site.layout import DEPENDENCY_FOLDERS, within
from service.retrieval.site.translations import copy_key

MAX_FILES, MAX_FOUND, MAX_LEAD = 300, 500, 64
"""Files that are searched besides pages, the nearest to the root first; names that are reported; characters before
one that distinguish it."""
_DATA = (".json", ".yml", ".yaml", ".toml")
_SUFFIXES = (
    *_DATA,
    ".pages",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".cts",
    ".jsx",
    ".tsx",
    ".astro",
    "_redirects",
    "conf.py",
)
_LOCKED = re.compile(r"(?:^|/)(?:package(?:-lock)?|composer|tsconfig|pnpm-lock|yarn)\b[^/]*$|lock\.\w+$|\.min\.")
_TOKEN = re.compile(
    r"(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{1,300})(?P=quote)|(?:(?<=[:\s=])|^)(?P<bare>/?+[\w.@%~-]++(?:/[\w.@%~()-]++)*+/?+)(?=[\s,#]|$)",
    re.MULTILINE,
)
_IS_SOURCE = re.compile(r"(?:source|from|fromPath|old)[\"']?\s*+[:=]\s*+(?:\[\s*+)?$")
_IS_WORDS = re.compile(r"(?:title|description|icon|label|name)[\"']?\s*+:\s*+$")
_IS_OWN = re.compile(r"(?:permalink|slug|url|id|alias(?:es)?|redirect_from|canonical\w*+)\s*+[:=]\s*+$|^\s*+-\s*+$")
"""Text before an address that leads elsewhere, or in front matter before one of the page itself."""
_IS_ID = re.compile(r"\"id\"\s*+:\Z")
_PARENT = re.compile(r"(?P<key>(?:grand_)?parent:[ \t]++)(?P<quote>[\"']?)(?P<title>[^\n]{1,300})(?P=quote)")
_BARE = re.compile(r"[^\W\d_][\w ,.()/-]{0,300}")
_LIST = re.compile(r"(?:^|/)_?meta\.(?:json|[jt]sx?)$|(?:^|/)_toc\.ya?ml$|(?:^|/)\.(?:pages|nav\.ya?ml)$")
"""Files that name the pages of their folder (nextra.site/docs/file-conventions/meta-file,
fumadocs.dev/docs/headless/page-conventions, jupyterbook.org/en/stable/structure/toc.html,
lukasgeiter.github.io/mkdocs-awesome-nav).
"""
HIDDEN_LIST = re.compile(r"(?:^|/)\.(?:pages|nav\.ya?ml|gitbook\.ya?ml)$")
"""Hidden files that name pages: a job may not read them, but what is left in them is named."""
_BARE_LIST = re.compile(r"(?:^|/)\.(?:pages|nav\.ya?ml)$")
"""Those in which each name is a file's."""
_KEY = re.compile(r"(?<=[{,\n])[ \t]*(?P<bare>[\w.-]{1,200})[ \t]*:")
"""Names of pages without quotation marks in a list that is a program."""


def searched(paths: Sequence[str]) -> list[str]:
    """Return the files that may name pages, besides pages."""
    found = [
        path
        for path in paths
        if path.endswith(_SUFFIXES) and not _LOCKED.search(path) and DEPENDENCY_FOLDERS.isdisjoint(path.split("/"))
    ]
    return sorted(found, key=lambda path: (not is_configuration(path), path.count("/"), path))[:MAX_FILES]


def named_elsewhere(
    texts: Mapping[str, str],
    gone: Mapping[str, str | None],
    before: SiteView,
    now: SiteView,
    listing: Collection[str] = (),
) -> list[BrokenLink]:
    """Return the names of pages that went, each with the one in its place. ``gone``: by path, where each is now;
    ``listing``: files in which a path can be nothing but a page's.
    """
    names: dict[str, dict[str, str | None]] = {}
    stems = {without_suffix(path): without_suffix(to) if to is not None else None for path, to in gone.items()}
    for path, to in gone.items():
        new = dict(_names(to, now)) if to is not None else {}
        own = names.setdefault(_documents(path, before), {})
        for form, name in _names(path, before):
            if to is None or not name.startswith("/") or now.site.path_of(name) != to:  # else it still leads there
                own.setdefault(name, new.get(form))
    sidebars = {each.sidebar_file for each in before.layout.documents if each.sidebar_file.endswith(".json")}
    found: list[BrokenLink] = []
    for path, text in texts.items():
        if len(found) >= MAX_FOUND:
            break
        if is_markdown(path):
            block = block_of(text)
            text = "\n" + block.text if block is not None and block.end else ""
        meant, is_sidebar = _meant_in(path, names, before), path in sidebars
        found += _in_text(path, text, meant, stems, is_listing=path in listing, is_sidebar=is_sidebar)
    return found[:MAX_FOUND]


def parents_left(texts: Mapping[str, str], titles: Mapping[str, str]) -> list[BrokenLink]:
    """Return the pages whose front matter names the page above them by a title that it has no longer
    (just-the-docs.com/docs/navigation/main/parents). ``titles``: the new ones by the old.
    """
    found: list[BrokenLink] = []
    for path, text in texts.items():
        block = block_of(text) if is_markdown(path) else None
        lines = block.text.split("\n") if block is not None and block.end else []
        for match in filter(None, map(_PARENT.fullmatch, lines)):
            new = titles.get(match["title"])
            if new is not None and len(found) < MAX_FOUND:
                written = new if _BARE.fullmatch(new) and not match["quote"] else json.dumps(new, ensure_ascii=False)
                line = text[: text.index(match[0])].count("\n") + 1
                reason = "the page above it has another title now"
                found.append(BrokenLink(path, line, match[0], (match["key"] + written,), clear=True, reason=reason))
    return found


def _documents(path: str, view: SiteView) -> str:
    """Return the folder of the documents that a page, or a file of sidebars, belongs to; empty for none."""
    sets = view.layout.documents
    own = next((each for each in sets if each.sidebar_file == path), None) or view.layout.document_set(path)
    return "" if own is None else own.original or own.folder


def _meant_in(path: str, names: Mapping[str, Mapping[str, str | None]], view: SiteView) -> Mapping[str, str | None]:
    """Return the names that a file may mean. ``names``: by the documents of their pages. The sidebars and pages of one
    version do not mean the documents of another one by their ids.
    """
    here = _documents(path, view)
    found: dict[str, str | None] = {}
    for documents, own in names.items():
        is_other = here and documents and here != documents
        found |= {name: to for name, to in own.items() if not is_other or (is_markdown(path) and name.startswith("/"))}
    return found


def translations_left(gone: Mapping[str, str | None], before: SiteView, now: SiteView) -> list[BrokenLink]:
    """Return the translations of pages that have moved or are gone which are still where they were."""
    own = ("", before.layout.default_language)
    keys = {
        (copy.key, copy.version): path
        for path, to in gone.items()
        if (copy := _copy(path, before)) is not None and (to is not None or copy.language in own)
    }
    names = {_first_name(path) for path in keys.values()}
    left = []
    for path in sorted(before.files & now.files):
        copy = _copy(path, before) if _first_name(path) in names else None
        of = keys.get((copy.key, copy.version)) if copy is not None else None
        if of:
            reason = f"it translates a page that {'has moved' if gone[of] is not None else 'is gone'}"
            left.append(BrokenLink(path, 1, of, (), clear=False, reason=reason, is_for_people=True))
    return left[:MAX_FOUND]


class _Copy(NamedTuple):
    key: str
    version: str
    language: str


def _copy(path: str, view: SiteView) -> _Copy | None:
    """Return what says which pages a page is a copy of, drafts included; None for other files."""
    page, layout = view.site.pages.get(path), view.layout
    if page is not None:
        return _Copy(page.copy_key, page.version, page.language)
    if not is_page(path) or not (within(path, layout.root) or layout.document_set(path) is not None):
        return None
    _, version, language = layout.resolve_url(path, {}, layout.bases[0])
    return _Copy(copy_key(layout, path, language, version, layout.bases[0]), version, language)


def _first_name(path: str) -> str:
    """Return the name of a file up to its first dot, which a translation has, too."""
    return path.rpartition("/")[2].partition(".")[0].casefold()


def _names(path: str, view: SiteView) -> Iterator[tuple[str, str]]:
    """Yield the names of a page, by their form."""
    page, root = view.site.pages.get(path), view.layout.root
    inside = path[len(root) :].lstrip("/") if root and path.startswith(f"{root}/") else path
    for form, one in (("path", path), ("inside", inside)):
        yield form, one
        yield f"/{form}", f"/{one}"
        yield f"./{form}", f"./{one}"
        yield f"{form} bare", without_suffix(one)
        yield f"/{form} bare", f"/{without_suffix(one)}"
    documents = view.layout.document_set(path)
    if documents is not None:
        yield "id", documents.id_of(path[len(documents.folder) :].lstrip("/"), {})
    if page is not None and page.url != "/":
        url = page.url.removeprefix(view.layout.link_prefix)
        for form, one in (("address", url), ("whole", page.url)):
            yield form, one
            yield f"{form}/", f"{one}/"


def _begin_alone(text: str, token: re.Match[str]) -> int:
    """Return from where on a token reads as nothing else on its line."""
    first = text.rfind("\n", 0, token.start()) + 1
    end = text.find("\n", token.end())
    line, begin = text[first : end if end >= 0 else len(text)], token.start()
    while begin > max(first, token.start() - MAX_LEAD) and line.count(text[begin : token.end()]) > 1:
        begin -= 1
    return begin


def _may_be_meant(target: str, group: str, may_be_word: bool) -> bool:
    return is_markdown(target) or (may_be_word and group == "quoted")


def _is_item(text: str, token: re.Match[str]) -> bool:
    """Return whether a string in JSON is an item of a list, or the value of ``id``."""
    before = text[max(0, token.start() - 60) : token.start()].rstrip()
    is_key = text[token.end() : token.end() + 60].lstrip().startswith(":")
    return (before.endswith(("[", ",")) and not is_key) or _IS_ID.search(before) is not None


def _in_text(
    path: str, text: str, names: Mapping[str, str | None], stems: Mapping[str, str | None], *, is_listing: bool,
    is_sidebar: bool,
) -> Iterator[BrokenLink]:  # fmt: skip
    """``stems``: the pages that went, without suffixes, for the files that name those of their folder;
    ``is_sidebar``: it is a sidebar as JSON, whose items are ids.
    """
    folder, is_list = f"{dirname(path)}/".lstrip("/"), _LIST.search(path) is not None
    may_be_word = is_configuration(path) and not path.endswith(".py")
    is_page, is_data = is_markdown(path), path.endswith(_DATA)
    is_bare_list, is_program = _BARE_LIST.search(path) is not None, is_list and not path.endswith(_DATA)
    for token in chain(_TOKEN.finditer(text), _KEY.finditer(text) if is_program else ()):
        group = "bare" if token.groupdict().get("quoted") is None else "quoted"
        target, mark, anchor = token[group].partition("#")
        before = text[max(0, token.start() - 60) : token.start()].rpartition("\n")[2]
        new, is_sure = names.get(target), is_page or (is_data and target.startswith("/"))
        is_word = "/" not in target
        is_item = is_sidebar and _is_item(text, token)
        is_sure = is_sure or (is_listing and not is_word) or is_item
        is_named = group == "quoted" or is_bare_list or token.re is _KEY or "file:" in before or "root:" in before
        stem = without_suffix(target) if is_bare_list else target
        if is_list and is_named and folder + stem in stems:
            to = stems[folder + stem]
            new = to[len(folder) :] + target[len(stem) :] if to is not None and to.startswith(folder) else None
            is_sure = is_data or is_bare_list
        elif target not in names or (is_word and not is_item and not _may_be_meant(target, group, may_be_word)):
            continue
        if _IS_SOURCE.search(before) or (is_word and _IS_WORDS.search(before)) or (is_page and _IS_OWN.search(before)):
            continue
        begin = _begin_alone(text, token)
        lead = text[begin : token.start()]
        suggestions = (lead + token[0].replace(token[group], new + mark + anchor),) if new is not None else ()
        line = text.count("\n", 0, token.start()) + 1
        reason = "it names a page that has moved" if new is not None else "it names a page that is gone"
        is_clear = bool(suggestions) and is_sure
        yield BrokenLink(path, line, lead + token[0], suggestions, is_clear, reason, is_for_people=not is_clear)
