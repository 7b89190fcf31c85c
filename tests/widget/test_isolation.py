"""What keeps the widget and the page apart: policies, style sheets, forms, languages, sizes of windows; and axe."""

import pytest

from tests.widget.conftest import HOSTILE_CSS, STRICTEST
from tests.widget.test_panel import answer, ask

pytestmark = pytest.mark.slow

FOR_AXE = STRICTEST.replace("{host};", "{host} 'unsafe-eval';")
FORMS = ["side", "modal", "popover", "inline"]
SMALL = """() =>
  [...document.querySelector("ask-docs").shadowRoot.querySelectorAll("button, a, summary, #question, input")]
  .filter((one) => one.checkVisibility() && !one.closest(".prose p, .prose li"))
  .filter((one) => one.getBoundingClientRect().height < 43.5 || one.getBoundingClientRect().width < 43.5)
  .map((one) => one.outerHTML.slice(0, 120))"""
WIDE = "() => document.querySelector('ask-docs').shadowRoot.querySelector('.panel').scrollWidth - innerWidth"
LOOK = """() => [...document.querySelector("ask-docs").shadowRoot.querySelectorAll(".panel, .panel :not(.unseen *)")]
.map((one) => {
  one.closest(".scroll")?.scrollTo(0, 0);
  const { x, y, width, height } = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  return [one.localName, one.className, x, y, width, height, style.display, style.color, style.font, style.visibility];
})"""
SETTLED = """() => Promise.all(
  document.querySelector("ask-docs").shadowRoot.getAnimations().filter((one) =>
    one.effect.getComputedTiming().iterations !== Infinity).map((one) => one.finished))"""
"""Waits for what moves as the panel opens."""
ANSWER = (
    "Run `it` [1]:\n\n## Steps\n\n1. Download\n2. Run\n\n```python\nimport kite  # now\n```\n\n> Mind the wind.\n\n"
    "| Option | Default |\n|---|---|\n| delay | 30 |\n\nSet `kiteTimeout` to 99 seconds [1]."
)


def shown(opened, provider, site, form, **more):
    """A page with the panel open in this form, and an answer in it."""
    if form == "inline":
        site.body = "<ask-docs></ask-docs>"
    else:
        site.tag["form"] = form
    provider.will_reply(ANSWER)
    page = opened(**more)
    if form == "inline":
        page.get_by_role("dialog").wait_for()
    ask(page)
    answer(page)
    page.locator("ask-docs .code-keyword").wait_for()
    return page


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_accessible_in_light_and_dark(opened, provider, site, axe, form, size):
    site.policy = FOR_AXE
    site.css = "@media (prefers-color-scheme: dark) { html { background: #111; color: #eee } a { color: #9cf } }"
    page = shown(opened, provider, site, form, size=size)
    page.get_by_role("button", name="Not helpful").click()
    page.get_by_role("button", name="Outdated").click()
    assert axe(page) == []
    assert page.evaluate(SMALL) == []
    assert page.evaluate(WIDE) <= 0
    page.emulate_media(color_scheme="dark")
    page.locator("ask-docs .panel.dark").wait_for()
    assert axe(page) == []


@pytest.mark.parametrize("form", ["side", "modal", "popover"])
def test_style_of_the_page_changes_nothing(opened, provider, site, form):
    looks = []
    for css in ("", HOSTILE_CSS):
        site.css = css
        page = shown(opened, provider, site, form)
        page.evaluate(SETTLED)
        looks.append(page.evaluate(LOOK))
        page.get_by_role("button", name="Close").click()
        looks[-1].append(page.get_by_role("button", name="Ask", exact=True).bounding_box())
    assert looks[0] == looks[1]


def test_page_loads_nothing_but_the_loader_before_use(opened, site):
    page = opened()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    names = "() => performance.getEntriesByType('resource').map((one) => one.name)"
    assert page.evaluate(names) == [f"{site.origin}/page.css", f"{site.service.url}/widget.js"]
    page.get_by_role("button", name="Ask", exact=True).hover()
    page.wait_for_function(f"() => ({names})().some((name) => name.includes('/widget/'))")


def test_arabic_is_shown_from_right_to_left(opened, provider, site):
    site.language = "ar-EG"
    provider.will_reply("شغّل المثبّت.")
    page = opened()
    page.get_by_role("button", name="اسأل", exact=True).click()
    panel = page.get_by_role("dialog")
    page.get_by_role("textbox", name="سؤالك").fill("كيف؟")
    page.keyboard.press("Enter")
    panel.get_by_text("شغّل المثبّت.").first.wait_for()
    assert panel.evaluate("(one) => getComputedStyle(one).direction") == "rtl"
    assert panel.get_attribute("lang") == "ar"
    whole = panel.get_by_role("button", name="مفيدة", exact=True)  # while a reply is written, no question is taken
    whole.first.wait_for()
    provider.will_reply("1. شغّل المثبّت.")
    page.get_by_role("textbox", name="سؤالك").fill("كيف؟")
    page.keyboard.press("Enter")
    panel.locator("ol li", has_text="المثبّت").wait_for()
    whole.nth(1).wait_for()
    provider.will_reply("1. Run the installer.\n2. Wait.")
    page.get_by_role("textbox", name="سؤالك").fill("How?")
    page.keyboard.press("Enter")
    panel.locator("ol li", has_text="Wait.").wait_for()
    directions = "(lists) => lists.map((one) => getComputedStyle(one).direction)"
    assert panel.locator(".prose ol").evaluate_all(directions) == ["rtl", "ltr"]


def test_panel_can_be_used_at_four_times_the_size(opened, provider, site):
    provider.will_reply(ANSWER)
    page = opened()
    page.set_viewport_size({"width": 320, "height": 225})  # a window of 1280 by 900, zoomed to 400 %
    ask(page)
    answer(page)
    assert page.evaluate(WIDE) <= 0
    field = page.get_by_role("textbox", name="Your question")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 225


@pytest.mark.parametrize(
    ("css", "attributes", "is_dark"),
    [
        ("html[data-theme=dark] body { background: #1b1b1d }", 'data-theme="dark"', True),
        ("html.dark { background: rgb(27 27 31) }", 'class="dark"', True),
        ("", "", False),
        ("body { background: #fdf6e3 }", "", False),
    ],
)
def test_theme_follows_the_page_not_the_system(opened, site, css, attributes, is_dark):
    site.css, site.attributes = css, attributes
    page = opened(scheme="light" if is_dark else "dark")
    page.get_by_role("button", name="Ask", exact=True).click()
    panel = page.get_by_role("dialog")
    assert ("dark" in panel.get_attribute("class")) is is_dark
    page.evaluate(
        "() => { for (const name of ['class', 'data-theme']) document.documentElement.removeAttribute(name) }"
    )
    page.locator("ask-docs .panel:not(.dark)").wait_for()


@pytest.mark.parametrize("accent", ["#ffee00", "#000", "hotpink", "#0b6e4f"])
def test_accent_colour_stays_readable(opened, provider, site, axe, accent):
    site.tag["accent"] = accent
    site.policy = FOR_AXE
    page = shown(opened, provider, site, "side")
    assert axe(page) == []


def test_dialog_is_whole_without_popovers(opened, provider, site):
    page = opened()
    page.evaluate("() => { delete HTMLElement.prototype.showPopover }")  # as in browsers before 2024
    provider.will_reply("Run the installer.")
    ask(page)
    assert "Run the installer." in answer(page).inner_text()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
