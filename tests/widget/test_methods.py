"""The widget by keyboard and by its methods, its hooks, and what a screen reader hears of it."""

import pytest

from tests.widget.conftest import expected_errors
from tests.widget.test_panel import QUESTION, answer, ask

pytestmark = pytest.mark.slow

FOCUSED = "() => document.querySelector('ask-docs').shadowRoot.activeElement?.id"
NAME = """() => {
  const one = document.querySelector("ask-docs").shadowRoot.activeElement;
  return one && (one.ariaLabel || one.textContent.trim());
}"""
HOOKS = """async () => {
  window.told = [];
  window.Docsmith.on("event", (event) => window.told.push(event));
  window.Docsmith.on("event", () => { throw new Error("of the page"); });
}"""


def test_shortcuts_open_and_escape_returns_the_focus(opened, provider):
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.locator("#field").focus()
    page.keyboard.press("Control+i")
    page.wait_for_function(f"() => ({FOCUSED})() === 'question'")
    page.keyboard.press("Control+k")
    page.wait_for_function(f"() => ({FOCUSED})() === 'words'")
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    assert page.evaluate("() => document.activeElement.id") == "field"


def test_everything_is_reached_by_keyboard(opened, provider):
    provider.will_reply("Run the installer [1].")
    page = opened()
    page.keyboard.press("Control+i")
    page.wait_for_function(f"() => ({FOCUSED})() === 'question'")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Please.")
    page.keyboard.press("Enter")
    found = answer(page)
    assert page.get_by_role("heading", name=f"{QUESTION} Please.").is_visible()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        reached.add(page.evaluate(NAME))
    assert {"Close", "New conversation", "Helpful", "Not helpful", "Copy", "Answer again", "Conversation"} <= reached
    found.get_by_role("button", name="Helpful", exact=True).focus()
    page.keyboard.press("Space")
    page.locator("ask-docs [data-name=up][aria-pressed=true]").wait_for()
    page.get_by_role("tab", name="Ask").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Search").get_attribute("aria-selected") == "true"


TAKE_K = """() => {
  window.opens = 0;
  window.Docsmith.on("open", () => { window.opens += 1; });
  document.addEventListener("keydown", function take(event) {
    if (event.key !== "k") return;
    event.preventDefault();
    document.removeEventListener("keydown", take);
  });
}"""


def test_page_keeps_keys_that_it_uses_itself(opened, site):
    site.body = '<div id="editor" contenteditable="true">Text</div>'
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.evaluate(TAKE_K)
    page.locator("#editor").click()
    page.keyboard.press("Control+i")
    page.locator("#field").focus()
    page.keyboard.press("Control+k")
    page.evaluate("window.Docsmith.close()")  # it comes after what a key would have opened
    assert page.evaluate("window.opens") == 0
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").wait_for()


def test_answer_is_announced_by_sentences(opened, provider, hold):
    provider.will_reply("Run the **installer**. It takes ", "a minute.", after=1, hold=hold.event)
    page = opened()
    ask(page)
    log = page.locator("ask-docs [role=log]")
    log.get_by_text("Run the installer").wait_for()
    assert [one for one in log.locator("p").all_inner_texts() if "It takes" in one] == []
    hold.release()
    answer(page)
    heard = " ".join(log.locator("p").all_text_contents())
    assert heard.split("sent. ")[1].split() == ["Run", "the", "installer", ".", "It", "takes", "a", "minute."]


def test_motion_is_left_out_where_it_is_unwanted(opened):
    page = opened(reduced_motion="reduce")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert page.get_by_role("dialog").evaluate("(one) => getComputedStyle(one).animationName") == "none"


def test_methods_are_those_of_other_widgets(opened, provider, site):
    key = site.service.assistant_key
    site.tag = {"site": "", "key": ""}
    page = opened()
    page.wait_for_function("() => window.Docsmith")
    with expected_errors(opened):  # a hook of the page throws
        page.evaluate(HOOKS)
        page.evaluate(
            """async ([site, key]) => {
              await Docsmith.init({
                site, key, appearance: { variant: "modal", accent: "#7c3aed", theme: "dark" },
                labels: { title: "Copilot", trigger: "Help" }, starterQuestions: ["How do I start?"],
                supportEmail: "help@example.com",
              });
              await Docsmith.open({ source: "page" });
            }""",
            [site.service.domain, key],
        )
        panel = page.get_by_role("dialog", name="Copilot")
        assert panel.evaluate("(one) => one.matches(':modal') && one.classList.contains('dark')")
        assert page.get_by_role("link", name="Contact support").is_visible()
        assert page.locator("ask-docs .opener").text_content() == "Help"
        provider.will_reply("Run it.")
        page.get_by_role("button", name="How do I start?").click()
        answer(page)
        page.evaluate("() => Docsmith.update({ labels: { title: null }, supportEmail: null })")
        assert page.get_by_role("dialog", name="Ask the documentation").is_visible()
        assert not page.get_by_role("link", name="Contact support").is_visible()
        page.evaluate("() => Docsmith.close()")
        assert not page.get_by_role("dialog").is_visible()
        provider.will_reply("Wait.")
        page.evaluate("() => Docsmith.ask('And then?', { source: 'button' })")
        assert "Wait." in answer(page, 1).inner_text()
        page.evaluate("() => Docsmith.reset()")
        page.get_by_role("region", name="Suggested questions").wait_for()
        page.evaluate("() => Docsmith.destroy()")
        assert page.locator("ask-docs").count() == 0
        told = page.evaluate("() => window.told")
    order = [one["type"] for one in told]
    for wanted in ("init", "open", "ask", "reply", "update", "close", "reset", "destroy"):
        assert wanted in order, order
    assert "And then?" not in str(told)
    assert next(one for one in told if one["type"] == "open")["source"] == "page"


def test_open_panel_follows_its_form_and_words(opened, provider, site):
    site.tag |= {"title": "Copilot", "label": "Help", "theme": "dark"}
    page = opened()
    page.get_by_role("button", name="Help").click()
    page.wait_for_function(f"() => ({FOCUSED})() === 'question'")
    panel = page.get_by_role("dialog", name="Copilot")
    panel.wait_for()
    layers = []
    for form in ("modal", "popover", "side"):
        page.evaluate("(form) => Docsmith.update({ form })", form)
        layers.append(panel.evaluate("(one) => [one.matches(':modal'), one.matches(':popover-open')]"))
        assert page.evaluate(FOCUSED) == "question"
    assert layers == [[True, False], [False, True], [False, True]]
    page.evaluate("() => Docsmith.update({ labels: null, appearance: null })")
    panel = page.get_by_role("dialog", name="Ask the documentation")
    assert "dark" not in panel.get_attribute("class").split()
    page.evaluate("() => Docsmith.update({ labels: { trigger: 'Ask us' } })")
    assert page.locator("ask-docs .opener").text_content() == "Ask us"
    page.keyboard.press("Escape")
    assert not panel.is_visible()


@pytest.mark.parametrize(("side", "edge"), [("right", "padding-right"), ("left", "padding-left")])
def test_side_panel_pushes_the_page_aside(opened, provider, site, side, edge):
    site.tag |= {"push": "on", "side": side}
    page = opened()
    page.evaluate("(edge) => document.documentElement.style.setProperty(edge, '10px')", edge)
    shown = "(edge) => document.documentElement.style.getPropertyValue(edge)"
    page.get_by_role("button", name="Ask", exact=True).click()
    panel = page.get_by_role("dialog")
    panel.wait_for()
    box, main = panel.bounding_box(), page.locator("main").bounding_box()
    assert page.evaluate(shown, edge) == "426px"
    assert main["x"] >= box["x"] + box["width"] if side == "left" else main["x"] + main["width"] <= box["x"]
    page.set_viewport_size({"width": 800, "height": 700})
    page.wait_for_function(f"() => ({shown})('{edge}') === '10px'")
    page.set_viewport_size({"width": 1280, "height": 700})
    page.wait_for_function(f"() => ({shown})('{edge}') === '426px'")
    page.evaluate("() => Docsmith.update({ form: 'modal' })")
    assert page.evaluate(shown, edge) == "10px"
    page.evaluate("() => Docsmith.update({ form: 'side' })")
    assert page.evaluate(shown, edge) == "426px"
    page.evaluate("() => Docsmith.update({ push: false })")
    assert page.evaluate(shown, edge) == "10px"
    page.evaluate("() => Docsmith.update({ push: true })")
    page.evaluate("() => Docsmith.close()")
    assert page.evaluate(shown, edge) == "10px"
    page.evaluate("() => Docsmith.open()")
    page.evaluate("() => Docsmith.destroy()")
    assert page.evaluate(shown, edge) == "10px"


def test_element_of_a_page_drawn_later_becomes_the_panel(opened, provider):
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.evaluate("() => document.querySelector('main').append(document.createElement('ask-docs'))")
    page.get_by_role("dialog").wait_for()
    assert page.locator("ask-docs").count() == 1
    provider.will_reply("Run it.")
    ask(page)
    answer(page)
    page.evaluate("() => document.querySelector('ask-docs').remove()")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert "Run it." in answer(page).inner_text()


def test_settings_of_the_site_are_shown(opened, service):
    update = ("site", "update", service.domain)
    service.cli(*update, "--title", "Ask Kite", "--suggestion", "How do I fly?", "--form", "popover")
    try:
        page = opened()
        page.get_by_role("button", name="Ask", exact=True).click()
        panel = page.get_by_role("dialog", name="Ask Kite")
        panel.get_by_role("button", name="How do I fly?").wait_for()
        assert panel.get_attribute("data-form") == "popover"
    finally:
        service.cli(*update, "--title", "", "--no-suggestions", "--form", "side")


def test_page_of_an_older_version_loads_the_newest_panel(opened, site, provider):
    provider.will_reply("Run it.")
    page = opened("about:blank")
    old = "A" * 43
    served = []

    def older(route):
        response = route.fetch()
        body = response.text()
        if not served:
            body = body.replace(body.split('"panel":"')[1][:43], old)
        served.append(route.request.url)
        route.fulfill(response=response, body=body)

    with expected_errors(opened) as errors:
        page.route("**/widget.js", older)
        page.goto("/install")
        ask(page)
        assert "Run it." in answer(page).inner_text()
        assert [one for one in errors if old not in one and "net::ERR_FAILED" not in one] == []
    assert len(served) == 2
