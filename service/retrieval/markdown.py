"""A Markdown or MDX page to its title, facts, sections, anchors and links.

markdown-it finds the blocks (headings, code); its inline half is left off, which makes it twice as fast, because what
is kept of a section is its source, cleaned of what no reader sees. Facts the cleaning relies on:

- MDX (mdxjs.com/docs/what-is-mdx) has no indented code and no HTML blocks, ``import``/``export`` stand at the margin
  and end at a blank line at the earliest, comments are ``{/* */}``. Docusaurus reads ``.md`` as MDX too.
- Hugo's shortcodes are ``{{< >}}`` and ``{{% %}}``; ``{{</* */>}}`` shows one
  (gohugo.io/content-management/shortcodes).
- Liquid's tags are ``{% %}`` (Jekyll, GitBook); of them and of shortcodes, titles and the like are kept.
- MDN's macros are ``{{name("argument", "text")}}``: cross-references show their text, the others are page furniture.
- Anchors are github-slugger's: lower case, punctuation out, spaces to ``-``, repeats get ``-1``; Python-Markdown's
  differ.

Pages come from strangers: sizes are capped, the YAML loader makes strings only (no merge keys, no tags, no dates), and
the regular expressions are atomic where they could backtrack. Whatever is wrong with a page ends as a ``Skipped``.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

from service.domain.sites import Skipped

SUFFIXES = (".md", ".mdx", ".markdown")
MAX_PAGE_BYTES = 1 << 20
MAX_LINES = 50_000
MAX_FRONT_MATTER = 64 << 10
MAX_YAML_BYTES = 512 << 10
MAX_ALIASES = 20
MAX_DEPTH = 50
MAX_HEADING = 300
MAX_SECTION = 6000
"""Characters of a section's text beyond which it is parted between its blocks."""
MAX_LINKS = 5000
MAX_INDENT = 200

Facts = Mapping[str, object]
"""Front matter: every scalar is a string, as written."""


class Link(Struct, frozen=True):
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


class ParsedPage(Struct, frozen=True):
    path: str
    title: str
    """By front matter or the first top heading; empty when the page does not say."""
    description: str
    facts: Facts
    sections: tuple[PageSection, ...]
    anchors: frozenset[str]
    """All that a link into the page may name."""
    links: tuple[Link, ...]
    content: str
    """The whole page as clean Markdown."""


class Dialect(Struct, frozen=True):
    """How a site reads its Markdown."""

    mdx: bool = False
    """``.md`` files too; ``.mdx`` are in any case."""
    shortcodes: bool = False
    """Hugo's."""
    slugs: str = "github"
    """Or ``python``, as Python-Markdown (MkDocs) makes anchors."""


PLAIN = Dialect()


def parse_page(data: bytes, path: str, dialect: Dialect = PLAIN) -> ParsedPage | Skipped:
    """Never raises for what is in the page."""
    if len(data) > MAX_PAGE_BYTES:
        return Skipped(path, f"It is larger than {MAX_PAGE_BYTES >> 20} MiB.")
    if data.count(b"\n") > MAX_LINES:
        return Skipped(path, f"It has more than {MAX_LINES:,} lines.")
    if b"\0" in data:
        return Skipped(path, "It is not text.")
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(path, "It is not UTF-8 text.")
    try:
        return _Reader(source, path, dialect).page()
    except RecursionError:
        return Skipped(path, "It is nested too deeply.")


def slug(text: str, style: str = "github") -> str:
    """The anchor of a heading's text, before repeats are numbered."""
    if style == "python":
        ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_text).strip().lower())
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


# Front matter


class _Strings(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]  # libyaml: ten times as fast
    """Scalars stay strings: a title ``1.10`` or ``2024-01-01`` is what its author wrote, and nothing can be built."""


_ALIAS = re.compile(r"(?:^|[\s\[{,:-])\*[\w-]", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(r"(?:[-?][ \t]+){20}")
_DEEP_KEY = re.compile(r"(?:[\w-]{1,50}[ \t]*\.[ \t]*){20}")
_SIMPLE_FACT = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:[ \t]+(.*\S)", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\s*?(---|\+\+\+)[ \t]*\n(.*?)(?:^|\n)(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def _flow_depth(text: str) -> int:
    """At least as deep as the brackets really nest: those in quotes are counted too."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match[0] in "[{" else -1 if depth else 0
        deepest = max(depth, deepest)
    return deepest


def load_strings(text: str) -> object:
    """YAML of which every scalar is a string; raises ValueError for what is broken or out of bounds."""
    if len(text) > MAX_YAML_BYTES or len(_ALIAS.findall(text)) > MAX_ALIASES:
        raise ValueError("too large, or too many aliases")
    if _DEEP_BLOCK.search(text) or _flow_depth(text) > MAX_DEPTH:
        raise ValueError("too deep")  # libyaml's composer would run out of stack, which nothing can catch
    try:
        return yaml.load(text, Loader=_Strings)  # noqa: S506  (makes strings, lists and mappings only)
    except (yaml.YAMLError, RecursionError, UnicodeError, TypeError) as error:
        raise ValueError("not YAML") from error


def load_toml(text: str) -> dict[str, object]:
    """Raises ValueError for what is broken or out of bounds."""
    if _DEEP_KEY.search(text) or _flow_depth(text) > MAX_DEPTH:
        raise ValueError("too deep")
    return tomllib.loads(text)


def split_front_matter(source: str) -> tuple[Facts, int]:
    """The facts, and where the page's own text begins. Broken YAML is read line by line: a title with a colon in it is
    the commonest mistake, and no reason to lose the page.
    """
    if source.lstrip()[:3] not in ("---", "+++"):
        return {}, 0
    match = _FRONT_MATTER.match(source, 0, MAX_FRONT_MATTER)
    if match is None:
        return {}, 0
    block = match[2]
    try:
        facts = load_toml(block) if match[1] == "+++" else load_strings(block)
    except (ValueError, RecursionError):
        facts = {key: value.strip("\"'") for key, value in _SIMPLE_FACT.findall(block)}
    if facts is None:
        return {}, match.end()
    if not isinstance(facts, dict):
        return {}, 0 if match[1] == "---" else match.end()
    return {str(key): value for key, value in facts.items() if isinstance(key, str)}, match.end()


def fact(facts: Facts, *names: str) -> str:
    """The first of these that is a scalar, as one line."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, str | int | float) and str(value).strip():
            return " ".join(str(value).split())
    return ""


def facts_list(facts: Facts, *names: str) -> tuple[str, ...]:
    """A list of words, however it is written: a list, or a string with commas."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, str) and value.strip():
            return tuple(word.strip() for word in value.split(",") if word.strip())[:100]
        if isinstance(value, list):
            return tuple(item.strip() for item in value[:100] if isinstance(item, str) and item.strip())
    return ()


def is_true(facts: Facts, *names: str) -> bool:
    return any(str(facts.get(name, "")).lower() in ("true", "yes", "on") for name in names)


# Inline: one pass over prose, code spans stepped over

_ATTRIBUTES = (
    r"""(?>(?:\s+|[^\s"'{}<>/=]+|=|/(?!>)|"[^"]*"|'[^']*'|\{(?>(?:[^{}]+|\{(?>(?:[^{}]+|\{[^{}]*\})*)\})*)\})*)"""
)
_PROSE = re.compile(
    r"(?P<code>``[^\n]{1,1000}?``|`[^`\n]{1,2000}(?:\n[^`\n]{1,2000})?`)"
    r"|(?P<shown>\{\{[<%]/\*(?P<inner>[^\n]{0,500}?)\*/[>%]\}\})"
    r"|(?P<shortcode>\{\{(?P<kind>[<%])(?P<call>(?>[^\n{}]{0,1000}))\}\})"
    r"|(?P<liquid>\{%-?(?P<liquid_call>(?>[^%\n]{0,500}))%\})"
    r"|(?P<macro>\{\{(?P<name>\s*[A-Za-z_][\w.-]*)\s*(?:\((?P<arguments>(?>[^(){}]{0,1000}(?:\([^(){}]*\)[^(){}]*)*))\))?[^{}]{0,200}\}\})"
    r"|<(?P<url>(?:https?://|mailto:)[^\s<>]{1,2000})>"
    r"|<(?P<raw>script|style|svg)\b" + _ATTRIBUTES + r">(?:[^<]|<(?!/?(?P=raw)\b)){0,20000}+</(?P=raw)\s*>"
    r"|<(?P<close>/?)(?P<tag>[A-Za-z][\w.:-]*|(?=>))(?P<attributes>" + _ATTRIBUTES + r")/?>"
    r"|(?P<admonition>^[ \t]*:::+[ \t]*(?P<box>[\w-]*)[ \t]*(?P<label>[^\n]{0,300})$)"
    r"|(?P<callout>^[ \t]*(?:!!!|\?\?\?\+?|===\+?)[ \t]+(?P<callout_kind>[\w-]*)[^\n\"]{0,100}"
    r"(?:\"(?P<callout_label>[^\"\n]{0,300})\")?[ \t]*$)"
    r"|(?P<jsx>\{(?P<literal>[\"'`])(?P<words>[^\"'`{}]{0,500})(?P=literal)\}|\{[^{}\n]{0,500}\})",
    re.MULTILINE | re.DOTALL,
)
_NOISE = re.compile(r"[<{]|^[ \t]*(?::::|!!!|\?\?\?|===)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`{}]*)["'`]\s*\})""")
_WORDS = frozenset(
    """
    title label heading header summary alt caption description question tip text name term path query body default
    """.split()  # noqa: SIM905  (as below)
)
_ONLY_COMPONENTS = frozenset(("name", "path", "query", "body", "header", "text", "default", "term"))
_ANCHORED = ("title", "label", "path", "name", "query", "body")
_HTML = frozenset(
    """
    a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption center cite code
    col colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure font footer
    form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link main map mark meta nav
    noscript object ol optgroup option output p param picture pre progress q s samp section select small source span
    strong sub summary sup table tbody td template textarea tfoot th thead time title tr track u ul var video wbr
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
_APART = frozenset(
    """
    br p div li tr td th h1 h2 h3 h4 h5 h6 dt dd table ul ol hr summary details section
    """.split()  # noqa: SIM905  (as above)
)
_CROSS_REFERENCE = re.compile(
    r"(?:xref|element|attr|header|status|method|glossary|rfc|csp|webextapiref|interface|term)$", re.IGNORECASE
)
_ARGUMENT = re.compile(r"""["']([^"']{0,300})["']""")
_CALL_NAMED = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|`([^`]*)`|([^\s"'`]+))""")
_CALL_PLAIN = re.compile(r"""(?:^|\s)(?:"([^"]*)"|`([^`]*)`|([^\s"'`=]+))(?=\s|$)""")
_SHORTCODE_WORDS = ("text", "title", "name", "label", "caption", "alt", "heading", "term_id")
_MARKDOWN_LINK = re.compile(
    r"`[^`\n]{1,1000}`|(?<!!)\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,500})\]\(\s*<?([^)\s<>\[]{1,1000})>?(?:\s+[\"'(][^)\n]{0,300})?\)"
)
_REFERENCE_LINK = re.compile(r"(?<![!\]])\[([^\[\]\n]{1,300})\](?:\[([^\[\]\n]{0,300})\])?(?![\[(:])")
_DEFINITION = re.compile(r"^[ ]{0,3}\[([^\[\]\n]{1,300})\]:\s*<?(\S{1,2000}?)>?(?=\s|$)", re.MULTILINE)
_HEADING_ID = re.compile(r"\s*(?:\{:?\s*#([^\s{}]+)[^{}]*\}|\[#([\w-]+)\]|\{/\*\s*#([\w-]+)\s*\*/\})\s*$")
_EMPHASIS = re.compile(r"(\*{1,3}|(?<![^\W_])_{1,3}|~~)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
_IMAGE_OR_LINK = re.compile(
    r"!?\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,500})\]\([^()\[\n]{0,1000}(?:\([^()\[\n]{0,300}\)[^()\[\n]{0,1000})?\)"
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


class _Inline:
    """Cleans prose, and gathers the links and anchors it meets. Keeps the number of lines as it is."""

    def __init__(self, dialect: Dialect, *, mdx: bool) -> None:
        self.links: list[Link] = []
        self.anchors: set[str] = set()
        self._mdx = mdx
        self._slugs = dialect.slugs
        self._line = 1
        self._text = ""

    def clean(self, text: str, line: int) -> str:
        if _NOISE.search(text):
            self._line, self._text = line, text
            text = _PROSE.sub(self._replace, text)
        if "](" in text:
            self._gather_links(text, line)
        return text

    def _gather_links(self, text: str, line: int) -> None:
        counted, at = line, 0
        for match in _MARKDOWN_LINK.finditer(text):
            if len(self.links) >= MAX_LINKS:
                return
            if match[2] is None:
                continue  # code
            counted += text.count("\n", at, match.start())
            at = match.start()
            self.links.append(Link(match[2], plain(match[1]), counted))

    def _replace(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        whole = match[0]
        if match["code"] is not None:
            return whole
        kept = self._kept(match, kind)
        missing = whole.count("\n") - kept.count("\n")
        return kept + "\n" * missing if missing > 0 else kept

    def _kept(self, match: re.Match[str], _kind: str | None) -> str:
        if match["shown"] is not None:
            return "{{< " + match["inner"].strip() + " >}}"
        if match["shortcode"] is not None:
            return self._shortcode(match["call"].rstrip(">% \t"))
        if match["liquid"] is not None:
            return self._shortcode(match["liquid_call"].rstrip("- \t"))
        if match["macro"] is not None:
            return _macro_text(match["name"].strip(), match["arguments"])
        if match["url"] is not None:
            return match[0]
        if match["raw"] is not None:
            return ""
        if match["tag"] is not None:
            return self._tag(match)
        if match["admonition"] is not None:
            words = " ".join(filter(None, (match["box"].capitalize(), match["label"].strip().strip("[]"))))
            return f"**{words}**" if words else ""
        if match["callout"] is not None:
            words = match["callout_label"] or match["callout_kind"].capitalize()
            return f"**{words}**\n"[: len(words) + 4] if words else ""
        if not self._mdx:
            return match[0]
        return match["words"] or ""

    def _shortcode(self, call: str) -> str:
        call = call.strip()
        name, _, rest = call.partition(" ")
        if name.startswith("/") or not name:
            return ""
        named: dict[str, str] = {key: a or b or c or d for key, a, b, c, d in _CALL_NAMED.findall(rest)}
        positional: list[str] = [a or b or c for a, b, c in _CALL_PLAIN.findall(rest)]
        if name in ("ref", "relref"):
            return named.get("path") or (positional[0] if positional else "")
        for key in _SHORTCODE_WORDS:
            if named.get(key):
                return named[key].replace("-", " ") if key == "term_id" else named[key]
        if name == "heading" and positional:
            return positional[0]
        return ""

    def _tag(self, match: re.Match[str]) -> str:
        tag = match["tag"]
        component = tag[:1].isupper() or "." in tag
        if not component and tag and tag.lower() not in _HTML and "-" not in tag:
            return match[0]  # a placeholder such as <name>
        attributes = match["attributes"]
        if match["close"] or not attributes.strip():
            return self._gap(match, component, tag)
        named = {key.lower(): unescape(a or b or c) for key, a, b, c in _ATTRIBUTE.findall(attributes)}
        for key in ("id", "name") if tag == "a" else ("id",):
            if named.get(key):
                self.anchors.add(named[key])
        words = [
            value.strip()
            for key, value in named.items()
            if key in _WORDS and value.strip() and (component or key not in _ONLY_COMPONENTS)
        ]
        if component:
            for key in _ANCHORED:
                if named.get(key):
                    self.anchors.add(slug(named[key], self._slugs))
        href = named.get("href") or (named.get("to") if component or tag == "a" else None)
        if href and len(self.links) < MAX_LINKS:
            shown = words[0] if words else self._shown(match)
            line = self._line + self._text.count("\n", 0, match.start())
            self.links.append(Link(href, plain(shown), line))
        if not words or tag == "a":
            return self._gap(match, component, tag)
        if self._at_line_start(match):
            return f"**{words[0]}**" + "".join(f"\n{word}" for word in words[1:]) + "\n"
        words = [value for value in words if value != named.get("tip")]  # seen on hover only
        return " ".join(words) + " " if words else ""

    def _shown(self, match: re.Match[str]) -> str:
        """What stands between ``<a href>`` and its end."""
        start = match.end()
        end = self._text.find("<", start, start + 300)
        return self._text[start:end] if end > start else ""

    def _gap(self, match: re.Match[str], component: bool, tag: str) -> str:
        if component:
            return ""
        return " " if tag.lower() in _APART and not self._at_line_start(match) else ""

    def _at_line_start(self, match: re.Match[str]) -> bool:
        before = self._text[max(0, match.start() - MAX_INDENT) : match.start()]
        line = before[before.rfind("\n") + 1 :]
        return not line.strip() and len(line) < MAX_INDENT


def _macro_text(name: str, arguments: str | None) -> str:
    if arguments is None or not _CROSS_REFERENCE.search(name):
        return ""
    values = _ARGUMENT.findall(arguments)
    shown = next((value for value in values[1:2] if value), values[0] if values else arguments.strip())
    return shown.rpartition("/")[2] if "/" in shown and not values[1:2] else shown


def plain(text: str) -> str:
    """Inline Markdown to words."""
    if "](" in text:
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    if "<" in text:
        text = re.sub(r"</?[A-Za-z][^<>]{0,300}>", "", text)
    if "*" in text or "_" in text or "~" in text:
        text = _EMPHASIS.sub(r"\2", text)
    text = _ESCAPE.sub(r"\1", text.replace("`", ""))
    if "&" in text:
        text = unescape(text)
    return " ".join(text.split())[:MAX_HEADING]


# Blocks


def _parser(*rules: str) -> MarkdownIt:
    # References and inline are read by our own expressions; list depth is bounded, deeper text stays text.
    return MarkdownIt("commonmark", {"maxNesting": 20}).disable(["inline", "text_join", "reference", *rules])


_MARKDOWN = _parser()
_MDX = _parser("code", "html_block")
_INDENTED_PROSE = re.compile(r"^(?:!!!|\?\?\?|===)", re.MULTILINE)
_FENCE = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])?[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_COMMENTS = (("<!--", "-->"), ("{/*", "*/}"), ("{{< comment >}}", "{{< /comment >}}"))
_ESM = re.compile(
    r"(?:import\s+(?:[\w*{][^'\"\n]{0,500}\sfrom\s+)?['\"]|import\s*\{\s*$|export\s+(?:const|let|var|default|function|async|class|\{|\*))"
)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")


class _Heading(Struct):
    line: int  # from 0
    end: int
    level: int
    text: str
    anchor: str


class _Reader:
    def __init__(self, source: str, path: str, dialect: Dialect) -> None:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        self._path = path
        self._dialect = dialect
        self._mdx = dialect.mdx or path.endswith(".mdx")
        self._facts, start = split_front_matter(source)
        self._first = source.count("\n", 0, start)  # the line, from 0, where the page's own text begins
        self._body = _blank_unseen(source[start:], mdx=self._mdx)
        self._lines = self._body.split("\n")
        self._inline = _Inline(dialect, mdx=self._mdx)
        self._used: dict[str, int] = {}
        self._code: list[tuple[int, int, bool]] = []  # first and last line + 1, and whether it is fenced

    def page(self) -> ParsedPage:
        loose = self._mdx or (self._dialect.slugs == "python" and _INDENTED_PROSE.search(self._body) is not None)
        tokens = (_MDX if loose else _MARKDOWN).parse(self._body)
        headings = self._headings(tokens)
        self._loose = loose
        title = fact(self._facts, "title", "sidebar_label", "sidebarTitle", "linkTitle")
        top = next((h for h in headings if h.level == 1), None)
        description = plain(fact(self._facts, "description", "summary"))
        sections, content = self._sections(headings, title, description)
        text_links = self._reference_links()
        anchors = {h.anchor for h in headings} | self._inline.anchors
        return ParsedPage(
            path=self._path,
            title=plain(title) or (top.text if top is not None else ""),
            description=description,
            facts=self._facts,
            sections=sections,
            anchors=frozenset(anchors),
            links=(*self._inline.links, *text_links),
            content=content,
        )

    def _headings(self, tokens: Sequence[Token]) -> list[_Heading]:
        """Those that part the page; a heading inside a list or quote only takes an anchor."""
        found = []
        for index, token in enumerate(tokens):
            if token.map is None:
                continue
            if token.type in ("fence", "code_block"):
                self._code.append((token.map[0], token.map[1], token.type == "fence"))
            elif token.type == "heading_open":
                heading = self._heading(tokens[index + 1].content, token.map, int(token.tag[1]))
                if token.level == 0:
                    found.append(heading)
                else:
                    self._inline.anchors.add(heading.anchor)
        return found

    def _heading(self, source: str, lines: Sequence[int], level: int) -> _Heading:
        source = source[: 10 * MAX_HEADING]
        custom = _HEADING_ID.search(source)
        if custom is not None:
            source = source[: custom.start()]
        text = plain(self._inline.clean(source, self._first + lines[0] + 1))
        anchor = next(filter(None, custom.groups()), "") if custom is not None else ""
        return _Heading(lines[0], lines[1], level, text, anchor or self._numbered(slug(text, self._dialect.slugs)))

    def _numbered(self, base: str) -> str:
        joint = "_" if self._dialect.slugs == "python" else "-"
        anchor, count = base, self._used.get(base, 0)
        while anchor in self._used:
            count += 1
            anchor = f"{base}{joint}{count}"
        self._used[base] = count
        self._used[anchor] = 0
        return anchor

    def _sections(
        self, headings: Sequence[_Heading], title: str, description: str
    ) -> tuple[tuple[PageSection, ...], str]:
        sections: list[PageSection] = []
        content: list[str] = []
        above: list[tuple[int, str]] = []
        last = len(self._lines)
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
        self._add(sections, "", path, "", top_parts, top_start, first_line, heading=top_heading)
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
            if not parent_only:
                self._add(
                    sections, heading.anchor, tuple(text for _, text in above), heading.text, parts, heading.line, end,
                    heading=heading.text,
                )  # fmt: skip
        if not sections and (title or description or headings):
            sections.append(PageSection("", (), "", description, self._first + 1, self._first + max(last, 1)))
        return tuple(sections), "\n\n".join(filter(None, content))

    def _add(
        self,
        sections: list[PageSection],
        anchor: str,
        path: tuple[str, ...],
        _text: str,
        parts: Sequence[tuple[int, int, str]],
        start: int,
        end: int,
        *,
        heading: str,
    ) -> None:
        if not parts:
            if anchor:
                sections.append(PageSection(heading, path, anchor, "", self._first + start + 1, self._first + end))
            return
        groups = _grouped(parts)
        for index, group in enumerate(groups):
            first = start if index == 0 else group[0][0]
            after = groups[index + 1][0][0] if index + 1 < len(groups) else end
            text = "\n\n".join(text for _, _, text in group)
            sections.append(PageSection(heading, path, anchor, text, self._first + first + 1, self._first + after))

    def _parts(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """Cleaned blocks of prose and whole blocks of code between two lines, none of them empty."""
        parts: list[tuple[int, int, str]] = []
        at = start
        for first, after, fenced in self._code:
            if first < at or first >= end:
                continue
            self._prose(parts, at, first)
            after = min(after, end)
            code = _code_text(self._lines[first:after], fenced=fenced)
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
        text = self._inline.clean(raw, self._first + start + 1)
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

    def _reference_links(self) -> Iterator[Link]:
        if "]:" not in self._body:
            return
        definitions = {label.casefold(): href for label, href in _DEFINITION.findall(self._body)[:MAX_LINKS]}
        if not definitions:
            return
        code = {line for first, after, _ in self._code for line in range(first, after)}
        line, at = 0, 0
        for match in _REFERENCE_LINK.finditer(self._body):
            href = definitions.get((match[2] or match[1]).casefold())
            if href is not None:
                line += self._body.count("\n", at, match.start())
                at = match.start()
                if line not in code:
                    yield Link(href, plain(match[1]), self._first + line + 1)


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


def _code_text(lines: Sequence[str], *, fenced: bool) -> str:
    if not fenced:
        return "\n".join(lines).rstrip()
    indent = len(lines[0]) - len(lines[0].lstrip(" \t"))
    if indent:
        lines = [line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    return "\n".join(lines).rstrip()


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+(?=\n|\Z)", "", text) if " \n" in text or text[-1:] in " \t" or "\t\n" in text else text
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


def _blank_unseen(body: str, *, mdx: bool) -> str:
    """Comments and MDX's ``import``/``export`` made blank, outside code, with every line kept."""
    if not any(start in body for start, _ in _COMMENTS) and "import" not in body and "export" not in body:
        return body
    out: list[str] = []
    fence = ""
    until = ""  # what ends the comment we are in
    braces = 0
    in_esm = False
    for line in body.split("\n"):
        if until:
            end = line.find(until)
            if end < 0:
                out.append("")
                continue
            line, until = line[end + len(until) :], ""
        if in_esm:
            braces += _braces(line)
            in_esm = bool(line.strip()) or braces > 0
            out.append("")
            continue
        mark = _FENCE.match(line)
        if fence:
            if mark is not None and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            out.append(line)
            continue
        if mark is not None:
            fence = mark[1]
            out.append(line)
            continue
        if line[:6] in ("import", "export") and _ESM.match(line) and (mdx or line.rstrip(";").endswith(("'", '"'))):
            braces = _braces(line)
            in_esm = braces > 0 or (mdx and line.startswith("import") and not line.rstrip("; ").endswith(("'", '"')))
            out.append("")
            continue
        for start, stop in _COMMENTS:
            line, until = _without(line, start, stop)
            if until:
                break
        out.append(line)
    if until or (in_esm and braces > 0):
        return body  # never closed, so it was none: a reader sees all of it
    return "\n".join(out)


def _without(line: str, start: str, stop: str) -> tuple[str, str]:
    """The line without such comments, and what ends one that is still open. Those in a code span stay, and so does the
    ``{/* #id */}`` that names a heading.
    """
    kept: list[str] = []
    at = 0
    ticks = 0
    is_heading = line.lstrip().startswith("#")
    while (begin := line.find(start, at)) >= 0:
        ticks += line.count("`", at, begin)
        end = line.find(stop, begin + len(start))
        if ticks % 2 or (is_heading and line[begin + len(start) : end].lstrip().startswith("#")):
            kept.append(line[at : begin + 1])
            at = begin + 1
            continue
        kept.append(line[at:begin])
        if end < 0:
            return "".join(kept), stop
        at = end + len(stop)
    return "".join(kept) + line[at:], ""


def _braces(line: str) -> int:
    return sum(line.count(c) for c in "{[(") - sum(line.count(c) for c in "}])")


# What search reads


_BARE_URL = re.compile(r"(?:https?://|mailto:)[^\s)>\]]{0,2000}")


def words_of(text: str) -> str:
    """A section's text as search reads it: without the addresses that its links and images go to."""
    if "](" in text:
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    if "://" in text:
        text = _BARE_URL.sub(" ", text)
    return text


def dumps(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


Parse = Callable[[bytes, str, Dialect], ParsedPage | Skipped]
