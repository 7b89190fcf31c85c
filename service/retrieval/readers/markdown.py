"""A Markdown or MDX page to its title, front matter, sections, anchors and links.

What is kept of a section is its source, cleaned of what no reader sees (``service.markup.prose``). A snippet that a
page imports is shown where it is used.

Pages come from strangers: sizes are capped, and whatever is wrong with a page ends as a ``Skipped``.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

from service.domain.sites import Skipped
from service.markup.blocks import Block
from service.markup.dialects.dialect import PLAIN, Dialect
from service.markup.dialects.home_page import hero_name, home_text
from service.markup.dialects.mdx import hidden_braces
from service.markup.front_matter import FrontMatter, text_field
from service.markup.markdown import Markdown, without_comments
from service.markup.prose import MAX_HEADING, MAX_LINKS, Cleaner, plain, shown_words, unmarked
from service.markup.shown_code import shown_code
from service.markup.slugs import Anchors, slug
from service.ports.docs_source import PAGE_BYTES
from service.retrieval.readers.entries import Entry, entries_of, located
from service.retrieval.readers.includes.expansion import expanded
from service.retrieval.readers.includes.files import Files, Include, OtherFiles
from service.retrieval.readers.sphinx.myst import SphinxPage

__all__ = [  # with what those who read pages need of the modules below this one
    "MAX_LINES",
    "MAX_PAGE_BYTES",
    "Include",
    "PageSection",
    "ParsedPage",
    "parse_page",
    "source_text",
]

MAX_PAGE_BYTES = PAGE_BYTES["md"]
MAX_LINES = 50_000
MAX_SECTION = 6000
"""Characters of a section's text beyond which it is parted between its blocks."""


class Link(Struct, frozen=True, gc=False):
    href: str
    text: str
    line: int


class PageSection(Struct, frozen=True):
    """As ``service.ports.search_index.Section``, before the site is known."""

    heading: str
    heading_path: tuple[str, ...]
    anchor: str
    """Empty for the top of the page."""
    text: str
    start_line: int
    end_line: int
    entries: tuple[Entry, ...] = ()
    """The rows, options and definitions in it."""
    path: str = ""
    """The file that it is from, where that is not the page's own (``shown_files``)."""
    url: str = ""
    """The address of the page that is made of it alone; empty where it is on the page."""
    is_code: bool = False
    """Its heading is a name in code, perhaps with something beside it."""


class ParsedPage(Struct, frozen=True, gc=False):
    path: str
    title: str
    """By front matter or the first top heading; empty when the page does not say."""
    description: str
    front_matter: FrontMatter
    sections: tuple[PageSection, ...]
    anchors: frozenset[str]
    """All that a link into the page may name."""
    links: tuple[Link, ...]
    content: str
    """The whole page as clean Markdown."""


def source_text(data: bytes, path: str) -> str | Skipped:
    """Return a page of any markup as text, or why it cannot be read."""
    if len(data) > MAX_PAGE_BYTES:
        return Skipped(path, f"It is larger than {MAX_PAGE_BYTES >> 20} MiB.")
    if data.count(b"\n") > MAX_LINES:
        return Skipped(path, f"It has more than {MAX_LINES:,} lines.")
    if b"\0" in data:
        return Skipped(path, "It is not text.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(path, "It is not UTF-8 text.")


def parse_page(
    data: bytes,
    path: str,
    dialect: Dialect = PLAIN,
    include: Include | None = None,
    sphinx: SphinxPage | None = None,
) -> ParsedPage | Skipped:
    """Never raises for what is in the page. ``sphinx``: of a Sphinx site, whose Markdown is MyST."""
    source = source_text(data, path)
    if isinstance(source, Skipped):
        return source
    try:
        return _Reader(source, path, dialect, include, sphinx).page()
    except RecursionError:
        return Skipped(path, "It is nested too deeply.")


_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")


_HEADING_ID = re.compile(
    r"(?:\{:?(?:[^{}#\n]{0,200}?\s)?(?:#([^\s{}]++)|id=[\"']?([^\s\"'{}]++))[^{}]*\}|\[#([\w-]+)\]|\{/\*\s*#([\w-]+)\s*\*/\})\s*$"
)
_HEADING_LINK = re.compile(r"(?:(?<!\s)\s++)?<a\s[^<>]{0,300}\bid=\"([^\"]{1,200})\"[^<>]{0,300}>\s*+</a>\s*+$")
"""GitBook's own anchor of a heading."""
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,500}>")
_HEADING_CLASS = re.compile(r"(?:(?<![ \t])[ \t]++)?\{[.][^{}\n]{1,200}\}[ \t]*$")
_TERM = re.compile(r"^[ \t]*- ([^\n]{1,300})\n(?:[ \t]*\n)?[ \t]+- : ", re.MULTILINE)
_HYPHENS = re.compile(r"`[^`]*`|-{2,3}")


def _content(data: bytes, path: str, dialect: Dialect) -> str:
    page = parse_page(data, path, dialect)
    return page.content if isinstance(page, ParsedPage) else ""


_SIGN_NAME = r"[A-Z]\w{0,30}(?:Badge|Icon)\w{0,30}|(?:Badge|Icon|Version)\w{0,30}"
_SIGN_ATTRIBUTES = re.compile(rf"<({_SIGN_NAME})[ \t][^<>]{{0,500}}?(/?)>")
_LINKED_IMAGE = re.compile(r"\[(!\[[^\[\]]{0,200}\]\([^()\s]{0,500}\))\]\([^()\s]{0,500}\)")
_SIGN = re.compile(
    rf"<({_SIGN_NAME})(?:[ \t][^<>]{{0,500}})?(?:/>|>[^<>]{{0,100}}</\1>)|!\[[^\[\]]{{0,200}}\]\([^()\s]{{0,500}}\)"
    r"|<(span|sup|small)[ \t][^<>]{0,100}\bbadge[^<>]{0,100}>[^<>]{0,100}</\2>"
)
"""Icons, badges and pictures beside the words of a heading: they are no words of it. Anchors are made with what stands
between their tags.
"""


class _Heading(Struct):
    line: int  # from 0
    end: int
    level: int
    text: str
    anchor: str
    is_code: bool
    badges: str = ""
    """The words of badges beside it, which begin its section."""


class _Reader:
    def __init__(
        self, source: str, path: str, dialect: Dialect, include: Include | None, sphinx: SphinxPage | None
    ) -> None:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        self._path = path
        self._dialect = dialect
        files = Files(include)
        source, self._numbers = expanded(source, dialect, files, sphinx) if include is not None else (source, None)
        source = hidden_braces(source) if dialect.is_mdx(path) else source
        self._markup = Markdown(source, path=path, dialect=dialect)
        self._mdx = self._markup.mdx
        self._front_matter = self._markup.front_matter
        self._first = self._markup.first_line
        self._body = self._markup.seen
        self._lines = self._body.split("\n")
        self._inline = Cleaner(dialect, mdx=self._mdx)
        self._others = OtherFiles(dialect, files, _content)
        self._inline.imported = self._others.import_snippets(source[self._markup.start :]) if self._mdx else frozenset()
        self._inline.includes = self._others.has
        self._anchors = Anchors(dialect.slugs)
        self._code: list[tuple[int, int, bool]] = []  # first and last line + 1, and whether it is fenced

    def page(self) -> ParsedPage:
        headings = self._headings()
        self._loose = self._markup.is_loose
        title = text_field(self._front_matter, "title", "sidebar_label", "sidebarTitle", "linkTitle")
        top = next((h for h in headings if h.level == 1), None)
        description = plain(text_field(self._front_matter, "description", "summary"))
        if self._dialect.vue:
            self._inline.values = self._front_matter
            title = title or hero_name(self._front_matter)
        sections, content = self._sections(headings, title, description)
        anchors = {h.anchor for h in headings} | self._inline.anchors
        if self._dialect.slugs == "mdn":
            anchors.update(self._terms())
        return ParsedPage(
            path=self._path,
            title=plain(title) or (top.text if top is not None else ""),
            description=description,
            front_matter=self._front_matter,
            sections=sections,
            anchors=frozenset(anchors),
            links=tuple(self._links()),
            content=content,
        )

    def _number(self, line: int) -> int:
        """Return the number in the file, from 0, of a line of the page's own text."""
        line += self._first
        return line if self._numbers is None else self._numbers[min(line, len(self._numbers) - 1)]

    def _terms(self) -> Iterator[str]:
        """MDN names each term of a definition list, as a heading."""
        for source in _TERM.findall(self._body):
            text = unmarked(Cleaner(self._dialect, mdx=False).clean(source)).strip()
            if text:
                yield slug(text.split(" ")[0] if text.endswith(")") else text, "mdn")

    def _headings(self) -> list[_Heading]:
        """Return the headings that divide the page; a heading inside a list or quote only has an anchor."""
        found = []
        for block in self._markup.blocks:
            if block.kind in ("fence", "code"):
                self._code.append((block.first, block.after, block.kind == "fence"))
            elif block.kind == "heading":
                heading = self._heading(block)
                if block.depth == 0:
                    found.append(heading)
                else:
                    self._inline.anchors.add(heading.anchor)
        return found

    def _heading(self, block: Block) -> _Heading:
        source = without_comments(block.text[: 10 * MAX_HEADING])
        custom = _HEADING_ID.search(source)
        own = _HEADING_LINK.search(source) if self._dialect.slugs == "gitbook" else None
        if own is not None:
            source = source[: own.start()]
            custom = own
        if custom is not None:
            source = source[: custom.start()]
        elif self._dialect.vue:
            source = _HEADING_CLASS.sub("", source)
        written = source
        source = _LINKED_IMAGE.sub(r"\1", _SIGN_ATTRIBUTES.sub(r"<\1\2>", source))
        cleaned = self._inline.clean(source.strip())
        bare = _SIGN.sub(" ", source).strip()
        text = plain(self._inline.clean(bare)) if bare != source.strip() else ""
        badges = " ".join(filter(None, map(self._badge_words, _SIGN.finditer(written)))) if text else ""
        anchor = next(filter(None, custom.groups()), "") if custom is not None else ""
        if anchor:
            self._anchors.take(anchor)
        elif self._dialect.vue:
            anchor = self._anchors.of(unmarked(_TAG.sub("", source)))
        else:
            anchor = self._anchors.of(unmarked(_typographic(cleaned) if self._dialect.shortcodes else cleaned))
        is_code = source.lstrip().startswith(("`", "<code>"))
        return _Heading(block.first, block.after, block.level, text or plain(cleaned), anchor, is_code, badges)

    def _badge_words(self, sign: re.Match[str]) -> str:
        """Return the words that a badge shows; none of an icon or a picture."""
        if sign[0].startswith("!") or "Icon" in sign[0][:60]:
            return ""
        return plain(self._inline.clean(sign[0]))

    def _sections(
        self, headings: Sequence[_Heading], title: str, description: str
    ) -> tuple[tuple[PageSection, ...], str]:
        sections: list[PageSection] = []
        home = home_text(self._front_matter) if self._dialect.vue else ""
        content: list[str] = [home] if home else []
        if home:
            sections.append(PageSection("", (), "", home, 1, max(1, self._first)))
        above: list[tuple[int, str]] = []
        last = len(self._lines) - (len(self._lines) > 1 and not self._lines[-1])  # a line's end begins no other line
        bounds = [*headings, None]
        first_line = headings[0].line if headings else last
        top_parts = self._parts(0, first_line)
        top_heading, top_start = "", 0
        start_index = 0
        if headings and headings[0].level == 1 and not top_parts:
            # The page's own name, not a section of it.
            named = headings[0]
            top_heading = "" if named.text == plain(title) or not title else named.text
            top_parts = self._parts(named.end, headings[1].line if len(headings) > 1 else last)
            start_index, top_start = 1, 0
            first_line = headings[1].line if len(headings) > 1 else last
        path = (top_heading,) if top_heading else ()
        self._add(sections, "", path, top_parts, top_start, first_line, heading=top_heading)
        content.extend(text for _, _, text in top_parts)
        for index in range(start_index, len(headings)):
            heading, following = headings[index], bounds[index + 1]
            end = following.line if following is not None else last
            while above and above[-1][0] >= heading.level:
                above.pop()
            above.append((heading.level, heading.text))
            parts = self._parts(heading.end, end)
            content.append(f"{'#' * heading.level} {heading.text}")
            content.extend(text for _, _, text in parts)
            parent_only = not parts and following is not None and following.level > heading.level
            if heading.badges:
                parts = [(heading.line, heading.end, heading.badges), *parts]
            if not parent_only:
                self._add(
                    sections, heading.anchor, tuple(text for _, text in above), parts, heading.line, end,
                    heading=heading.text, is_code=heading.is_code,
                )  # fmt: skip
        if not sections and (title or description or headings):
            sections.append(
                PageSection("", (), "", description, 1 + self._number(0), 1 + self._number(max(last, 1) - 1))
            )
        return tuple(sections), "\n\n".join(filter(None, content))

    def _add(
        self,
        sections: list[PageSection],
        anchor: str,
        path: tuple[str, ...],
        parts: Sequence[tuple[int, int, str]],
        start: int,
        end: int,
        *,
        heading: str,
        is_code: bool = False,
    ) -> None:
        if not parts:
            if anchor:
                first, last = 1 + self._number(start), 1 + self._number(end - 1)
                sections.append(PageSection(heading, path, anchor, "", first, last, is_code=is_code))
            return
        groups = _grouped(parts)
        for index, group in enumerate(groups):
            first = start if index == 0 else group[0][0]
            after = groups[index + 1][0][0] if index + 1 < len(groups) else end
            text = "\n\n".join(text for _, _, text in group)
            begins, ends = 1 + self._number(first), 1 + self._number(after - 1)
            entries = entries_of(text)
            if entries:
                numbers = [1 + self._number(line) for line in range(first, after)]
                entries = located(entries, self._lines[first:after], numbers)
            sections.append(PageSection(heading, path, anchor, text, begins, ends, entries, is_code=is_code))

    def _parts(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """Cleaned blocks of prose and whole blocks of code between two lines, none of them empty."""
        parts: list[tuple[int, int, str]] = []
        at = start
        for index in range(bisect_left(self._code, (start,)), bisect_left(self._code, (end,))):
            first, after, fenced = self._code[index]
            if first < at:
                continue
            self._prose(parts, at, first)
            after = min(after, end)
            code = _code_text(self._lines[first:after], fenced=fenced)
            code = shown_code(code, self._dialect) if fenced else code
            if code.strip():
                parts.append((first, after, code))
            at = after
        self._prose(parts, at, end)
        return parts

    def _prose(self, parts: list[tuple[int, int, str]], start: int, end: int) -> None:
        if start >= end:
            return
        raw = "\n".join(self._lines[start:end])
        if not raw or raw.isspace():
            return
        text = self._inline.clean(raw)
        if self._inline.used:
            self._prose_with_snippets(parts, start, end, text)
            return
        if self._loose:
            text = _dedented(text)
        if len(text) <= MAX_SECTION:
            text = _tidy(text)
            if text:
                parts.append((start, end, text))
            return
        # Long prose is kept by paragraph, so that it can be parted; lines still count as in the file.
        at = start
        for paragraph in re.split(r"\n[ \t]*\n", text):
            lines = paragraph.count("\n") + 2
            tidy = _tidy(paragraph)
            if tidy:
                parts.append((min(at, end - 1), min(at + lines, end), tidy))
            at += lines

    def _prose_with_snippets(self, parts: list[tuple[int, int, str]], start: int, end: int, text: str) -> None:
        used, self._inline.used = self._inline.used, []
        shown = [self._others.text(name) for name in dict.fromkeys(used)]
        tidy = _tidy(_dedented(text)) if text.strip() else ""
        parts.append((start, end, "\n\n".join(filter(None, (tidy, *shown)))))

    def _links(self) -> Iterator[Link]:
        for link in self._markup.links[:MAX_LINKS]:
            if link.kind == "definition" or link.is_image:
                continue
            href = self._cleaned(link.target)
            if not href:
                continue
            words = shown_words(link.tag, dict(link.attributes)) if link.attributes else []
            text = plain(self._cleaned(words[0] if words else link.label))
            yield Link(href, text, 1 + self._number(self._markup.line_of(link.begin) - 1 - self._first))

    def _cleaned(self, text: str) -> str:
        return Cleaner(self._dialect, mdx=self._mdx).clean(text) if "{" in text or "<" in text else text


def _grouped(parts: Sequence[tuple[int, int, str]]) -> list[list[tuple[int, int, str]]]:
    """Runs of blocks of at most ``MAX_SECTION`` characters, unless one block alone is longer."""
    groups: list[list[tuple[int, int, str]]] = [[]]
    size = 0
    for part in parts:
        if groups[-1] and size + len(part[2]) > MAX_SECTION:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += len(part[2])
    return groups


def _typographic(heading: str) -> str:
    """Hugo makes dashes of two or three hyphens, except in code, and drops them from anchors."""
    return _HYPHENS.sub(lambda found: found[0] if found[0][0] == "`" else "", heading) if "--" in heading else heading


def _code_text(lines: Sequence[str], *, fenced: bool) -> str:
    if not fenced:
        return "\n".join(lines).rstrip()
    indent = len(lines[0]) - len(lines[0].lstrip(" \t"))
    if indent:
        lines = [line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    return "\n".join(lines).rstrip()


def _tidy(text: str) -> str:
    text = (
        re.sub(r"(?<![ \t])[ \t]++(?=\n|\Z)", "", text)
        if " \n" in text or text[-1:] in " \t" or "\t\n" in text
        else text
    )
    if "\n\n\n" in text:
        text = re.sub(r"\n{3,}", "\n\n", text)
    return text.strip("\n")


def _dedented(text: str) -> str:
    """Components indent what is in them; without their tags that would read as code."""
    out = []
    base = -1
    for line in text.split("\n"):
        words = line.lstrip(" \t")
        indent = len(line) - len(words)
        if not words:
            out.append("")
        elif _LIST_ITEM.match(words):
            base = indent if base < 0 or indent < base else base
            out.append(line[base:])
        elif base >= 0 and indent > base:
            out.append(line[base:])
        else:
            base = -1
            out.append(words)
    return "\n".join(out)
