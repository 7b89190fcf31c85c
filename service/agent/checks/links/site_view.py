"""A documentation site as links see it: where they lead, and which anchors its pages have.

Where a link leads is the site's business (``service.retrieval.site.navigation``). Here is how to find out without
parsing every page: a page's address needs its front matter only, and the anchors of a page are read when a link asks
for one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from urllib.parse import unquote

from msgspec import Struct, json
from msgspec.structs import replace

from service.agent.checks.markup import links_of
from service.agent.checks.pages import markdown_of, parsed
from service.domain.sites import Skipped
from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import split_front_matter, text_field
from service.markup.markdown import Markdown
from service.markup.page_names import Form
from service.retrieval.readers.markdown import Link, ParsedPage
from service.retrieval.site.links import LinkAnswer, name_answer
from service.retrieval.site.navigation import Layout, Placements, Site, SiteBuilder

PAGE_BYTES = 1_500
"""Memory of what is kept of one page, without its front matter."""
_RAW_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++([^\n]{1,300})$", re.MULTILINE)
_TOP_HEADING = re.compile(r"^ {0,3}#\s", re.MULTILINE)
_SUMMARY = re.compile(r"<summary>([^\n]{1,300}?)</summary>")
_GIVEN = re.compile(r"(?<!\{)\{(?![{<%])[^{}\n#]{0,300}#([\w:.-]{1,200})[^{}\n]{0,300}\}")
_TERM = re.compile(r"^[ \t]*(?:[-*][ \t]+)?(\S[^\n]{0,300})\n(?:[ \t]*\n)?[ \t]*(?:[-*][ \t]+)?:[ \t]", re.MULTILINE)

_NO_PAGE = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|css|scss|csv|json|ya?ml|py|rs|js|ts|tsx|jsx|vue|sh|toml)$", re.I
)
"""Files without headings."""
_MAKES_ANCHORS = re.compile(
    r"<[A-Z][\w.]{0,100}[\s/>]|\{\{[<%](?!\s*/)|^:::[ \t]+[A-Za-z_][\w.]*+[ \t]*$"
    r"|\{%(?!-?\s*(?:content-ref|endcontent-ref|hint|endhint))"
    r"|^[ \t]*\{\{[^{}\n]{1,500}\}\}[ \t]*$"
    r"|^[ \t]*\.\.[ \t]+(?:auto|_)",
    re.MULTILINE,
)
"""Components, shortcodes, macros and directives: what they show is not in the text of the page."""


class PageNames(Struct, frozen=True):
    by_name: Mapping[str, Sequence[str]]
    """Pages by the last part of their address or path, or by their title."""
    everywhere: frozenset[str]
    """Folders that more than half of the pages are in: to be in one of them says nothing."""
    often_alike: bool
    """Many pages share their name with others, as members of classes do: then a name alone says little."""


class SiteView(Struct):
    """A site as it was or is."""

    layout: Layout
    site: Site
    titles: Mapping[str, str]
    files: frozenset[str]
    placements: Placements | None
    names: "PageNames | None" = None
    """Made when first asked for."""
    resolved: dict[tuple[Form, str, str], LinkAnswer] = {}

    def leads_to(self, path: str, target: str, form: Form = "link") -> LinkAnswer:
        """Return where a link leads as far as its page goes. ``target`` has no anchor."""
        key = (form, "" if target.startswith("/") and form == "link" else path, target)
        known = self.resolved.get(key)
        if known is None:
            known = self.resolved[key] = name_answer(form, path, target, self.site, self.layout)
        return known


class BaseSite(Struct, frozen=True, dict=True):
    """The site of a commit. Jobs share it."""

    pages: Mapping[str, ParsedPage]
    """By path; with what places them on the site, and nothing else."""
    view: SiteView

    def own_view(self) -> SiteView:
        """Return the view for one job, which keeps in it where its links lead."""
        return replace(self.view, resolved={})

    @cached_property
    def weight(self) -> int:
        """Return about how many bytes of memory it takes."""
        written = sum(len(json.encode(page.front_matter)) for page in self.pages.values())
        return PAGE_BYTES * len(self.pages) + 2 * written


class Anchors(Struct, frozen=True):
    """The anchors that a link into a page may name."""

    names: frozenset[str]
    loosely: frozenset[str]
    """Those without punctuation and case, in which generators differ; and what some generators make anchors of too:
    headings with the tags in them, terms of definition lists, the words of what unfolds, ids in braces."""
    more: str = ""
    """Why the page may have others that are not in its own text; empty where it has not."""

    def has(self, anchor: str) -> bool:
        if not is_checked(anchor) or anchor in self.names:
            return True
        wanted = loosely(unquote(anchor))  # and Mintlify's anchor of a field is param-<its name>
        return wanted in self.loosely or wanted.removeprefix("param") in self.loosely


NO_ANCHORS = Anchors(frozenset(), frozenset())


def light_pages(texts: Mapping[str, str], layout: Layout) -> dict[str, ParsedPage]:
    """Pages with what places them on the site, and nothing else."""
    pages = {}
    for path, text in texts.items():
        front_matter, _ = split_front_matter(text.removeprefix("\ufeff"))
        links: tuple[Link, ...] = ()
        if len(layout.bases) > 1:
            links = tuple(Link(link.target, "", link.line) for link in links_of(text, path, layout.dialect)[:20])
        title = text_field(front_matter, "title", "sidebar_label", "sidebarTitle", "linkTitle")
        if not title:
            title = _first_heading(path, text, layout.dialect)
        pages[path] = ParsedPage(path, title, "", front_matter, (), NO_ANCHORS.names, links, "")
    return pages


def _first_heading(path: str, text: str, dialect: Dialect) -> str:
    if not _TOP_HEADING.search(text):
        return ""
    headings = Markdown(text, path=path, dialect=dialect).headings
    return next((heading.text for heading in headings if heading.level == 1), "")


def made_view(
    layout: Layout, pages: Mapping[str, ParsedPage], paths: Iterable[str], before: BaseSite | None = None
) -> SiteView:
    """Return the site of these pages. ``before``: one that has many of them in the same places."""
    files = frozenset(paths)
    known = before.view.placements if before is not None else None
    builder = SiteBuilder(layout, files, known)
    is_same_layout = known is not None and (known.layout is layout or known.layout == layout)
    same = before.pages if before is not None and is_same_layout else {}
    by_path = known.by_path if known is not None else {}
    for path, page in pages.items():
        if same.get(path) is page and path in by_path:
            builder.vote(page)
            builder.add_placed(by_path[path].placed)
        elif not layout.is_hidden(page.front_matter):
            builder.add(page)
    titles = {path: page.title for path, page in pages.items()}
    return SiteView(layout, builder.site(), titles, files, builder.placements)


def changed_view(
    site: BaseSite, base: SiteView, layout: Layout, changes: Mapping[str, str | None], paths: Sequence[str]
) -> SiteView:
    """Return the site after changes; ``base``, a job's view of it before them, where every page keeps its place."""
    texts = {path: text for path, text in changes.items() if text is not None and layout.is_page(path)}
    changed, base_pages = light_pages(texts, layout), site.pages
    if (
        layout is base.layout
        and changed.keys() == {path for path in changes if path in base_pages}
        and frozenset(paths) == base.files
        and all(page.front_matter == base_pages[path].front_matter for path, page in changed.items())
    ):
        return base
    pages = {path: page for path, page in base_pages.items() if path not in changes}
    return made_view(layout, {**pages, **changed}, paths, site)


def anchors_of_page(path: str, text: str, layout: Layout) -> Anchors:
    if path in layout.descriptions:
        return Anchors(NO_ANCHORS.names, NO_ANCHORS.loosely, "which anchors the build gives to operations is not known")
    if path.lower().endswith(".adoc"):
        return Anchors(NO_ANCHORS.names, NO_ANCHORS.loosely, "the anchors of AsciiDoc are not read")
    page = parsed(text, path, layout.dialect)
    if isinstance(page, Skipped):
        return NO_ANCHORS
    prose = markdown_of(text, path, layout.dialect).prose
    others = _others(prose)
    loose = frozenset(loosely(each) for each in (*page.anchors, *others))
    return Anchors(page.anchors, loose, _more_anchors(path, text, prose, layout))


def _others(prose: str) -> list[str]:
    """Return the words besides headings that some generators make anchors of."""
    summaries = (re.sub(r"<[^<>]*>", "", each) for each in _SUMMARY.findall(prose))
    return [*_RAW_HEADING.findall(prose), *_TERM.findall(prose), *_GIVEN.findall(prose), *summaries]


def _more_anchors(path: str, text: str, prose: str, layout: Layout) -> str:
    """Return why a page may have anchors that are not in its own text."""
    if not layout.links.has_all_anchors:
        return "the page may have anchors that the build makes"
    if any(
        link.form == "include" and not _NO_PAGE.search(link.target) for link in links_of(text, path, layout.dialect)
    ):
        return "the page shows other files, which may have the anchor"
    if _MAKES_ANCHORS.search(prose) is not None:
        return "the page has components that may have the anchor"
    return ""


def differ_in_words_only(path: str, old: str, new: str, dialect: Dialect) -> bool:
    links = [{link.target for link in links_of(text, path, dialect)} for text in (old, new)]
    if links[1] - links[0]:
        return False
    was, now = parsed(old, path, dialect), parsed(new, path, dialect)
    if isinstance(was, Skipped) or isinstance(now, Skipped):
        return False
    proses = [markdown_of(text, path, dialect).prose for text in (old, new)]
    others = [set(_others(prose)) for prose in proses]
    return was.front_matter == now.front_matter and was.anchors == now.anchors and others[0] == others[1]


def without_query(target: str) -> str:
    return target.partition("?")[0]


def is_checked(anchor: str) -> bool:
    return bool(anchor) and anchor.casefold() not in ("top", "_top") and not anchor.startswith((":~:", "/", "!"))


def loosely(anchor: str) -> str:
    """Without punctuation and case, in which generators differ."""
    return re.sub(r"[\W_]+", "", anchor.casefold())
