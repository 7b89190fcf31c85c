"""Answers of the widget under bad conditions: hostile text, a page that is reloaded, a server that is killed."""

import pytest

from tests.dashboard.test_ask_page import HOSTILE, STREAM
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import recorded
from tests.service_process import free_port
from tests.widget.conftest import expected_errors

pytestmark = pytest.mark.slow

TEXTS = ("Fetch the kite, ", "hold the ", "string.")
WHOLE = "".join(TEXTS)
MORE_HOSTILE = (
    "\n\n```html\n<script>alert(6)</script>\n```\n\n<svg onload=alert(7)>\n\n"
    "[a](data:image/svg+xml,<svg onload=alert(8)>)\n\n"
)
HEADERS = {"Access-Control-Allow-Origin": "*", "Content-Type": "text/event-stream"}


def ask(page):
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("textbox", name="Your question").fill("How do I install Kite?")
    page.keyboard.press("Enter")


def shown(page):
    return page.get_by_role("article", name="Answer").locator(".prose")


def wait_for_text(page, text):
    shown(page).filter(has_text=text).wait_for()


@pytest.mark.parametrize(
    "text",
    [HOSTILE + MORE_HOSTILE, "x" * 1_000_000, "<script>alert(1)</script>" * 10_000],
    ids=["markup", "long line", "many deltas"],
)
def test_hostile_answer_is_text(opened, text):
    page = opened()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    body = page.evaluate(STREAM, text)
    page.route("**/assistant/kite/message", lambda route: route.fulfill(status=200, headers=HEADERS, body=body))
    ask(page)
    page.get_by_role("button", name="Answer again").wait_for()
    hrefs = shown(page).locator("a").evaluate_all("all => all.map((one) => one.protocol)")
    assert set(hrefs) <= {"https:", "http:", "mailto:"}
    assert shown(page).locator("img, script, b, iframe, style, svg:not(button svg)").count() == 0
    assert shown(page).locator("[onload], [onerror], [style]").count() == 0
    assert text[:30] in shown(page).inner_text()
    assert dialogs == []


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("form", ["side", "modal", "popover"])
def test_reload_in_mid_answer_loses_no_character(opened, provider, site, hold, form, is_closed):
    site.tag["form"] = form
    provider.will_reply(*TEXTS, after=1, hold=hold.event)
    page = opened()
    ask(page)
    wait_for_text(page, "Fetch the kite")
    if is_closed:
        page.get_by_role("button", name="Close").click()
    page.reload()
    page.locator("ask-docs .prose").filter(has_text="Fetch the kite").wait_for(state="attached")
    is_open = form != "modal" and not is_closed  # what covers the page is not opened again
    assert page.get_by_role("dialog").is_visible() is is_open
    hold.release()
    page.locator("ask-docs .prose").filter(has_text=WHOLE).wait_for(state="attached")
    if not is_open:
        page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name="Answer again").wait_for()
    assert shown(page).inner_text() == WHOLE
    assert len(provider.asked) == 1


def test_answer_goes_on_after_a_kill(opened, site, provider, provider_port, hold, elsewhere, tmp_path):
    with scripted_service(tmp_path, provider_port) as service:
        service.stop()
        port = str(free_port())
        service.start("--port", port)
        site.service = service
        provider.will_reply(*TEXTS, after=1, hold=hold.event)
        page = opened()
        with page.expect_response("**/message") as response:
            ask(page)
        wait_for_text(page, "Fetch the kite")
        thread_id = response.value.headers["x-thread-id"]
        elsewhere.run(recorded(service, f"thread-{thread_id}", until="reply-written"))
        service.kill()
        provider.will_reply("hold the string.")
        service.start("--port", port)
        page.get_by_role("button", name="Answer again").wait_for()
        assert shown(page).inner_text() == WHOLE
        hold.release()
    with expected_errors(opened) as errors:
        assert all("ERR_" in error for error in errors), errors  # the lost connection
