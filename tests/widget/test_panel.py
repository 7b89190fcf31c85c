"""Asking and searching in the chat widget, on a page of another origin with the strictest policy, in Chromium."""

import re

import pytest

from tests.widget.conftest import expected_errors

pytestmark = pytest.mark.slow

QUESTION = "How do I install Kite?"


def ask(page, question=QUESTION):
    if not page.get_by_role("dialog").is_visible():
        page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("textbox", name="Your question").fill(question)
    page.keyboard.press("Enter")


def answer(page, at=0):
    """The answer, once it is whole."""
    found = page.get_by_role("article", name="Answer").nth(at)
    found.get_by_role("button", name="Helpful", exact=True).wait_for()
    return found


def test_answer_is_shown_with_its_sources_as_cards(opened, provider):
    provider.will_reply("Run the installer, ", "**then wait**.")
    page = opened()
    ask(page)
    found = answer(page)
    assert found.locator("strong").inner_text() == "then wait"
    card = found.get_by_role("link", name="Install").first
    assert card.get_attribute("href").startswith("/install")
    assert "To install Kite" in card.inner_text()
    card.click()
    page.wait_for_url("**/install*")
    assert answer(page).locator("strong").inner_text() == "then wait"


def test_base_of_the_site_is_before_its_addresses(opened, provider, site):
    provider.will_reply("Read [how](/retry#delay), or [run](javascript:alert(1)).")
    site.tag["base"] = "https://kite.example/project"
    page = opened()
    ask(page)
    links = answer(page).locator(".prose a")
    assert [one.get_attribute("href") for one in links.all()] == ["https://kite.example/project/retry#delay"]
    assert links.first.get_attribute("target") == "_blank"


def test_search_shows_pages_as_the_reader_types(opened, provider):
    page = opened()
    page.keyboard.press("Control+k")
    words = page.get_by_role("searchbox", name="Search the documentation")
    words.press_sequentially("delay betw")
    first = page.get_by_role("list", name="Results").get_by_role("link").first
    first.wait_for()
    assert first.get_attribute("href") == "/retry#delay"
    assert first.locator("mark").first.inner_text().lower() == "delay"
    assert page.get_by_text("can be wrong").is_hidden()
    page.keyboard.press("ArrowDown")
    assert first.evaluate("(one) => one === one.getRootNode().activeElement")
    page.keyboard.press("ArrowUp")
    provider.will_reply("Set it to 30.")
    page.get_by_role("button", name="Ask about “delay betw”").click()
    assert "Set it to 30." in answer(page).inner_text()
    page.keyboard.press("Control+k")
    words.fill("installer")
    page.keyboard.press("Enter")
    page.wait_for_url("**/install*")


def test_search_without_a_result_offers_to_ask(opened, provider):
    page = opened()
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox").fill("zeppelin")
    page.get_by_text("Nothing was found.").first.wait_for()
    provider.will_reply("It is not in the documentation.")
    page.keyboard.press("Enter")
    assert "not in the documentation" in answer(page).inner_text()


def test_page_and_selected_text_are_sent(opened, provider):
    page = opened()
    page.locator("#text").select_text()
    page.keyboard.press("Control+i")
    chip = page.locator("ask-docs .about")
    assert "The installer needs 20 MB" in chip.inner_text()
    provider.will_reply("Twenty.")
    ask(page, "How much is that?")
    answer(page)
    asked = str(provider.asked[-1].body["messages"])
    assert "The installer needs 20 MB of disk." in asked
    assert "/install" in asked
    assert not chip.is_visible()


def test_selected_text_can_be_left_out(opened, provider):
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#text").select_text()
    page.get_by_role("button", name="Remove the selected text").click()
    provider.will_reply("Twenty.")
    ask(page, "How much is that?")
    answer(page)
    assert "selected" not in str(provider.asked[-1].body["messages"][-1]).lower()


def test_answer_can_be_stopped_and_asked_again(opened, provider, hold):
    provider.will_reply("First ", "half.", after=1, hold=hold.event)
    page = opened()
    ask(page)
    page.get_by_text("First").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("You stopped this answer.").wait_for()
    hold.release()
    provider.will_reply("The whole answer.")
    page.get_by_role("button", name="Answer again").click()
    page.get_by_text("The whole answer.").first.wait_for()
    assert page.get_by_role("article", name="Answer").count() == 1


def test_passages_stand_in_for_a_failed_answer_until_it_is_tried_again(opened, provider):
    page = opened()
    with expected_errors(opened):
        provider.will_fail(401, "authentication_error")
        ask(page)
        found = answer(page)
        assert "The assistant is misconfigured. These are the passages" in found.inner_text()
        assert "To install Kite" in found.locator("blockquote").first.inner_text()
        assert "scripted failure" not in page.get_by_role("dialog").inner_text()
        assert not page.get_by_role("alert").is_visible()
        provider.will_reply("Now it works.")
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("Now it works.").first.wait_for()
        assert "misconfigured" not in answer(page).inner_text()


def test_question_goes_to_the_top_of_the_panel(opened, provider):
    page = opened()
    for at, asked in enumerate([QUESTION, "How long?"]):
        provider.will_reply("\n\n".join(f"Line {number}." for number in range(60)))
        ask(page, asked)
        answer(page, at)
        tops = "(one) => one.getBoundingClientRect().top"
        log = page.locator("ask-docs .log").evaluate(tops)
        assert 0 <= page.locator("ask-docs .asked").nth(at).evaluate(tops) - log < 40


def test_panel_says_who_writes_the_answers(opened, provider):
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("Answers are written by AI and can be wrong.").wait_for()


def test_answer_and_code_are_copied(opened, provider):
    provider.will_reply("Run `it`, see [how](/install):\n\n```python\nimport kite  # now\n```\n\nDone.")
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    ask(page)
    found = answer(page)
    copied = "() => navigator.clipboard.readText()"
    found.locator("pre").get_by_role("button", name="Copy").click()
    page.locator("ask-docs .status", has_text="Copied").wait_for()
    assert page.evaluate(copied) == "import kite  # now"
    found.locator(".actions").get_by_role("button", name="Copy").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('Run `it`')")
    assert f"[how]({page.url.split('/install')[0]}/install)" in page.evaluate(copied)
    assert found.locator("pre .code-keyword").inner_text() == "import"


def test_rating_takes_a_reason(opened, provider, service):
    provider.will_reply("It just works.")
    page = opened()
    ask(page)
    answer(page).get_by_role("button", name="Not helpful").click()
    reason = page.get_by_role("textbox", name="What was missing or wrong?")
    reason.wait_for()
    page.wait_for_function("() => document.querySelector('ask-docs').shadowRoot.activeElement?.textContent === 'Wrong'")
    page.get_by_role("button", name="Wrong").click()
    page.get_by_role("button", name="Outdated").click()
    page.get_by_role("button", name="Wrong").click()
    page.get_by_role("button", name="Incomplete").click()
    reason.fill("The version is missing.")
    with page.expect_request("**/feedback/**") as sent:
        page.keyboard.press("Enter")
    assert sent.value.post_data_json["comment"] == "[Outdated, Incomplete] The version is missing."
    page.locator("ask-docs .reply").get_by_text("Your words are saved.").wait_for()
    assert page.get_by_role("button", name="Not helpful").get_attribute("aria-pressed") == "true"
    page.reload()
    assert answer(page).get_by_role("button", name="Not helpful").get_attribute("aria-pressed") == "true"


def test_suggestions_of_an_answer_are_asked(opened, provider):
    provider.will_reply("Run it [1].\n\n```suggestions\n(How long does it take?)[/install]\n```")
    page = opened()
    ask(page)
    provider.will_reply("A minute.")
    answer(page).get_by_role("button", name="How long does it take?").click()
    assert "A minute." in answer(page, 1).inner_text()


def test_sentences_without_a_source_are_named(opened, provider):
    provider.will_reply("The installer needs 20 MB of disk [1]. Set `kiteTimeout` to 99 seconds [1].")
    page = opened()
    ask(page)
    found = answer(page)
    checks = found.locator("details.checks")
    assert not checks.get_by_text("kiteTimeout").is_visible()
    checks.locator("summary").click()
    assert "kiteTimeout" in checks.get_by_role("listitem").inner_text()


def test_conversations_stay_over_a_reload(opened, provider):
    provider.will_reply("Run the installer.")
    page = opened()
    ask(page)
    answer(page)
    page.reload()
    assert "Run the installer." in answer(page).inner_text()
    provider.will_reply("As long as it takes.")
    ask(page, "How long?")
    assert "As long" in answer(page, 1).inner_text()
    page.get_by_role("button", name="New conversation").click()
    earlier = page.get_by_role("region", name="Earlier conversations")
    earlier.get_by_role("button", name=QUESTION, exact=True).click()
    assert "As long" in answer(page, 1).inner_text()
    page.get_by_role("button", name="New conversation").click()
    earlier.get_by_role("button", name=f"Forget “{QUESTION}”").click()
    earlier.wait_for(state="detached")
    page.get_by_role("button", name="Close").click()
    page.reload()
    assert not page.get_by_role("dialog").is_visible()


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("https://help.example/new?a=b", r"https://help\.example/new\?a=b&threadId=THREAD"),
        ("https://help.example/t/{threadId}", "https://help.example/t/THREAD"),
        ("help@example.com", r"mailto:help@example\.com\?subject=Ask%20the%20documentation%20\(THREAD\)"),
    ],
)
def test_hand_off_carries_the_conversation(opened, provider, site, address, wanted):
    site.tag["hand-off"] = address
    provider.will_reply("Run the installer.")
    page = opened()
    ask(page)
    answer(page)
    key = f"docsmith:{site.service.domain}"
    thread = page.evaluate("(key) => JSON.parse(sessionStorage.getItem(key)).threads[0].threadId", key)
    href = page.get_by_role("link", name="Contact support").get_attribute("href")
    assert thread
    assert re.fullmatch(wanted.replace("THREAD", re.escape(thread)), href)
