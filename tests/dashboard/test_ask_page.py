"""The ask page in a browser: an answer as it is written, threads over a reload, hostile answers, keyboard, axe."""

import pytest

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script>\n\n[script](javascript:alert(3)) <javascript:alert(4)> "
    "[data](data:text/html,<script>alert(5)</script>)\n\n![image](https://evil.example/pixel.png)\n\n"
    + "> " * 5_000
    + "deep\n\n"
    + "**[*`_" * 3_000
    + "\n\n| a | b |\n|---|---|\n| <b>x</b> | [y](vbscript:z) |\n"
)
STREAM = """
(text) => {
  const chunk = (one) => `data: ${JSON.stringify(one)}\\n\\n`;
  const delta = (one) => chunk({ type: "text-delta", id: "t1", delta: one });
  const pieces = text.match(/[\\s\\S]{1,97}/g).map(delta).join("");
  return chunk({ type: "start", messageId: "r1" }) + chunk({ type: "text-start", id: "t1" }) + pieces
    + chunk({ type: "finish" }) + "data: [DONE]\\n\\n";
}
"""


def ask(page, text):
    page.get_by_label("Your question").fill(text)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_reader_asks_and_sees_sources(browsing, axe, size, scheme):
    with browsing.opened("viewer", size=size, scheme=scheme) as page:
        page.goto("/ask/kite")
        page.get_by_text("Answers are written from this documentation").wait_for()
        assert axe(page) == []
        ask(page, "How do I set the retry delay?")
        page.get_by_role("heading", name="Sources").wait_for()
        assert "retryDelaySecs" in page.locator(".reply .prose").inner_text()
        page.locator(".reply .prose a").first.click()
        assert page.locator(".sources details[open] .passage code").first.inner_text() == "retryDelaySecs"
        page.get_by_role("button", name="Not helpful").click()
        page.get_by_text("Your rating is saved.").filter(visible=True).first.wait_for()
        page.get_by_role("button", name="Incomplete").click()
        page.get_by_role("textbox", name="What was missing or wrong?").fill("Too short")
        page.get_by_role("button", name="Send").click()
        page.locator(".comment").get_by_text("Your words are saved.").wait_for()
        assert axe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_threads_survive_a_reload_and_can_be_opened(browsing):
    with browsing.opened("viewer") as page:
        page.goto("/ask/kite?q=How+do+I+install+Kite%3F")
        assert page.get_by_label("Your question").input_value() == "How do I install Kite?"
        assert page.locator(".reply").count() == 0
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_role("heading", name="Sources").wait_for()
        text = page.locator(".reply .prose").inner_text()
        page.reload()
        page.get_by_role("heading", name="Sources").wait_for()
        assert page.locator(".reply .prose").inner_text() == text
        assert page.locator(".reply").count() == 1
        page.get_by_role("button", name="New conversation").click()
        page.locator(".reply").wait_for(state="detached")
        ask(page, "What is the default delay?")
        page.get_by_role("heading", name="Sources").wait_for()
        page.get_by_text("Earlier conversations").click()
        page.get_by_role("button", name="How do I install Kite?", exact=True).click()
        page.locator(".asked", has_text="How do I install Kite?").wait_for()
        page.get_by_role("button", name="Answer again").click()
        page.get_by_role("button", name="Stop").wait_for(state="hidden")
        page.get_by_role("heading", name="Sources").wait_for()
        assert page.locator(".reply").count() == 1


def test_next_person_of_a_tab_gets_no_earlier_conversations(browsing):
    with browsing.opened("viewer") as page:
        page.goto("/ask/kite")
        ask(page, "How do I install Kite?")
        page.get_by_role("heading", name="Sources").wait_for()
        page.reload()
        page.locator(".asked").wait_for()
        page.context.add_cookies([browsing.session_of("editor")])  # what signing in as someone else does
        page.reload()
        page.get_by_text("Answers are written from this documentation").wait_for()
        assert page.locator(".asked").count() == 0
        assert page.locator("#earlier").is_hidden()


def test_hostile_answer_is_text(browsing):
    with browsing.opened("viewer") as page:
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto("/ask/kite")
        body = page.evaluate(STREAM, HOSTILE)
        page.route(
            "**/ask/kite/message", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body)
        )
        ask(page, "How?")
        page.get_by_role("button", name="Answer again").wait_for()
        hrefs = page.locator(".reply a").evaluate_all("all => all.map((one) => one.protocol)")
        assert set(hrefs) <= {"https:", "http:", "mailto:"}
        assert page.locator(".reply img, .reply script, .reply b, .reply iframe, .reply svg").count() == 0
        assert "<img src=x onerror=alert(1)>" in page.locator(".reply .prose").inner_text()
        assert dialogs == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_is_coloured(browsing, axe, scheme):
    code = 'import x from "y"; // c\nawait f(3);\n@meta class A {}'
    diff = "-old\n+new"
    with browsing.opened("viewer", scheme=scheme) as page:
        page.goto("/ask/kite")
        body = page.evaluate(STREAM, f"Do this:\n\n```js\n{code}\n```\n\n```diff\n{diff}\n```\n\nDone.")
        page.route(
            "**/ask/kite/message", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body)
        )
        ask(page, "How?")
        page.locator(".reply .code-removed").wait_for()
        assert page.locator(".reply pre").first.inner_text() == code
        kinds = ("comment", "string", "number", "keyword", "name", "meta", "added", "removed")
        assert all(page.locator(f".reply .code-{kind}").count() for kind in kinds)
        assert axe(page) == []


def test_error_can_be_tried_again(browsing):
    with browsing.opened("viewer") as page:
        page.goto("/ask/kite")
        problem = '{"code":"rate_limited","detail":"You have asked too many questions."}'
        page.route("**/ask/kite/message", lambda route: route.fulfill(status=429, body=problem), times=1)
        ask(page, "How do I install Kite?")
        page.get_by_role("alert").filter(has_text="You have asked too many questions.").wait_for()
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("heading", name="Sources").wait_for()
        assert page.get_by_role("alert").filter(visible=True).count() == 0


def test_page_works_by_keyboard_and_without_scripts(browsing, axe):
    with browsing.opened("viewer", scripts=False) as page:
        page.goto("/ask/kite")
        page.get_by_label("Your question").fill("retry delay")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("retryDelaySecs").first.wait_for()
