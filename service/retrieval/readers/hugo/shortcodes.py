"""Shortcodes of Hugo as their readers see them: those of the site where they are simple, well-known ones by their
names, and of the others the inner text. Files that they show are shown where they are.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping

from msgspec import Struct

from service.markup.dialects.shortcodes import Call, calls_in
from service.markup.fences import fenced
from service.markup.front_matter import split_front_matter, text_field
from service.retrieval.readers.hugo.shortcode_templates import INNER, Facts, NotSimple, shown_by
from service.retrieval.readers.hugo.site import MAX_INCLUDED, HugoSite

MAX_FILES, MAX_MADE, MAX_NESTED = 50, 400_000, 3
"""Limits for the other files of a page, for the characters shown of each and of all, and for files in files."""
MAX_LISTED = 200
"""Pages or terms in a list of them."""


class Expanded(Struct, frozen=True):
    """A page's text with its shortcodes expanded, and the line of the file that each of its lines is from."""

    text: str
    lines: tuple[int, ...]


def expand(text: str, site: HugoSite) -> Expanded | None:
    """Return the text as its readers see it; None where it has no shortcodes."""
    calls = calls_in(text)
    if not calls:
        return None
    return _Expansion(site).page(text, calls)


class _Written:
    """A text that is put together, with the line that each of its lines is from."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.lines = [1]

    def add(self, text: str, line: int, *, is_own: bool) -> None:
        self.pieces.append(text)
        for _ in range(text.count("\n")):
            line += is_own
            self.lines.append(line)

    @property
    def last(self) -> str:
        return next((piece[-1] for piece in reversed(self.pieces) if piece), "\n")


class _Expansion:
    def __init__(self, site: HugoSite) -> None:
        self._site = site
        self._files = 0
        self._room = MAX_MADE

    def page(self, text: str, calls: list[Call]) -> Expanded:
        out = _Written()
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._write(out, text, (0, len(text)), calls, lambda at: bisect_right(starts, at), nested=0)
        return Expanded("".join(out.pieces), tuple(out.lines))

    def _text(self, text: str, *, nested: int) -> str:
        """Return another file's text with its own shortcodes expanded."""
        calls = calls_in(text) if nested < MAX_NESTED else []
        out = _Written()
        self._write(out, text, (0, len(text)), calls, lambda _: 1, nested=nested)
        return "".join(out.pieces)

    def _write(
        self, out: _Written, text: str, part: tuple[int, int], calls: list[Call], line_of: Callable[[int], int], *,
        nested: int,
    ) -> None:  # fmt: skip
        at, end = part
        number = 0
        while number < len(calls):
            call = calls[number]
            out.add(text[at : call.start], line_of(at), is_own=True)
            number += 1
            within = []
            while number < len(calls) and call.has_inner and calls[number].start < call.after:
                within.append(calls[number])
                number += 1
            at = call.after if call.has_inner else call.end
            line = line_of(call.start)
            indent = _indent(text, call.start)
            shown = self._shown(call, text[call.end : call.inner_end] if call.has_inner else "", nested)
            before, marker, after = shown.partition(INNER)
            self._add(out, before, line, indent)
            if marker:
                if before[-1:].strip() and not text[call.end : call.end + 1].isspace():
                    out.add(" ", line, is_own=False)
                self._write(out, text, (call.end, call.inner_end), within, line_of, nested=nested)
                line = line_of(call.inner_end)
            if after.startswith("\n") and out.last == "\n":
                after = after[1:]
            self._add(out, after, line, indent)
        out.add(text[at:end], line_of(at), is_own=True)

    def _add(self, out: _Written, made: str, line: int, indent: str) -> None:
        made = made[: self._room]
        self._room -= len(made)
        if indent and "\n" in made:
            made = made.replace("\n", "\n" + indent)
        out.add(made, line, is_own=False)

    def _shown(self, call: Call, inner: str, nested: int) -> str:
        """Return what a call shows, ``INNER`` in it for its inner text."""
        template = self._site.template(call.name) if call.name not in _ALWAYS else None
        if template is not None:
            try:
                return shown_by(template, Facts(call, self._site.param, self._site.site_param))
            except NotSimple:
                if call.name not in _KNOWN and _READS_FILES.search(template):
                    return self._file(call, nested)
        if call.name in _SHOWS_FILE:
            return self._file(call, nested)
        known = _KNOWN.get(call.name)
        if known is not None and not self._room and not call.has_inner:
            return ""
        if known is not None:
            shown = known(call, self._site, inner)
            return self._text(shown, nested=nested + 1) if "{{" in shown and INNER not in shown else shown
        return _unknown(call, self._site, inner)

    def _file(self, call: Call, nested: int) -> str:
        name = call.argument(0, "file", "path", "include", "src")
        as_code = call.name in _SHOWS_CODE or call.named.get("code") == "true" or "language" in call.named
        if not name:
            return INNER if call.has_inner else ""
        if self._files >= MAX_FILES or nested >= MAX_NESTED:
            return ""
        self._files += 1
        found = self._site.file(name)
        if found is None:
            return INNER if call.has_inner else ""
        path, text = found
        suffix = path.rpartition(".")[2]
        if as_code or suffix not in ("md", "markdown", "html", "txt"):
            return (
                "\n"
                + fenced(text[:MAX_INCLUDED].strip("\n"), _language(call.argument(1, "language", "lang") or suffix))
                + "\n"
            )
        body = text[split_front_matter(text)[1] :][:MAX_INCLUDED].strip("\n")
        return self._text(body, nested=nested + 1)


def _indent(text: str, at: int) -> str:
    """Return the indentation of further lines at a place: that of its line, or of the item of a list."""
    lead = text[text.rfind("\n", 0, at) + 1 : at]
    if len(lead) > 40:
        return ""
    marker = re.match(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+", lead)
    return " " * len(marker[0]) if marker is not None else lead if lead.isspace() else ""


def _code(call: Call, inner: str, language: str) -> str:
    """Return a fence around the inner text, which stays where it is."""
    fence = fenced(inner).partition("\n")[0]
    gap = "" if inner.startswith("\n") else "\n"
    return f"{fence}{_language(language)}{gap}{INNER}\n{fence}" if call.has_inner else ""


def _language(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_+#.-]", "", name)


def _highlight(call: Call, _: HugoSite, inner: str) -> str:
    return _code(call, inner, call.argument(0, "lang", "language", "type"))


def _code_toggle(call: Call, _: HugoSite, inner: str) -> str:
    return _code(
        call, inner, "toml" if re.search(r"^[^\S\n]*+(?:[\w.'\"-]++[^\S\n]*+=|\[)", inner, re.MULTILINE) else "yaml"
    )


def _reference(call: Call, _: HugoSite, __: str) -> str:
    return call.argument(0, "path")


def _labelled(label: str) -> Callable[[Call, HugoSite, str], str]:
    def shown(call: Call, _: HugoSite, __: str) -> str:
        title = call.argument(9, "title", "header", "heading") or label
        return f"**{title}:** {INNER}" if call.has_inner else ""

    return shown


def _titled(call: Call, _: HugoSite, __: str) -> str:
    """Show a title that is named, or given as words, and the inner text."""
    given = (
        call.positional[0]
        if call.positional and (" " in call.positional[0] or call.positional[0][:1].isupper())
        else ""
    )
    title = call.argument(9, "title", "summary", "header", "heading", "name", "label", "tabName", "text") or given
    if not call.has_inner:
        return title
    return f"**{title}**\n\n{INNER}\n" if title else INNER


def _tab(call: Call, site: HugoSite, inner: str) -> str:
    language = call.argument(9, "codelang", "lang")
    title = call.argument(0, "name", "header", "title", "tabName")
    lead = f"\n**{title}**\n\n" if title else ""
    named = call.argument(9, "include")
    if named:
        found = site.file(named if "." in named.rpartition("/")[2] else f"{named}.md")
        if found is None or site.is_page(found[0]):  # a page is found at its own address, and not by each of its tabs
            return lead
        body = found[1][split_front_matter(found[1])[1] :][:MAX_INCLUDED].strip("\n")
        return f"{lead}{body}\n"
    if not call.has_inner:
        return lead
    return lead + (_code(call, inner, language) if language else INNER) + "\n"


def _figure(call: Call, _: HugoSite, __: str) -> str:
    shown = dict.fromkeys(call.argument(9, name) for name in ("title", "caption", "alt"))
    if call.named.get("title") or call.named.get("caption"):
        shown = dict.fromkeys(call.argument(9, name) for name in ("title", "caption"))
    return " ".join([*(each for each in shown if each), *([INNER] if call.has_inner else [])])


def _parameter(call: Call, site: HugoSite, _: str) -> str:
    return site.param(call.argument(0, "name", "key"))


def _heading(call: Call, _: HugoSite, __: str) -> str:
    name = call.argument(0, "name")
    return _HEADINGS.get(name, name)


def _feature_state(call: Call, _: HugoSite, __: str) -> str:
    version, state = call.argument(9, "for_k8s_version", "version"), call.argument(0, "state", "status")
    return f"**Feature state:** {' '.join(filter(None, (version, f'[{state}]' if state else '')))}"


def _since(words: str) -> Callable[[Call, HugoSite, str], str]:
    def shown(call: Call, _: HugoSite, __: str) -> str:
        version = call.argument(0, "version")
        lead = f"{words} {version}" if version else ""
        return f"{lead}\n\n{INNER}" if call.has_inner else lead

    return shown


def _tooltip(call: Call, site: HugoSite, _: str) -> str:
    term = call.argument(0, "term_id", "term")
    if call.named.get("text"):
        return call.named["text"]
    path = site.term(term)
    title = text_field(site.front_matter(path), "title") if path is not None else ""
    return title or term.replace("-", " ")


def _definition(call: Call, site: HugoSite, _: str) -> str:
    """Show a term's text: as far as ``<!--more-->``, unless all of it is asked for."""
    path = site.term(call.argument(0, "term_id", "term"))
    if path is None:
        return call.argument(9, "text")
    text = _body(site, path)
    short, _more, rest = text.partition("<!--more-->")
    if call.named.get("length") == "all":
        short = f"{short.strip()}\n\n{rest.strip()}"
    return " ".join(filter(None, (call.argument(9, "prepend"), short.strip())))


def _glossary(_: Call, site: HugoSite, __: str) -> str:
    """Show every term with its text, but for those that are sections of the page with files of their own."""
    shown = []
    for path in [path for path in site.terms() if not site.shows(path)][:MAX_LISTED]:
        title = text_field(site.front_matter(path), "title") or path.rpartition("/")[2].rpartition(".")[0]
        shown.append(f"## {title}\n\n{_body(site, path)}")
    return "\n\n".join(shown)


def _body(site: HugoSite, path: str) -> str:
    found = site.file("/" + path)
    return found[1][split_front_matter(found[1])[1] :][:MAX_INCLUDED].strip() if found is not None else ""


def _pages_of_section(call: Call, site: HugoSite, _: str) -> str:
    lines = []
    for path in site.pages_below(call.argument(0, "path", "section"))[:MAX_LISTED]:
        front_matter = site.front_matter(path)
        title = text_field(front_matter, "linkTitle", "linktitle", "title")
        description = text_field(front_matter, "description")
        lines.append(f"- {title}" + (f": {description}" if description else ""))
    return "\n".join(lines)


def _description(call: Call, site: HugoSite, _: str) -> str:
    path = site.page(call.argument(0, "path", "page"))
    return text_field(site.front_matter(path), "description") if path is not None else ""


def _nothing(_: Call, __: HugoSite, ___: str) -> str:
    return ""


def _unknown(call: Call, _: HugoSite, __: str) -> str:
    """Show the inner text, or the words that an argument gives for readers."""
    title = call.argument(9, "title", "heading", "header", "label")
    if call.has_inner:
        return f"**{title}**\n\n{INNER}" if title else INNER
    return call.argument(9, "text") or title or call.argument(9, "caption", "alt", "name")


_READS_FILES = re.compile(r"GetPage|[rR]eadFile|Resources\.Get|RawContent|RenderShortcodes")
"""Templates that show another page or file."""
_Known = Callable[[Call, HugoSite, str], str]
_ALWAYS = frozenset(("ref", "relref", "glossary_tooltip", "glossary_definition"))
"""Shortcodes whose templates only Hugo can carry out."""
_SHOWS_CODE = frozenset(("codenew", "code_sample", "code-sample", "code", "example", "codefile", "code-include"))
_SHOWS_FILE = _SHOWS_CODE | {
    "include", "readfile", "readFile", "includemd", "include-md", "snippet", "include_relative", "include-file",
    "embed-md",
}  # fmt: skip
_BOXES = ("note", "warning", "caution", "tip", "info", "important", "danger")
_KNOWN: Mapping[str, _Known] = {
    **dict.fromkeys(("ref", "relref"), _reference),
    **dict.fromkeys(("highlight", "code-block", "codeblock", "hl", "mermaid", "plantuml"), _highlight),
    "code-toggle": _code_toggle,
    **{name: _labelled(name.capitalize()) for name in _BOXES},
    **dict.fromkeys(
        ("alert", "callout", "hint", "admonition", "notice", "details", "expand", "collapse", "spoiler", "card",
         "cardpane", "accordion", "accordion-item", "section", "step", "button"),
        _titled,
    ),
    **dict.fromkeys(("tab", "codetab", "code-tab"), _tab),
    **dict.fromkeys(("figure", "img", "image", "imgproc", "picture"), _figure),
    "param": _parameter,
    "heading": _heading,
    "feature-state": _feature_state,
    "new-in": _since("New in"),
    "deprecated-in": _since("Deprecated in"),
    "glossary_tooltip": _tooltip,
    **dict.fromkeys(("glossary_definition", "glossary-term", "glossary-definition"), _definition),
    "glossary": _glossary,
    **dict.fromkeys(
        ("render-list-of-pages-in-section", "render-table-of-pages-in-section", "list-pages-in-section",
         "list-pages-table", "children", "section-index"),
        _pages_of_section,
    ),
    "quick-reference": _pages_of_section,
    "get-page-desc": _description,
    **dict.fromkeys(("comment", "toc", "eturl", "style", "script", "clearfix"), _nothing),
}  # fmt: skip
_HEADINGS = {
    "whatsnext": "What's next", "prerequisites": "Before you begin", "objectives": "Objectives",
    "cleanup": "Cleaning up", "synopsis": "Synopsis", "options": "Options", "seealso": "See also",
    "examples": "Examples", "parentoptions": "Options inherited from parent commands",
}  # fmt: skip
