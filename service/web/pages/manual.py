"""The manual (``service/manual``) as pages: the same Markdown that a code host shows and the demo indexes.

The page about all pages has them in groups, by its headings of the third level. A search quotes the answer, if there is
one, above the sections.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from aiohttp import web
from markupsafe import Markup
from msgspec import Struct

from service.domain.errors import RateLimited, Unavailable
from service.markup.front_matter import split_front_matter, text_field
from service.markup.slugs import Anchors
from service.web.http.app_keys import MANUAL_SEARCH
from service.web.http.connections.limits import count_manual_search
from service.web.http.query_params import query_param
from service.web.pages.html import SCRIPTED_HEADERS, SECURITY_HEADERS, html_response, message_page, way_up
from service.web.pages.rendering import rendered
from service.workers.indexing.manual_search import ManualFindings

if TYPE_CHECKING:  # 20 ms, for which a start does not wait
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

routes = web.RouteTableDef()

FOLDER = Path(__file__).parents[2] / "manual"
INDEX = "index.md"
ERRORS = "errors.md"
WIDGET = "widget.md"
TAGS = "where-to-put-the-tag"
"""The heading of the widget's tag for each site generator, whose headings are one level below it."""
SUFFIX = ".md"
MAX_QUERY = 400
"""Characters of a search of the manual."""
MAX_EXCERPT = 240
"""Characters of a section that a search shows."""


class Page(Struct, frozen=True):
    """A page of the manual as HTML; its links are relative to its own address."""

    title: str
    html: Markup
    leads_to: Sequence[str]
    """The names of files, in the order of its links."""
    parts: Sequence["Part"] = ()


class Part(Struct, frozen=True):
    """A heading of the second level."""

    anchor: str
    title: str


class Group(Struct, frozen=True):
    """Pages under one heading in the contents."""

    title: str
    pages: Sequence[str]
    """The names of files."""


class FoundSection(Struct, frozen=True):
    """A section of the manual that a search found."""

    address: str
    title: str
    heading: str
    excerpt: str


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
    order = list(known)
    at = order.index(name)
    return _manual_page(
        request,
        "manual.html",
        current=name,
        page=page,
        before=order[at - 1] if at else None,
        after=order[at + 1] if at + 1 < len(order) else None,
    )


@routes.get("/manual/search")
async def search_manual(request: web.Request) -> web.Response:
    query = (query_param(request, "q") or "").strip()[:MAX_QUERY]
    await asyncio.to_thread(pages)
    found, problem = ManualFindings("", ()), ""
    if query:
        try:
            asker = await count_manual_search(request)
            found = await request.app[MANUAL_SEARCH].find(query, asker=asker)
        except (RateLimited, Unavailable) as error:
            problem = str(error)
    root = way_up(request)
    sections = [
        FoundSection(f"{root}manual{'' if one.url == '/' else one.url}", one.title, one.heading, _excerpt(one.text))
        for one in found.sections
    ]
    answer = await asyncio.to_thread(_answer, found.answer, root) if found.answer else ""
    return _manual_page(
        request, "manual_search.html", current="", query=query, answer=answer, sections=sections, problem=problem
    )


def _manual_page(request: web.Request, template: str, *, current: str, **values: object) -> web.Response:
    """Return a page with the contents beside it. Its only script copies code."""
    root, known = way_up(request), pages()

    def link(file: str) -> tuple[str, str, bool]:
        return _address(file, root), known[file].title, file == current

    contents = [(group.title, [link(file) for file in group.pages]) for group in groups()]
    html = rendered(template, root=root, contents=contents, link=link, **values)
    return html_response(html, headers=SCRIPTED_HEADERS)


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
    order = dict.fromkeys([*(file for group in groups() for file in group.pages if file in found), *sorted(found)])
    return {name: found[name] for name in order}


@cache
def groups() -> tuple[Group, ...]:
    """Return the contents: the pages by the headings of the third level on the index, which comes first."""
    found = [Group("", [INDEX])]
    tokens = _parsed((FOLDER / INDEX).read_text("utf-8"), "./").tokens
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            title = tokens[at + 1].content if token.tag == "h3" else ""
            found.append(Group(title, []))
        elif token.type == "inline" and found[-1].title:
            targets = [str(one.meta["target"]) for one in token.children or () if one.type == "link_open"]
            found[-1] = Group(found[-1].title, [*found[-1].pages, *targets])
    return tuple(group for group in found if group.pages)


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
    parts = [
        Part(str(token.attrs["id"]), _words(parsed.tokens[at + 1]))
        for at, token in enumerate(parsed.tokens)
        if token.type == "heading_open" and token.tag == "h2"
    ]
    return Page(parsed.title, _rendered(parsed.tokens), parsed.leads_to, parts)


def _answer(text: str, root: str) -> Markup:
    """Return an answer as HTML, with its links to pages of the manual from where ``root`` leads to the service."""
    tokens = _markdown().parse(text)
    for link, attribute in _links(tokens):
        target = str(link.attrs[attribute])
        if target.startswith("/"):
            link.attrSet(attribute, f"{root}manual{'' if target == '/' else target}")
    return _rendered(tokens)


def _excerpt(text: str) -> str:
    """Return the first words of a section's paragraphs and lists."""
    tokens = _markdown().parse(text)
    shown = [_words(one) for before, one in pairwise(tokens) if before.type == "paragraph_open"]
    return shorten(" ".join(shown), MAX_EXCERPT, placeholder=" …")


def _words(inline: "Token") -> str:
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


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
            token.attrSet("id", anchors.of(_words(tokens[at + 1])))
    leads_to = []
    for link, attribute in _links(tokens):
        leads_to.append(str(link.attrs[attribute]))
        link.meta["target"] = leads_to[-1]
        link.attrSet(attribute, _address(leads_to[-1], root))
    return _Parsed(text_field(front_matter, "title"), tokens, leads_to)


def _rendered(tokens: Sequence["Token"]) -> Markup:
    return Markup(_markdown().renderer.render(tokens, _markdown().options, {}))  # noqa: S704 - of our own text


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    from service.markup.parsers import prepared

    parser = prepared(MarkdownIt("commonmark", {"html": False}).enable("table"))
    parser.add_render_rule("fence", _code_to_copy)
    return parser


def _code_to_copy(
    _renderer: "RendererHTML", tokens: Sequence["Token"], index: int, _options: "OptionsDict", _env: "EnvType"
) -> str:
    code = tokens[index].content.rstrip("\n")
    return Markup(
        '<div class="command"><pre tabindex="0"><code>{}</code></pre>'
        '<button type="button" class="quiet needs-script" data-copy="{}"><span data-label>Copy</span></button></div>\n'
    ).format(code, code)


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
