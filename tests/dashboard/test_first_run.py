"""The first run as one person does it in a browser: from an empty data folder to a merged change."""

import io
import re
import zipfile

import pytest

from tests.dashboard.browsing import CHROMIUM, FLAGS, TIMEOUT_MS, Browsing
from tests.service_process import DOCS, service_in

pytestmark = pytest.mark.slow


@pytest.fixture
def page(tmp_path):
    """A page of a browser that no one is signed in with, at a service with an empty data folder; and the service."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it to run this")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives a browser through playwright")
    with service_in(tmp_path) as service, playwright.sync_playwright() as driver:
        service.start()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=2 * TIMEOUT_MS)
        with Browsing(browser, service.url, {}, "").opened() as page:
            yield page, service
        browser.close()


def archive():
    """A zip archive as a code host packs a branch."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in DOCS.items():
            archive.writestr(f"kite-main/{name}", content)
        for name in ("guide.pdf", "images/kite.png", "images/kite.SVG"):
            archive.writestr(f"kite-main/{name}", b"no page")
    return made.getvalue()


def looks_primary(page, name):
    """Whether a link has the colors of a page's main action, by those of a button that is one."""
    return page.get_by_role("link", name=name).evaluate("""(link) => {
      const primary = document.createElement("a");
      primary.className = "button primary";
      const now = getComputedStyle(link).backgroundColor;
      document.body.append(primary);
      const wanted = getComputedStyle(primary).backgroundColor;
      primary.remove();
      return now === wanted;
    }""")


def test_first_run_needs_nothing_but_a_browser(page):
    page, service = page
    page.goto(service.cli("login")["link"])
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_role("heading", name="Begin with your documentation").wait_for()
    page.get_by_label("Project name", exact=True).fill("Kite guide")
    page.get_by_label("Your organization").fill("Acme")
    file = {"name": "kite.zip", "mimeType": "application/zip", "buffer": archive()}
    page.get_by_label("Zip archive").set_input_files(file)
    page.get_by_role("button", name="Create the project").click()

    page.wait_for_url(re.compile(r"/sites/kite-guide$"))
    page.get_by_text("The project is created. Not read: 1 PDF file and 2 pictures.").wait_for()
    page.get_by_text("Commit").wait_for()  # the live region has shown the pages that were read
    page.get_by_role("link", name="3", exact=True).wait_for()  # of its pages

    page.get_by_role("link", name="Questions", exact=True).click()
    assert looks_primary(page, "Open the sites")  # the only action of an empty page
    page.go_back()
    page.get_by_role("link", name="Ask it").click()
    page.get_by_label("Your question").fill("How do I set the delay of a retry?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("retryDelaySecs").first.wait_for()

    page.get_by_role("link", name="This site").click()
    page.get_by_role("link", name="Give a job").click()
    form = page.get_by_role("button", name='Insert add "TEXT" to PATH')
    form.focus()
    page.keyboard.press("Enter")
    field = page.get_by_label("Instruction")
    assert field.input_value() == 'add "TEXT" to PATH'
    page.keyboard.type("Kites have a page.")  # over the part that was selected
    field.fill(field.input_value().replace("PATH", "index.md"))
    page.get_by_role("button", name="Create the job").click()

    page.get_by_text("Ready for review").first.wait_for()
    page.locator("summary", has_text="Merge").click()
    page.get_by_role("button", name=re.compile("^Merge into")).click()
    page.get_by_text("Merged").first.wait_for()
