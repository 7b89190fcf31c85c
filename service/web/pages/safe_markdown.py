"""Markdown by strangers as HTML that can do no harm."""

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from service.markup.parsers import prepared
from service.web.pages.rendering import is_web_link


def safe_markdown(text: str) -> Markup:
    """Markdown of unknown origin as HTML: no markup of its own, no pictures, links to the web or to nowhere special. A
    line ``<details><summary>TEXT</summary>`` and a line ``</details>`` collapse what is between them.

    Its headings begin at the third level, below those of the page.
    """
    return Markup(_markdown().render(text))  # noqa: S704 - written by the renderer, which escapes all text


def page_parser() -> MarkdownIt:
    """Return a reader of Markdown by others: no markup of its own, no pictures, headings below those of our pages."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = is_web_link  # type: ignore[method-assign]  # how the library wants it replaced
    parser.core.ruler.push("lower_headings", lambda state: _lower_headings(state.tokens))
    parser.add_render_rule("image", _picture_as_text)
    return parser


@cache
def _markdown() -> MarkdownIt:
    parser = page_parser()
    parser.core.ruler.push("details", lambda state: setattr(state, "tokens", _collapse(state.tokens)))
    parser.add_render_rule("details_open", _details_open)
    parser.add_render_rule("link_open", _careful_link)
    return prepared(parser)


def _lower_headings(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"


_DETAILS = re.compile(r"<details>\s*+<summary>([^<>]*+)</summary>")


def _collapse(tokens: list[Token]) -> list[Token]:
    """Return the tokens with each pair of paragraphs that opens and closes collapsed text as one pair of tags."""
    tags: dict[int, Token] = {}
    opened: int | None = None
    for index, inline in enumerate(tokens):
        if inline.type != "inline" or inline.level != 1 or tokens[index - 1].type != "paragraph_open":
            continue
        if _DETAILS.fullmatch(inline.content):
            opened = index
        elif inline.content == "</details>" and opened is not None:
            tags[opened] = Token("details_open", "details", 1, content=tokens[opened].content)
            tags[index] = Token("details_close", "details", -1, block=True)
            opened = None
    around = {index + step for index in tags for step in (-1, 1)}
    return [tags.get(index, token) for index, token in enumerate(tokens) if index not in around]


def _details_open(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    found = _DETAILS.fullmatch(tokens[index].content)
    return f"<details><summary>{escape(found[1] if found else '')}</summary>\n"


def _picture_as_text(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return str(escape(f"[picture: {tokens[index].content}]"))


def _careful_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return renderer.renderToken(tokens, index, options, env)
