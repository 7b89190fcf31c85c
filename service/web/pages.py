"""HTML pages: templates, the headers that every page carries, and Markdown by strangers made safe.

Pages need no script and load nothing from elsewhere, so their policy allows neither: a hole in the escaping would find
nothing to run. Addresses inside a page are relative, so that it works behind a proxy that adds a path of its own.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

TEMPLATES = Path(__file__).parent / "templates"

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Tells other sites nothing of the address. Not "no-referrer": browsers then send "Origin: null" with our own forms
    # (Fetch, "append a request Origin header"), and over plain HTTP they send no Sec-Fetch-Site to go by instead.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}

ASSETS = {"docsmith.css": "text/css", "docsmith.svg": "image/svg+xml"}

INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control, direction and zero-width characters: text that is not what it looks like (CVE-2021-42574).

Not among them: the joiners U+200C and U+200D, which Persian and emoji need.
"""


async def asset(request: web.Request) -> web.Response:
    """The handler of ``/assets/{name}``: a style sheet or picture of ours.

    Its address changes with its content, so it may be kept for good.
    """
    name = request.match_info["name"]
    if name not in ASSETS:
        raise web.HTTPNotFound
    current = request.query.get("v") == _asset_version(name)
    return web.Response(
        body=_asset(name),
        content_type=ASSETS[name],
        charset="utf-8",
        headers={
            **SECURITY_HEADERS,
            "Cache-Control": "public, max-age=31536000, immutable" if current else "no-cache",
        },
    )


def html_page(request: web.Request, template: str, *, status: int = 200, **values: object) -> web.Response:
    """A page that no cache keeps: what it shows is for those who know its address."""
    return web.Response(
        text=_environment().get_template(template).render(root=_way_up(request), **values),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={**SECURITY_HEADERS, "Cache-Control": "no-store"},
    )


def message_page(request: web.Request, *, status: int, title: str, text: str) -> web.Response:
    """A page that says one thing."""
    return html_page(request, "message.html", status=status, title=title, text=text)


def safe_markdown(text: str) -> Markup:
    """Markdown of unknown origin as HTML: no markup of its own, no pictures, links to the web or to nowhere special.

    Its headings begin at the third level, below those of the page.
    """
    return Markup(_markdown().render(text))  # noqa: S704 - written by the renderer, which escapes all text


def visible(text: str) -> str:
    """The text with its invisible characters shown by their code point."""
    return INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def readable_time(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
    environment.filters.update(visible=visible, readable_time=readable_time, counted=counted, markdown=safe_markdown)
    environment.globals.update(asset=lambda name: f"assets/{name}?v={_asset_version(name)}")
    return environment


def _way_up(request: web.Request) -> str:
    """From the page's address to the root of the service."""
    return "../" * (request.path.count("/") - 1) or "./"


@cache
def _asset(name: str) -> bytes:
    return (TEMPLATES / name).read_bytes()


@cache
def _asset_version(name: str) -> str:
    return hashlib.sha256(_asset(name)).hexdigest()[:12]


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_web_link  # type: ignore[method-assign]  # how the library wants it replaced
    parser.core.ruler.push("lower_headings", lambda state: _lower_headings(state.tokens))
    parser.add_render_rule("image", _picture_as_text)
    parser.add_render_rule("link_open", _careful_link)
    return parser


def _is_web_link(url: str) -> bool:
    scheme = re.match(r"\s*+([^/?#:]*+):", url)
    return scheme is None or scheme[1].lower() in ("http", "https")


def _lower_headings(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"


def _picture_as_text(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return str(escape(f"[picture: {tokens[index].content}]"))


def _careful_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return renderer.renderToken(tokens, index, options, env)
