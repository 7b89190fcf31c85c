"""A page of documentation before and after a change, as readers see it: block beside block, with changed ones marked.

Others wrote the pages, so nothing of them becomes markup but what the renderer itself writes: tags, components and
calls of a site's framework are read as the index reads them, to the words that they show. Links lead nowhere, since
the page stands within ours, and pictures are named. All of it runs in a child process.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape
from msgspec import Struct

from service.domain.texts.comparison import Effort, coarse_opcodes, opcodes
from service.markup.dialects.dialect import PLAIN
from service.markup.front_matter import text_field
from service.markup.markdown import Markdown
from service.markup.parsers import prepared
from service.markup.prose import Cleaner
from service.web.pages.rendering import clipped, visible
from service.web.pages.safe_markdown import page_parser

MAX_CHARACTERS = 400_000
"""Limit for both sides of a page that is rendered: the longest page of large public documentation has 600,000 bytes."""
MAX_SHOWN_CHARACTERS = 1_500_000
"""Limit for the HTML; what follows is left out."""
COMPARE_STEPS = 2_000_000
CONTEXT = 2
"""Unchanged blocks around a change; the others are collapsed."""


_ANCHOR = re.compile(r"(?<=\S)[ \t]{0,20}\{:?[ \t]{0,20}#[\w:.-]{1,200}[ \t]{0,20}\}[ \t]{0,20}$", re.MULTILINE)


class Row(Struct, frozen=True):
    """Blocks that are the same on both sides, or what one side has in place of what the other has."""

    before: Markup
    after: Markup
    is_same: bool = False
    collapsed: int = 0
    """Number of unchanged blocks that are shown on demand, once."""


class RenderedPage(Struct, frozen=True):
    rows: Sequence[Row] = ()
    is_cut: bool = False
    """The rows are the beginning of more."""
    is_too_long: bool = False


def render(before: str | None, after: str | None, path: str) -> RenderedPage:
    """Return both sides of a page in rows; None for a side that is not there."""
    if len(before or "") + len(after or "") > MAX_CHARACTERS:
        return RenderedPage(is_too_long=True)
    old, new = (_blocks(text, path) if text is not None else [] for text in (before, after))
    found = opcodes(old, new, Effort(COMPARE_STEPS), most=COMPARE_STEPS) or coarse_opcodes(old, new)
    rows: list[Row] = []
    left = MAX_SHOWN_CHARACTERS
    for at, (tag, a, b, c, d) in enumerate(found):
        is_first, is_last = at == 0, at == len(found) - 1
        some = (
            _same(new[c:d], is_first, is_last) if tag == "equal" else iter([Row(_joined(old[a:b]), _joined(new[c:d]))])
        )
        for row in some:
            left -= len(row.before) + len(row.after)
            if left < 0:
                return RenderedPage(rows, is_cut=True)
            rows.append(row)
    return RenderedPage(rows)


def _same(blocks: Sequence[str], is_first: bool, is_last: bool) -> Iterator[Row]:
    """Yield rows for unchanged blocks: those near a change, and the others collapsed."""
    head = 0 if is_first else CONTEXT
    tail = 0 if is_last else CONTEXT
    if len(blocks) <= head + tail + 1:
        head, tail = len(blocks), 0
    hidden = blocks[head : len(blocks) - tail]
    if head:
        yield Row(_joined(blocks[:head]), _joined(blocks[:head]), is_same=True)
    if hidden:
        yield Row(Markup(), _joined(hidden), is_same=True, collapsed=len(hidden))
    if tail:
        near = _joined(blocks[len(blocks) - tail :])
        yield Row(near, near, is_same=True)


def _joined(blocks: Sequence[str]) -> Markup:
    return Markup("".join(blocks))  # noqa: S704 - written by the renderer, which escapes all text


def _blocks(text: str, path: str) -> list[str]:
    """Return the HTML of each of the page's outermost blocks."""
    page = Markdown(visible(text), path=path)
    parser = _parser(page.is_loose)
    env: dict[str, object] = {}
    found = [_front_matter(page)] if page.start else []
    block: list[Token] = []
    for token in parser.parse(_plain(page), env):
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            found.append(str(parser.renderer.render(block, parser.options, env)))
            block = []
    return found


def _front_matter(page: Markdown) -> str:
    """Return the title as a heading, and the front matter as it is written."""
    title = text_field(page.front_matter, "title")
    heading = f"<h3>{escape(clipped(title))}</h3>\n" if title else ""
    raw = page.text[: page.start].strip().strip("-+").strip()
    return f'{heading}<pre class="front"><code>{escape(raw)}</code></pre>\n'


def _plain(page: Markdown) -> str:
    """Return the page's own text as plain Markdown, line for line: what is no prose is read to the words it shows."""
    cleaner = Cleaner(PLAIN, mdx=page.mdx)
    parts: list[str] = []
    at = page.start
    kept = {page.place_of(block): True for block in page.blocks if block.kind in ("fence", "code")}
    left_out = dict.fromkeys(page.unseen, False)
    for (start, end), is_kept in sorted({**left_out, **kept}.items()):
        if start < at:
            continue
        parts.append(_without_anchors(cleaner.clean(page.text[at:start])))
        parts.append(page.text[start:end] if is_kept else "\n" * page.text.count("\n", start, end))
        at = end
    return "".join([*parts, _without_anchors(cleaner.clean(page.text[at:]))])


def _without_anchors(text: str) -> str:
    """Return the text without the anchors that headings name, ``{#so}``, which no reader sees."""
    return _ANCHOR.sub("", text)


@cache
def _parser(is_loose: bool) -> MarkdownIt:
    """Return a reader whose links lead nowhere. ``is_loose``: indented text is no code."""
    parser = page_parser()
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    return prepared(parser.disable("code") if is_loose else parser)


def _link_open(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    target = clipped(str(tokens[index].attrs.get("href", "")))
    return f'<span class="link" title="{escape(target)}">'


def _link_close(*_: object) -> str:
    return "</span>"
