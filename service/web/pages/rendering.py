"""Templates, and Markdown by strangers made safe. Nothing here knows of requests, so that a child process can do it."""

import re
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from service.markup.parsers import prepared
from service.web.pages.assets import TEMPLATES, asset_address
from service.web.pages.readable import counted, duration, elapsed, moment_of, readable_size, readable_time

MAX_NAME = 300
"""Characters of a name or a title that are shown."""

INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control, direction and zero-width characters: text that is not what it looks like (CVE-2021-42574).

Not among them: the joiners U+200C and U+200D, which Persian and emoji need.
"""


def rendered(template: str, **values: object) -> str:
    """The template's text. Pages take ``root``, the way from their address to the root of the service."""
    return _environment().get_template(template).render(**values)


def safe_markdown(text: str) -> Markup:
    """Markdown of unknown origin as HTML: no markup of its own, no pictures, links to the web or to nowhere special. A
    line ``<details><summary>TEXT</summary>`` and a line ``</details>`` collapse what is between them.

    Its headings begin at the third level, below those of the page.
    """
    return Markup(_markdown().render(text))  # noqa: S704 - written by the renderer, which escapes all text


def visible(text: str) -> str:
    """The text with its invisible characters shown by their code point."""
    return INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def clipped(text: str) -> str:
    """The beginning of a name or a title that others chose."""
    return text if len(text) <= MAX_NAME else text[:MAX_NAME] + "…"


def web_address(url: str) -> str:
    """Return the address that others gave, if a link may lead there; else nothing, as for one that runs a script."""
    return url if _is_web_link(url) else ""


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        visible=visible,
        clipped=clipped,
        web_address=web_address,
        readable_time=readable_time,
        elapsed=elapsed,
        moment=moment_of,
        duration=duration,
        size=readable_size,
        counted=counted,
        markdown=safe_markdown,
    )
    environment.globals.update(asset=asset_address)
    return environment


def page_parser() -> MarkdownIt:
    """Return a reader of Markdown by others: no markup of its own, no pictures, headings below those of our pages."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_web_link  # type: ignore[method-assign]  # how the library wants it replaced
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


def _is_web_link(url: str) -> bool:
    scheme = re.match(r"\s*+([^/?#:]*+):", url)
    return scheme is None or scheme[1].lower() in ("http", "https")


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
