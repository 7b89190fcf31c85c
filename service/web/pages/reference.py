"""The API's description as a document for programs, and as pages for people: one for each operation.

A key that a person pastes to try an operation stays in the page: no form sends it, and no page keeps it.
"""

import asyncio
import hashlib
import re
from functools import cache, lru_cache

import msgspec
from aiohttp import web
from markupsafe import Markup, escape

from service.web.api.description.description import description
from service.web.http.access.hosts import NAMES, service_address
from service.web.http.query_params import query_param
from service.web.pages.html import SCRIPTED_HEADERS, html_response, message_page, way_up
from service.web.pages.reference_views import KEY, KEY_KINDS, VARIABLES, OperationView, Section, sections
from service.web.pages.rendering import rendered, safe_markdown

routes = web.RouteTableDef()

SANE_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
ADDRESS = "https://address.invalid"
MAX_QUERY = 200
"""Characters of a search."""
MAX_PAGES = 256
"""Pages that are kept as HTML: more than there are operations, from 20 to 60 kB each."""


@routes.get("/openapi.json")
async def show_document(request: web.Request) -> web.Response:
    """Answer with the description. Its server is the address that programs use: importers know no other one."""
    address = service_address(request) if SANE_HOST.fullmatch(request.host) else "/"
    before, after = _document()
    body = before + msgspec.json.encode(address) + after
    tag = _tag(address)
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)


@routes.get("/docs")
async def show_reference(request: web.Request) -> web.Response:
    """List the operations, or those that a search finds."""
    query = (query_param(request, "q") or "")[:MAX_QUERY].strip()
    root = way_up(request)
    return _answer(request, await asyncio.to_thread(_searched, query, root) if query else await _kept("", root))


@routes.get("/docs/{operation}")
async def show_operation(request: web.Request) -> web.Response:
    wanted = request.match_info["operation"]
    if wanted not in await asyncio.to_thread(_operations):
        text = "The API has no operation of this name. Look at the list of all."
        return message_page(request, status=404, title="Operation not found", text=text)
    return _answer(request, await _kept(wanted, way_up(request)))


def _answer(request: web.Request, html: str) -> web.Response:
    return html_response(html.replace(ADDRESS, str(escape(_address(request)))), headers=SCRIPTED_HEADERS)


def _address(request: web.Request) -> str:
    """Return the service's address as it goes into commands that people copy."""
    is_sane = request.app[NAMES].public_url or SANE_HOST.fullmatch(request.host)
    return service_address(request) if is_sane else f"{request.scheme}://localhost"


async def _kept(operation: str, root: str) -> str:
    return await asyncio.to_thread(_page, operation, root)


@lru_cache(maxsize=MAX_PAGES)
def _page(operation: str, root: str) -> str:
    """Return the page of an operation, or of all where it is empty; anyone may ask for it, and it never changes."""
    if not operation:
        return _searched("", root)
    values = {
        "operation": _operations()[operation],
        "key": KEY,
        "key_kinds": KEY_KINDS,
        "variables": VARIABLES.values(),
    }
    return rendered("reference_operation.html", root=root, sections=_sections(), **values)


def _searched(query: str, root: str) -> str:
    """Return the page of the operations that a search finds."""
    found = _found(_sections(), query)
    values = {"query": query, "found": found, "about": _about()}
    return rendered("reference.html", root=root, sections=_sections(), **values)


def _found(every: list[Section], query: str) -> list[Section]:
    """Return the sections with the operations that have all words of a query."""
    words = query.casefold().split()

    def has_all(operation: OperationView) -> bool:
        return all(word in operation.searched for word in words)

    found = [Section(one.name, one.text, tuple(filter(has_all, one.operations))) for one in every]
    return [one for one in found if one.operations]


@cache
def _sections() -> list[Section]:
    return sections(description(), ADDRESS)  # 50 ms, once


@cache
def _operations() -> dict[str, OperationView]:
    return {one.id: one for section in _sections() for one in section.operations}


@cache
def _about() -> dict[str, Markup]:
    """Return the text before the first request, and those of the sections by their names."""
    texts = {one.name: one.text for one in _sections()}
    return {name: safe_markdown(text) for name, text in {"": description()["info"]["description"], **texts}.items()}


@cache
def _document() -> tuple[bytes, bytes]:
    """Return the description before and after the address of its server."""
    marked = msgspec.json.encode({**description(), "servers": [{"url": ADDRESS}]})
    before, _, after = marked.partition(msgspec.json.encode(ADDRESS))
    return before, after


@lru_cache(maxsize=64)
def _tag(address: str) -> str:
    before, after = _document()
    return f'"{hashlib.sha256(before + address.encode() + after).hexdigest()[:32]}"'
