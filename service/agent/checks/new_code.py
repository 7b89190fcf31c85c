"""Code in pages: what the site's build or a reader's browser would run, and what of it a change adds.

A page that asks to be rewritten can ask for code, too, and people read a changed paragraph more closely than a changed
attribute. So code that no page of the site had before is named. Code is what MDX imports, exports and computes, HTML
that runs, and blocks that a generator executes; data is not: ``cols={2}`` and ``items={["a", "b"]}`` run nothing.

Pages are read as their generator reads them, as far as this service's own reader of Markdown does. Where a tag is
malformed, what follows it counts as part of it. The time is linear in the size of the text.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from posixpath import dirname, join, normpath

from msgspec import Struct

from service.agent.checks.pages import markdown_of
from service.agent.guards import javascript
from service.agent.guards.javascript import is_running_address
from service.markup.dialects.dialect import Dialect
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown

MAX_EXPRESSION = 5_000
"""Characters."""
MAX_READ = 500_000
"""Characters of a page that are read for the ends of expressions; behind that, each ends with its line."""
MAX_TAG = 5_000
"""Characters between the beginning of a tag and its last attribute."""

MAX_RESTORED = 100
"""Pieces of one page that are found to be no code; with more of them, all of its text is taken for prose."""

_STATEMENT = re.compile(r"^(?=(?:import|export)\b)", re.MULTILINE)
_TAG = re.compile(
    r"<(script|iframe|object|embed|applet|base|frameset|frame|portal|meta)(?=[\s/>])[^>]{0,2000}>?", re.IGNORECASE
)
_HANDLER = re.compile(
    r"(?<=[\s\"'/}])(?:on(?!ce\b|ly\b|line\b|es\b|going\b|site\b|set\b|ward)[a-z]{3,30}|dangerouslySetInnerHTML|srcdoc)\s{0,20}=",
    re.IGNORECASE,
)
"""Behind a tag, ``only = 1`` is prose."""
_VUE_DIRECTIVE = re.compile(r"(?<=\s)(?:v-[a-z]|[@:#][\w-])[^\s=<>]{0,100}=")
_VALUE = re.compile(r"=\s{0,20}[{\"'`]{0,3}([^<>\n]{1,100})|<(?=[^\s<>]{1,100}:)([^<>\n]{1,100})")
_RELATIVE = re.compile(r"(?<=['\"])\.\.?/[^'\"\n]{1,500}")
_BRACE = re.compile(r"[{}]")
_INTERPOLATION = re.compile(r"\{\{([^{}]{1,1000})\}\}")
_TEMPLATE = re.compile(r"\{\{[^\n{}]{1,500}+\}\}|\{%[^\n%]{1,500}+%\}|<[%?][^\n%?<>]{1,500}+[%?]>")
_EXECUTED_FENCE = re.compile(
    r"\{(?:code-cell|jupyter-execute|eval-rst|raw|plot|ipython|program-output|command-output|exec)\b|.*\bexec\s*="
    r"|(?:jsx?|tsx?)\b.*\blive\b",
    re.IGNORECASE,
)
_EXECUTED_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+(?P<name>raw|jupyter-execute|plot|ipython|program-output|command-output|exec"
    r"|eval-rst|role)::(?P<rest>[^\n]*)(?P<body>(?:\n(?:(?P=indent)[ \t]+[^\n]*|[ \t]*(?=\n)))*+)",
    re.MULTILINE,
)
_PASSED_THROUGH = re.compile(
    r"^\+{4}\n(.*?)^\+{4}$|\+\+\+([^\n]{1,2000}?)\+\+\+|pass:[\w,]{0,20}\[([^\]\n]{0,2000})\]|(?:link|image):([^\s\[]{1,500})\[",
    re.MULTILINE | re.DOTALL,
)


class Code(Struct, frozen=True):
    """A piece of code in a page."""

    kind: str
    """For people: ``an import``."""
    text: str
    line: int
    key: str
    """Equal for the same code on two pages."""


def code_of(text: str, path: str, dialect: Dialect, *, vue: bool = False) -> list[Code]:
    """Return the code in a page; ``vue``: the site is one of VitePress, whose pages are templates of Vue."""
    lowered = path.lower()
    if is_markdown(lowered):
        found = _in_markdown(markdown_of(text, path, dialect), vue=vue)
    elif lowered.endswith((".html", ".htm")):
        found = [*_in_html(text), *_matches(text, _TEMPLATE, "a template's tag")]
    elif lowered.endswith(".rst"):
        found = [*_in_rst(text)]
    elif lowered.endswith(".adoc"):
        found = [*_in_asciidoc(text)]
    else:
        return []
    lines = _Lines(text)
    placed = sorted(found, key=lambda one: one[2])
    return [Code(kind, written, lines.of(start), _key(kind, written, path)) for kind, written, start in placed]


def _key(kind: str, written: str, path: str) -> str:
    if kind == "an import":  # the same name is another file from another folder
        written = _RELATIVE.sub(lambda match: normpath(join(dirname(path), match[0])), written)
    return " ".join(written.split())


def added(pieces: Iterable[Code], known: Collection[str]) -> list[Code]:
    """Return the pieces that are not among the known, each once."""
    found: dict[str, Code] = {}
    for piece in pieces:
        if piece.key not in known:
            found.setdefault(piece.key, piece)
    return list(found.values())


_Piece = tuple[str, str, int]
"""Kind, text, and where it begins."""


def _in_markdown(page: Markdown, *, vue: bool) -> list[_Piece]:
    found: list[_Piece] = []
    for block in page.blocks:
        start, end = page.place_of(block)
        if block.kind == "unseen" and page.mdx:
            found += _statements(page.text[start:end], start)
        elif block.kind == "fence" and _EXECUTED_FENCE.match(block.info):
            if block.info.startswith("{eval-rst"):
                found += [(kind, text, start) for kind, text, _ in _in_rst(block.text)]
            elif block.info.startswith("{raw"):
                found += [(kind, text, start) for kind, text, _ in _in_html(block.text)]
            else:
                found.append(("a block that is executed", page.text[start:end], start))
    if "head" in page.front_matter:  # VitePress, Starlight: tags for the head of the page, scripts among them
        found.append(("an entry of the front matter's head", f"head: {page.front_matter['head']}", 0))
    prose = page.prose
    if page.mdx:
        expressions, prose = _expressions(page)
        found += expressions
    elif vue:
        found += _matches(prose, _INTERPOLATION, "an expression")
    found += _in_html(prose, vue=vue, markdown=True, mdx=page.mdx)
    found += [
        ("an address that runs", link.target, link.start) for link in page.links if is_running_address(link.target)
    ]
    return found


def _statements(text: str, start: int) -> Iterator[_Piece]:
    places = [*(match.start() for match in _STATEMENT.finditer(text)), len(text)]
    for at, end in pairwise(places):
        kind = "an import" if text.startswith("import", at) else "an export"
        yield kind, text[at:end].rstrip().rstrip(";"), start + at


def _in_html(text: str, *, vue: bool = False, markdown: bool = False, mdx: bool = False) -> Iterator[_Piece]:
    if "<" not in text:
        return
    yield from _running_tags(text, mdx=mdx)
    kinds = [("an event handler", _HANDLER), *([("a directive of Vue", _VUE_DIRECTIVE)] if vue else [])]
    for kind, pattern in kinds:
        for match in pattern.finditer(text):
            start = _tag_around(text, match.start(), markdown=markdown)
            if start is not None:
                yield kind, _to_end_of_tag(text, start, match.end()), start
    for match in _VALUE.finditer(text):
        start = match.start() if match[2] else _tag_around(text, match.start(), markdown=markdown)
        if is_running_address(match[1] or match[2]) and start is not None:
            yield "an address that runs", _to_end_of_tag(text, start, match.end()), start


def _running_tags(text: str, *, mdx: bool) -> Iterator[_Piece]:
    lowered, has_end = "", True
    for match in _TAG.finditer(text):
        name, written = match[1].lower(), match[0]
        if mdx and match[1] != name:
            continue  # a component of that name
        if name == "meta" and "http-equiv" not in written.lower():
            continue
        if name == "script" and has_end:  # with what is in it
            lowered = lowered or text.lower()
            end = lowered.find("</script", match.end())
            has_end = end >= 0
            written = text[match.start() : end] if has_end and len(lowered) == len(text) else written
        yield f"<{name}>", written, match.start()


def _tag_around(text: str, at: int, *, markdown: bool) -> int | None:
    """Return where the tag begins that a place may be in. A blank line ends one in Markdown."""
    start = text.rfind("<", max(0, at - MAX_TAG), at)
    for _ in range(10):
        if start < 0 or text[start + 1 : start + 2].isalpha():
            break
        start = text.rfind("<", max(0, at - MAX_TAG), start)
    if start < 0 or (markdown and any(not line.strip() for line in text[start:at].split("\n")[1:-1])):
        return None
    return start


def _to_end_of_tag(text: str, start: int, at: int) -> str:
    end = text.find(">", at, at + MAX_TAG)
    return text[start : end + 1 if end >= 0 else at]


def _expressions(page: Markdown) -> tuple[list[_Piece], str]:
    """Return what a page of MDX computes, and its prose. A backtick in braces begins no code, as it does for our
    reader: so what that takes for code behind it is prose.
    """
    text, prose, left, restored = page.text, page.prose, MAX_READ, 0
    codes = [start for start, _ in page.code]
    found: list[_Piece] = []
    at = prose.find("{")
    while at >= 0:
        if (at and prose[at - 1] == "\\") or prose.startswith(("{#", "{:"), at):  # an escape; an id of a heading
            at = prose.find("{", at + 1)
            continue
        part = text[at : at + min(MAX_EXPRESSION, max(left, 0))] or "{"
        size, is_data = _expression(part)
        left -= size if is_data else len(part)
        end = at + size
        if not is_data:
            found.append(("an expression", text[at:end], at))
        for index in range(bisect_left(codes, at), bisect_left(codes, end)):
            start, after = page.code[index]
            if after > end:
                restored += 1
                prose = text if restored > MAX_RESTORED else f"{prose[:start]}{text[start:after]}{prose[after:]}"
        at = prose.find("{", end)
    return found, prose


def _expression(text: str) -> tuple[int, bool]:
    """Return the length of the expression that a text begins with, and whether it is plain data."""
    try:
        return javascript.braced(text)
    except javascript.Unreadable:
        depth = 0
        for match in _BRACE.finditer(text):
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                return match.end(), False
        line = text.find("\n")
        return (line if line > 0 else len(text)), False


def _in_rst(text: str) -> Iterator[_Piece]:
    for match in _EXECUTED_DIRECTIVE.finditer(text):
        if match["name"] == "raw":
            yield from ((kind, written, match.start()) for kind, written, _ in _in_html(match["body"]))
        elif match["name"] != "role" or "raw" in match["rest"]:
            yield "a directive that is executed", match[0], match.start()


def _in_asciidoc(text: str) -> Iterator[_Piece]:
    for match in _PASSED_THROUGH.finditer(text):
        if match[4] is not None:
            if is_running_address(match[4]):
                yield "an address that runs", match[0], match.start()
        else:
            inner = match[1] or match[2] or match[3] or ""
            yield from ((kind, written, match.start()) for kind, written, _ in _in_html(inner))


def _matches(text: str, pattern: re.Pattern[str], kind: str) -> Iterator[_Piece]:
    for match in pattern.finditer(text):
        yield kind, match[0], match.start()


class _Lines:
    """Line numbers of ascending places."""

    def __init__(self, text: str) -> None:
        self._text, self._line, self._at = text, 1, 0

    def of(self, place: int) -> int:
        self._line, self._at = self._line + self._text.count("\n", self._at, place), place
        return self._line
