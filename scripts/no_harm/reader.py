"""A reader of small sites that knows nothing of Docsmith: where each link leads, and what the navigation names.

It reads only what the sites of this script are written with. Each link has a word of its own (``L7``), and so has each
page and each part that others show (``kite7``): both are followed through any change of files and texts.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal
from urllib.parse import unquote, urljoin

from msgspec import Struct, field

Form = Literal["link", "hugo", "liquid", "post", "based", "document", "include", "route"]
"""How a name is written: a target of a link, or a name with rules of its own. ``route``: an address in a file that is
no page.
"""

_TARGET = r"(?:<([^<>\n]*)>|((?:[^\s()<>\\]|\([^\s()]*\))*))"
_INLINE = re.compile(rf"\[(L\d+)\]\(\s*{_TARGET}(?:\s+\"[^\"\n]*\")?\s*\)")
_REFERENCE = re.compile(r"\[(L\d+)\]\[([^\]\n]+)\]")
_TAG = re.compile(r"<a href=\"([^\"\n]*)\">(L\d+)</a>")
_CARD = re.compile(r"<Card title=\"(L\d+)\" href=\"([^\"\n]*)\"")
_HUGO = re.compile(r"\[(L\d+)\]\(\{\{[<%] (?:rel)?ref (?:path=)?\"([^\"\n]*)\" [%>]\}\}\)")
_LIQUID = re.compile(r"\[(L\d+)\]\(\{% link (.+?) %\}(#[\w-]+)?\)")
_POST = re.compile(r"\[(L\d+)\]\(\{% post_url (.+?) %\}\)")
_BASED = re.compile(r"\[(L\d+)\]\(\{\{ '([^'\n]*)' \| relative_url \}\}\)")
_ROLE = re.compile(r":doc:`(L\d+) <([^>\n]+)>`")
_REST = re.compile(r"(?<!:doc:)`(L\d+) <([^>\n]+)>`__?")
_XREF = re.compile(r"xref:([^\[\n]+)\[(L\d+)\]")
_INCLUDE = re.compile(
    r"(L\d+): shown[^\n]*\n\s*(?:\{\{#include ([^}\n]+)\}\}|--8<-- \"([^\"\n]+)\"|<!--@include: ([^\n]+?)-->"
    r"|\.\. include:: ([^\n]+)|\{% include ([^\s%]+) %\}|import \w+ from '([^'\n]+)'|```\{include\} ([^\n]+)"
    r"|<Snippet file=\"([^\"\n]+)\"|\{% include_relative ([^\n%]+?) %\})"
)
_NAME = re.compile(
    r"\"([^\"\n]+)\"|'([^'\n]+)'|\]\(<?((?:[^\s()<>]|\([^\s()]*\))+)>?\)|(?:[:\-] +|^ +)([^\s\"'][^\n]*?)\s*$",
    re.MULTILINE,
)
_OWN = re.compile(r"\b(kite\d+)\b")
_HEADING = re.compile(
    r"^#{1,6} +([^\n]+?)(?: *\{#([\w-]+)\})?$|^([^\n]+)\n[=\-~^]{3,}$|^={1,4} ([^\n]+)$", re.MULTILINE
)


class Seen(Struct, frozen=True):
    """A link as it stands in a file."""

    path: str
    line: int
    form: Form
    target: str


class Ends(Struct, frozen=True):
    """Where a link leads."""

    own: str = ""
    """The word of the page or part; empty where it leads nowhere."""
    anchor: str = ""
    has_anchor: bool = True

    @property
    def is_sound(self) -> bool:
        return bool(self.own) and self.has_anchor


class Rules(Struct, frozen=True):
    """How a generator places pages, and reads links."""

    mounts: tuple[tuple[str, str], ...]
    """Folders of pages and the beginning of their addresses; the most particular first."""
    address: Callable[[str, str], str]
    """The address of a page below its folder, from its path there and its text; empty for no page."""
    slug: Callable[[str], str]
    suffixes: tuple[str, ...] = (".md",)
    relative: Literal["file", "address"] = "file"
    """Where a relative link without the suffix of a page counts from."""
    reads_files: bool = True
    """Whether a link to the file of a page leads to the page."""
    base: str = ""
    has_top_anchors: bool = True
    """Whether the top heading of a page has an anchor."""
    named: Callable[["Reading", str, Form, str], str] | None = None
    """The path that a name means whose form is no link's."""
    routes: Callable[[Mapping[str, str]], Iterator[tuple[str, str]]] | None = None
    """Redirects: an address and where it leads."""
    lists: tuple[str, ...] = ()
    """Files of the navigation."""
    fallbacks: tuple[tuple[str, str], ...] = ()
    """Beginnings of addresses of a translation, where pages that it lacks are shown, and of what it translates."""


class Reading(Struct):
    """A site, read."""

    files: Mapping[str, str]
    rules: Rules
    address_of: dict[str, str] = field(default_factory=dict)
    """By path of each page."""
    path_at: dict[str, str] = field(default_factory=dict)
    links: dict[str, Seen] = field(default_factory=dict)
    ends: dict[str, Ends] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    """The word of each page or part, by its path."""
    listed: dict[str, frozenset[str]] = field(default_factory=dict)
    """The words of the pages that a file of the navigation names, by its path."""

    def anchors(self, path: str) -> frozenset[str]:
        text = _without_front_matter(self.files[path].removeprefix("\ufeff").replace("\r\n", "\n"))
        found = [match.groups() for match in _HEADING.finditer(text)]
        if not self.rules.has_top_anchors:
            found = [match.groups() for match in _HEADING.finditer(re.sub(r"^# .*$", "", text, flags=re.MULTILINE))]
        return frozenset(own or self.rules.slug(one or two or three or "") for one, own, two, three in found)

    def page_at(self, address: str) -> str:
        """Return the path of the page at an address, by way of redirects; empty for none."""
        bare = _bare(address)
        found = self.path_at.get(bare, "")
        for prefix, original in self.rules.fallbacks:
            if not found and (bare == prefix or bare.startswith(f"{prefix}/")):
                found = self.path_at.get(original + bare[len(prefix) :] or "/", "")
        return found


def read(files: Mapping[str, str], rules: Rules) -> Reading:
    """Return where the links of a site lead by these rules."""
    found = Reading(files, rules)
    for path, text in files.items():
        own = _OWN.search(text)
        if own is not None:
            found.own[path] = own[1]
        placed = _placed(path, text, rules)
        if placed:
            found.address_of[path] = placed
            found.path_at.setdefault(_bare(placed), path)
    for source, goal in rules.routes(files) if rules.routes is not None else ():
        to = found.page_at(goal)
        if to:
            found.path_at.setdefault(_bare(source), to)
    for path, text in files.items():
        for name, seen in links_in(path, text):
            found.links[name] = seen
            found.ends[name] = _ends(found, seen)
    for path in rules.lists:
        if path in files:
            found.listed[path] = frozenset(_listed(found, path, files[path]))
    return found


def front_matter(text: str) -> dict[str, str]:
    """Return the simple fields of a page's front matter."""
    head = text.removeprefix("\ufeff").replace("\r\n", "\n")
    for mark in ("---\n", "+++\n"):
        if head.startswith(mark):
            block = head[4:].partition(f"\n{mark}")[0]
            fields = re.findall(r"^([\w-]+) ?[:=] ?[\"']?([^\n]*?)[\"']?$", block, re.MULTILINE)
            return dict(fields)
    if head.startswith("{\n"):
        return {key: str(value) for key, value in json.JSONDecoder().raw_decode(head)[0].items()}
    return {}


def _without_front_matter(text: str) -> str:
    return re.sub(r"\A(?:---\n.*?\n---\n|\+\+\+\n.*?\n\+\+\+\n|\{\n.*?\n\}\n)", "", text, flags=re.DOTALL)


def front_kind(text: str) -> str:
    """Return the mark that a page's front matter begins with; empty where it has none."""
    found = re.match(r"\ufeff?(---|\+\+\+|\{)\r?\n", text)
    return found[1] if found is not None else ""


def links_in(path: str, text: str) -> Iterator[tuple[str, Seen]]:
    """Yield the links of a file, by their words."""
    defined = dict(re.findall(r"^\[([\w-]+)\]: <?([^\n>]*?)>?\r?$", text, re.MULTILINE))

    def seen(match: re.Match[str], form: Form, target: str) -> Seen:
        return Seen(path, text.count("\n", 0, match.start()) + 1, form, target)

    for match in _INLINE.finditer(text):
        if not (match[3] or "").startswith("{"):
            yield match[1], seen(match, "link", match[2] if match[2] is not None else match[3])
    for match in _REFERENCE.finditer(text):
        if match[2] in defined:
            yield match[1], seen(match, "link", defined[match[2]])
    for pattern, form in ((_CARD, "link"), (_HUGO, "hugo"), (_POST, "post"), (_BASED, "based"), (_ROLE, "document"),
                          (_REST, "link")):  # fmt: skip
        for match in pattern.finditer(text):
            yield match[1], seen(match, form, match[2])  # type: ignore[arg-type]
    for match in _LIQUID.finditer(text):
        yield match[1], seen(match, "liquid", match[2] + (match[3] or ""))
    for pattern in (_TAG, _XREF):
        for match in pattern.finditer(text):
            yield match[2], seen(match, "link", match[1])
    for match in _INCLUDE.finditer(text):
        target = next(group for group in match.groups()[1:] if group is not None).strip()
        line = text.count("\n", 0, match.end()) + 1
        yield match[1], Seen(path, line, "include", target)


def without_targets(text: str) -> str:
    """Return a text in which the targets of all links are left out: what a job that moves pages may not change."""
    text = re.sub(r"^\[[\w-]+\]: [^\n]*$", "", text, flags=re.MULTILINE)
    for pattern in (_HUGO, _LIQUID, _POST, _BASED, _INLINE, _CARD, _ROLE, _REST, _INCLUDE):
        text = pattern.sub(r"\1", text)
    for pattern in (_TAG, _XREF):
        text = pattern.sub(r"\2", text)
    return text


# Addresses


def _bare(address: str) -> str:
    """Return an address as it is looked up: decoded, with one spelling of its end."""
    decoded = re.sub(r"(?:/index)?\.html$", "", unquote(address.partition("#")[0].partition("?")[0]))
    return decoded.rstrip("/") or "/"


def _placed(path: str, text: str, rules: Rules) -> str:
    if not path.endswith(rules.suffixes):
        return ""
    for folder, prefix in rules.mounts:
        if not folder or path.startswith(f"{folder}/"):
            inside = path[len(folder) :].lstrip("/")
            found = rules.address(inside, text)
            return f"{rules.base}{prefix}{found}" if found else ""
    return ""


def _ends(site: Reading, seen: Seen) -> Ends:
    target, _, anchor = seen.target.partition("#")
    anchor = unquote(anchor)
    path = _path(site, seen, target)
    if path is None:
        return Ends()
    own = site.own.get(path, "")
    has = not anchor or anchor in site.anchors(path)
    return Ends(own, anchor, has)


def _path(site: Reading, seen: Seen, target: str) -> str | None:
    rules = site.rules
    if seen.form == "include":
        if rules.named is not None and (found := rules.named(site, seen.path, "include", target)):
            return found if found in site.files else None
        return _file(site, posixpath.join(posixpath.dirname(seen.path), target))
    if seen.form != "link":
        assert rules.named is not None
        return rules.named(site, seen.path, seen.form, target) or None
    target = unquote(target.partition("?")[0])
    if not target:
        return seen.path
    if target.endswith(rules.suffixes) and rules.reads_files:
        return _page_file(site, seen.path, target)
    if target.startswith("/"):
        within = not rules.base or target == rules.base or target.startswith(f"{rules.base}/")
        return site.page_at(target) or None if within else None
    if seen.path not in site.address_of:
        return None
    if rules.relative == "address":
        return site.page_at(urljoin(site.address_of[seen.path], target.replace("?", "%3F").replace("#", "%23"))) or None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(seen.path), target.removesuffix(".html")))
    names = [joined + each for each in rules.suffixes] + [f"{joined}/index{each}" for each in rules.suffixes]
    return next((each for each in names if each in site.address_of), None)


def _page_file(site: Reading, path: str, target: str) -> str | None:
    if target.startswith("/"):
        folders = [folder for folder, _ in site.rules.mounts if not folder or path.startswith(f"{folder}/")][:1]
        joined = [posixpath.normpath(f"{folder}{target}").lstrip("/") for folder in folders]
    else:
        joined = [posixpath.normpath(posixpath.join(posixpath.dirname(path), target))]
    return next((each for each in joined if each in site.address_of), None)


def _file(site: Reading, path: str) -> str | None:
    path = posixpath.normpath(path)
    return next((each for each in (path, f"{path}.md", f"{path}.mdx") if each in site.files), None)


# Navigation


def _listed(site: Reading, path: str, text: str) -> Iterator[str]:
    """Yield the words of pages that a file of the navigation names, by any of the names that pages have there."""
    names: dict[str, str] = {}
    folder = posixpath.dirname(path)
    main = min((each for each, _ in site.rules.mounts), key=len)
    for page, address in site.address_of.items():
        mount = next((each for each, _ in site.rules.mounts if not each or page.startswith(f"{each}/")), main)
        if mount != main:
            continue
        own = site.own.get(page, "")
        inside = next(
            (page[len(each) :].lstrip("/") for each, _ in site.rules.mounts if not each or page.startswith(f"{each}/")),
            page,
        )
        beside = posixpath.relpath(page, folder or ".")
        bare = {each.rpartition(".")[0] for each in (inside, beside, page)}
        for name in {inside, beside, page, address, _bare(address), *bare, *(f"/{each}" for each in bare)}:
            names.setdefault(name, own)
    for token in _NAME.findall(text):
        for name in filter(None, token):
            own = names.get(name) or names.get(unquote(name)) or names.get(_bare(name))
            if own:
                yield own
