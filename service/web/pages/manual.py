"""The manual (``service/manual``) as pages: the same Markdown that a code host shows and the demo indexes."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from markupsafe import Markup
from msgspec import Struct

from service.markup.front_matter import split_front_matter, text_field
from service.markup.slugs import Anchors
from service.web.pages.html import SECURITY_HEADERS, html_page, message_page, way_up

if TYPE_CHECKING:  # 20 ms, for which a start does not wait
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

routes = web.RouteTableDef()

FOLDER = Path(__file__).parents[2] / "manual"
INDEX = "index.md"
ERRORS = "errors.md"
WIDGET = "widget.md"
TAGS = "where-to-put-the-tag"
"""The heading of the widget's tag for each site generator, whose headings are one level below it."""
SUFFIX = ".md"


class Page(Struct, frozen=True):
    """A page of the manual as HTML; its links are relative to its own address."""

    title: str
    html: Markup
    leads_to: Sequence[str]
    """The names of files, in the order of its links."""


class Explained(Struct, frozen=True):
    """An error for the person who meets it."""

    title: str
    """A sentence without its full stop."""
    html: Markup


class TagGuide(Struct, frozen=True):
    """The widget's tag for one site generator, as the manual has it."""

    name: str
    html: Markup
    """Where to put it."""
    code: str
    """Lines with the manual's own address, site and key."""


@routes.get("/manual")
@routes.get("/manual/{page}")
async def show_manual(request: web.Request) -> web.Response:
    name = f"{request.match_info['page']}{SUFFIX}" if "page" in request.match_info else INDEX
    known = await asyncio.to_thread(pages)  # the first time it takes 0.1 s
    page = known.get(name)
    if page is None or request.path.endswith("/index"):  # which has another address
        return message_page(request, status=404, title="Page not found", text="The manual has no page of this name.")
    root = way_up(request)
    contents = [(_address(file, root), one.title, file == name) for file, one in known.items()]
    return html_page(request, "manual.html", title=page.title, html=page.html, contents=contents)


@routes.get("/manual/images/{name}")
async def show_picture(request: web.Request) -> web.Response:
    picture = pictures().get(request.match_info["name"])
    if picture is None:
        raise web.HTTPNotFound
    headers = {**SECURITY_HEADERS, "Cache-Control": "no-cache"}
    return web.Response(body=picture, content_type="image/png", headers=headers)


@cache
def pages() -> dict[str, Page]:
    """Return every page by the name of its file: the index, then the others in the order of its links."""
    found = {file.name: _page(file.name, file.read_text("utf-8")) for file in FOLDER.glob(f"*{SUFFIX}")}
    order = dict.fromkeys([INDEX, *(name for name in found[INDEX].leads_to if name in found), *sorted(found)])
    return {name: found[name] for name in order}


@cache
def pictures() -> dict[str, bytes]:
    """Return every picture by the name of its file."""
    return {file.name: file.read_bytes() for file in (FOLDER / "images").glob("*.png")}


@cache
def explained_errors() -> dict[str, Explained]:
    """Return the sections of the page about errors, by code."""
    from markdown_it.token import Token

    found: dict[str, Explained] = {}
    parsed = _parsed((FOLDER / ERRORS).read_text("utf-8"), "../../")
    code, section = "", list["Token"]()
    for token in [*parsed.tokens, Token("heading_open", "h2", 1)]:
        if token.type == "heading_open":
            if code:
                found[code] = _explained(section)
            code, section = (str(token.attrs["id"]), []) if token.tag == "h3" else ("", [])
        section.append(token)
    return found


@cache
def tag_guides() -> tuple[TagGuide, ...]:
    """Return the widget's tag for each site generator, in the manual's order; plain HTML first."""
    tokens = _parsed((FOLDER / WIDGET).read_text("utf-8"), "../../../../").tokens
    found: list[TagGuide] = []
    is_wanted, begin = False, 0
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            is_wanted = token.attrs["id"] == TAGS
        elif token.type == "heading_open":
            begin = at
        elif token.type == "fence" and is_wanted:
            found.append(TagGuide(tokens[begin + 1].content, _rendered(tokens[begin + 3 : at]), token.content))
    return tuple(found)


def _explained(section: Sequence["Token"]) -> Explained:
    """Return a heading and its text: what is wrong, in bold, and what to do."""
    text = section[4]  # after the heading's three tokens, and the beginning of a paragraph
    children = text.children or []
    end = next(at for at, child in enumerate(children) if child.type == "strong_close")
    title = "".join(child.content for child in children[:end]).rstrip(".")
    text.children = children[end + 1 :]
    text.children[0].content = text.children[0].content.lstrip()
    return Explained(title, _rendered(section[3:]))


def _page(name: str, source: str) -> Page:
    parsed = _parsed(source, "./" if name == INDEX else "../")
    return Page(parsed.title, _rendered(parsed.tokens), parsed.leads_to)


class _Parsed(Struct):
    title: str
    tokens: Sequence["Token"]
    leads_to: Sequence[str]


def _parsed(source: str, root: str) -> _Parsed:
    """Return a page for an address from which ``root`` leads to the root of the service."""
    front_matter, begin = split_front_matter(source)
    tokens = _markdown().parse(source[begin:])
    anchors = Anchors("github")
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            words = (child.content for child in tokens[at + 1].children or () if child.type in ("text", "code_inline"))
            token.attrSet("id", anchors.of("".join(words)))
    leads_to = []
    for link, attribute in _links(tokens):
        leads_to.append(str(link.attrs[attribute]))
        link.attrSet(attribute, _address(leads_to[-1], root))
    return _Parsed(text_field(front_matter, "title"), tokens, leads_to)


def _rendered(tokens: Sequence["Token"]) -> Markup:
    return Markup(_markdown().renderer.render(tokens, _markdown().options, {}))  # noqa: S704 - of our own text


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    from service.markup.parsers import prepared

    return prepared(MarkdownIt("commonmark", {"html": False}).enable("table"))


def _links(tokens: Sequence["Token"]) -> Iterator[tuple["Token", str]]:
    """Yield links and pictures, each with the attribute that holds its address."""
    attributes = {"link_open": "href", "image": "src"}
    for token in tokens:
        yield from ((child, attributes[child.type]) for child in token.children or () if child.type in attributes)


def _address(link: str, root: str) -> str:
    """Return where a link of a page's file leads over HTTP, from where ``root`` leads to the root of the service."""
    target, mark, anchor = link.partition("#")
    if "://" in target or not target:
        return link
    return f"{root}manual" + ("" if target == INDEX else f"/{target.removesuffix(SUFFIX)}") + mark + anchor
