"""Chromium for the tests of pages: signed-in pages that watch the policy, and axe for their accessibility.

The browser is driven by playwright's synchronous interface, which holds its thread's event loop: a module that uses it
has no test that is a coroutine.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.node_packages import require_packages

FOLDER = Path(__file__).parent
CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update",
]  # fmt: skip
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
TIMEOUT_MS = 60_000
WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  window.noteViolation(`${location.pathname} ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""
AXE = """async (rules) => (await axe.run(document, { ...rules, resultTypes: ["violations"] })).violations.map(
  (found) => `${found.id}: ${found.help} ${found.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`
)"""

COLOR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""Those of axe's rules on colors that it applies by default."""


@dataclass
class Seen:
    """The requests to other origins and the errors of scripts that the pages of a test caused."""

    origin: str
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Browsing:
    """Pages of one service in one Chromium, by who is signed in. ``origin`` begins with http://localhost."""

    def __init__(self, browser, service_url: str, cookies: dict[str, str], cookie: str) -> None:
        self.browser, self.cookies, self.cookie = browser, cookies, cookie
        self.origin = f"http://localhost:{urlsplit(service_url).port}"

    def session_of(self, person: str) -> dict[str, str]:
        """The cookie of a person who is signed in, as Playwright takes it."""
        return {"name": self.cookie, "value": self.cookies[person], "url": self.origin}

    @contextmanager
    def opened(
        self, person: str = "", *, size: str = "desktop", scheme: str = "light", scripts: bool = True
    ) -> Iterator[object]:
        """A page in a fresh profile; at its end nothing may have broken the policy or asked another origin."""
        context = self.browser.new_context(
            viewport=SIZES[size], color_scheme=scheme, java_script_enabled=scripts, base_url=self.origin
        )
        context.set_default_timeout(TIMEOUT_MS)
        if person:
            context.add_cookies([self.session_of(person)])
        seen = Seen(self.origin)
        context.expose_function("noteViolation", lambda text: seen.errors.append(text))
        context.add_init_script(WATCH)
        context.on("request", lambda request: self._note(request, seen))
        page = context.new_page()
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        try:
            yield page
        finally:
            context.close()
        assert not seen.foreign, f"asked other origins: {seen.foreign}"
        assert not seen.errors, f"broke the policy, or failed: {seen.errors}"

    @staticmethod
    def _note(request, seen: Seen) -> None:
        if not request.url.startswith((f"{seen.origin}/", "data:", "blob:")) and request.url != seen.origin:
            seen.foreign.append(request.url)


@pytest.fixture(scope="module")
def browsing(service, people) -> Iterator[Browsing]:
    """Chromium, with everyone of ``people`` ready to sign in."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it to run this")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives a browser through playwright")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=2 * TIMEOUT_MS)
        yield Browsing(browser, service.url, people.cookies, "docsmith")
        browser.close()


@pytest.fixture
def page(browsing: Browsing) -> Iterator[object]:
    """A page of the owner, on a desktop."""
    with browsing.opened("owner") as page:
        yield page


@pytest.fixture(scope="session")
def axe() -> Callable[..., list[str]]:
    """What axe finds on a page, by all rules or by those on colors; skips where its npm package cannot be installed."""
    require_packages(FOLDER)
    source = (FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")

    def found(page, *, colors_only: bool = False) -> list[str]:
        page.evaluate(source)
        return page.evaluate(AXE, {"runOnly": COLOR_RULES} if colors_only else {})

    return found
