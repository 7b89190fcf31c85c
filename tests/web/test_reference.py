"""The API's reference: the address in its commands, and where its pages are rendered."""

import html
import sys

import pytest
from aiohttp import web

from service.domain.access.names import Names
from service.web.http.access.hosts import NAMES
from service.web.http.entrance import Entrance
from service.web.pages import pull_requests, reference


@pytest.fixture
def client_of(aiohttp_client):
    async def made(public_url):
        app = web.Application(middlewares=[Entrance().enter])
        app[NAMES] = Names(public_url, "127.0.0.1")
        for routes in (reference.routes, pull_requests.routes):  # the last: the style sheet
            app.add_routes(routes)
        return await aiohttp_client(app)

    return made


async def text_of(client, path, **headers):
    async with client.get(path, headers=headers) as answer:
        assert answer.status == 200
        return html.unescape(await answer.text())


async def test_command_has_the_public_address_behind_a_proxy(client_of):
    client = await client_of("https://docs.example.com")
    text = await text_of(client, "/docs/listKeys", Host="docs.example.com")
    assert "https://docs.example.com/v2/keys" in text
    assert "http://docs.example.com" not in text


async def test_command_has_the_address_of_the_request_else(client_of):
    client = await client_of("")
    for host in ("127.0.0.1:8080", "localhost:8081"):
        for operation in ("listKeys", "getProject"):
            assert f"http://{host}/v2/" in await text_of(client, f"/docs/{operation}", Host=host)


async def test_reference_is_not_rendered_on_the_event_loop(client_of):
    client, called = await client_of("https://docs.example.com"), set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        for path in ("/docs", "/docs?q=key", "/docs/listKeys"):
            await text_of(client, path, Host="docs.example.com")
    finally:
        sys.setprofile(None)
    assert "show_operation" in called
    assert not called & {"rendered", "safe_markdown"}
