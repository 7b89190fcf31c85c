"""One service, a provider that says what a test scripts, and pages of another origin that carry the widget's tag.

The browser is driven by playwright's synchronous interface, which holds its thread's event loop; so the provider and
the pages are served by a thread of their own.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from service.web.http.answers.security_headers import IS_HTTPS
from service.web.http.app_keys import DATA
from service.web.http.entrance import Entrance
from service.web.widget import scripts
from tests.dashboard.browsing import CHROMIUM, FLAGS, SIZES, TIMEOUT_MS, WATCH, axe  # noqa: F401  (a fixture)
from tests.end_to_end.scripted import scripted_service
from tests.fakes.provider import ScriptedProvider
from tests.service_process import Service, free_port

STRICTEST = "default-src 'none'; script-src 'self' {host}; style-src 'self'; connect-src 'self' {host}"
HOSTILE_CSS = """
* {all: unset !important; display: none !important; font-size: 2px !important; direction: rtl !important}
html, body {display: block !important}
div, dialog, button, ask-docs, ask-docs * {display: none !important; visibility: hidden !important}
"""
PAGE = """<!doctype html><html lang="{language}" {attributes}><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>A page of the docs</title>
<link rel="stylesheet" href="/page.css"></head>
<body><main><h1>Install Kite</h1><p id="text">The installer needs 20 MB of disk.</p>
<p><a href="/other" id="link">Another page</a> <input id="field" aria-label="A field"></p>{body}</main>
<script src="{host}/widget.js" {tag} async></script></body></html>"""


class Elsewhere:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=120)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=60)
        self.loop.close()


@dataclass
class DocsSite:
    """Pages of an origin that is not the service's; each test says what its page is like."""

    origin: str
    service: Service
    policy: str = STRICTEST
    css: str = ""
    language: str = "en"
    attributes: str = ""
    body: str = ""
    tag: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    """Files to serve in place of that page."""

    async def show(self, request: web.Request) -> web.StreamResponse:
        if self.folder is not None:
            return self._file(self.folder, request.path.strip("/"))
        if request.path == "/page.css":
            return web.Response(text=self.css, content_type="text/css")
        options = {"site": self.service.domain, "key": self.service.assistant_key, **self.tag}
        tag = " ".join(f'data-{name}="{value}"' for name, value in options.items() if value)
        shown = {"language": self.language, "attributes": self.attributes, "body": self.body, "tag": tag}
        page = PAGE.format(host=self.service.url, **shown)
        return web.Response(text=page, content_type="text/html", headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Content-Security-Policy": self.policy.format(host=self.service.url)} if self.policy else {}

    def _file(self, folder: Path, path: str) -> web.StreamResponse:
        for name in (path, f"{path}/index.html".lstrip("/"), f"{path}.html"):
            if (folder / name).is_file():
                return web.FileResponse(folder / name, headers=self._headers())
        return web.Response(status=200 if path == "favicon.ico" else 404)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    elsewhere = Elsewhere()
    yield elsewhere
    elsewhere.close()


@pytest.fixture(scope="module")
def provider_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, provider_port: int) -> Iterator[Service]:
    settings = {"ASSISTANT__SUGGESTIONS": "true"}
    with scripted_service(tmp_path_factory.mktemp("widget"), provider_port, **settings) as service:
        yield service


@pytest.fixture
def provider(elsewhere: Elsewhere, provider_port: int) -> Iterator[ScriptedProvider]:
    provider = ScriptedProvider(port=provider_port)
    elsewhere.run(provider.__aenter__())
    yield provider
    elsewhere.run(provider.__aexit__())


@pytest.fixture
def hold(elsewhere: Elsewhere) -> "Hold":
    return Hold(elsewhere)


class Hold:
    """Keeps a scripted reply from going on."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self.event = asyncio.Event()

    def release(self) -> None:
        self._elsewhere.loop.call_soon_threadsafe(self.event.set)


@pytest.fixture
def site(elsewhere: Elsewhere, service: Service) -> Iterator[DocsSite]:
    site = DocsSite("", service)
    app = web.Application()
    app.router.add_get("/{path:.*}", site.show)
    runner = web.AppRunner(app, access_log=None)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    site.origin = elsewhere.run(start())
    yield site
    elsewhere.run(runner.cleanup())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it to run this")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives a browser through playwright")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=2 * TIMEOUT_MS)
        yield browser
        browser.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any, site: DocsSite) -> Iterator[Opened]:
    """Open the page: ``opened(size=, scheme=, …)``. At its end nothing may have broken the policy or failed."""
    errors: list[str] = []
    contexts = []

    def open_page(path: str = "/install", *, size: str = "desktop", scheme: str = "light", **more: Any) -> Any:
        context = chromium.new_context(viewport=SIZES[size], color_scheme=scheme, base_url=site.origin, **more)
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        context.expose_function("noteViolation", lambda text: errors.append(text))
        context.add_init_script(WATCH)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(path)
        return page

    open_page.errors = errors  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@contextmanager
def expected_errors(opened: Opened) -> Iterator[list[str]]:
    """Errors within are what the test looks at."""
    found = opened.errors  # type: ignore[attr-defined]
    yield found
    found.clear()


@pytest.fixture
async def client(tmp_path):
    """The widget's files alone, as they are sent; those of earlier versions are in ``tmp_path``."""
    app = web.Application(middlewares=[Entrance().enter])
    app[IS_HTTPS], app[DATA] = False, tmp_path
    app.add_routes(scripts.routes)
    async with TestClient(TestServer(app), auto_decompress=False) as client:
        yield client
