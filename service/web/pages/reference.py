"""The API's description as a document for programs, and as pages for people: one for each operation.

A key that a person pastes to try an operation stays in the page: no form sends it, and no page keeps it.
"""

import asyncio
import hashlib
import re
from functools import cache, lru_cache

import msgspec
from aiohttp import web
from markupsafe import escape

from service.web.api.description.description import description
from service.web.http.access.hosts import service_address
from service.web.http.query_params import query_param
from service.web.pages.html import SCRIPTED_HEADERS, html_response, message_page, way_up
from service.web.pages.reference_views import KEY, KEY_KINDS, VARIABLES, OperationView, Section, sections
from service.web.pages.rendering import rendered

routes = web.RouteTableDef()

SANE_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
ADDRESS = "https://address.invalid"
MAX_QUERY = 200
"""Characters of a search."""


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
    return await _page(request, "reference.html", query=query, found=_found(await _sections(), query))


@routes.get("/docs/{operation}")
async def show_operation(request: web.Request) -> web.Response:
    wanted = request.match_info["operation"]
    operation = next((one for section in await _sections() for one in section.operations if one.id == wanted), None)
    if operation is None:
        text = "The API has no operation of this name. Look at the list of all."
        return message_page(request, status=404, title="Operation not found", text=text)
    return await _page(request, "reference_operation.html", operation=operation, key_kinds=KEY_KINDS)


async def _page(request: web.Request, template: str, **values: object) -> web.Response:
    host = request.host if SANE_HOST.fullmatch(request.host) else "localhost"  # it goes into commands
    html = rendered(
        template,
        root=way_up(request),
        sections=await _sections(),
        text=description()["info"]["description"],
        variables=VARIABLES.values(),
        key=KEY,
        **values,
    )
    return html_response(html.replace(ADDRESS, str(escape(f"{request.scheme}://{host}"))), headers=SCRIPTED_HEADERS)


def _found(every: list[Section], query: str) -> list[Section]:
    """Return the sections with the operations that have all words of a query."""
    words = query.casefold().split()

    def has_all(operation: OperationView) -> bool:
        return all(word in operation.searched for word in words)

    found = [Section(one.name, one.text, tuple(filter(has_all, one.operations))) for one in every]
    return [one for one in found if one.operations]


async def _sections() -> list[Section]:
    return await asyncio.to_thread(_all_sections)  # to make it takes 50 ms, once


@cache
def _all_sections() -> list[Section]:
    return sections(description(), ADDRESS)


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
