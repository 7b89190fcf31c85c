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
        page.get_by_text("Answers come from this documentation").wait_for()
        assert axe(page) == []
        ask(page, "How do I set the retry delay?")
        page.get_by_role("heading", name="Sources").wait_for()
        assert "retryDelaySecs" in page.locator(".reply .prose").inner_text()
        page.locator(".sources summary").first.click()
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
        page.get_by_text("Answers come from this documentation").wait_for()
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
        assert page.get_by_role("button", name="Ask", exact=True).count() == 0
        page.get_by_label("Your question").fill("retry delay")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator(".section code", has_text="retryDelaySecs").first.wait_for()
        assert "`" not in page.locator("#found").inner_text()
        page.locator("#found a", has_text="Retries").first.click()
        page.wait_for_url("**/ask/kite/pages/retry*")
        page.locator("h1", has_text="Retries").wait_for()


SLOW_STREAM = """
(() => {
  const asked = window.fetch;
  window.fetch = (url, options) => {
    if (!String(url).endsWith("/message")) return asked(url, options);
    const body = new ReadableStream({ start(controller) { window.stream = controller; } });
    return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  };
  window.push = (chunk) => window.stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(chunk)}\\n\\n`));
})()
"""
"""The reply to a question comes as the test pushes its chunks."""
LOW = {"width": 800, "height": 320}
ZOOMED = {"width": 640, "height": 450}  # 1280 x 900 at 200 %


def top_of(page, selector):
    return page.locator(selector).last.evaluate("(one) => one.getBoundingClientRect().top")


def push_text(page, text):
    page.evaluate("(delta) => window.push({ type: 'text-delta', id: 't1', delta })", text)
    page.locator(".reply .prose").last.get_by_text(text.split()[-1]).last.wait_for()


@pytest.mark.parametrize("viewport", [None, LOW, ZOOMED])
def test_question_goes_to_the_top_and_its_answer_below(browsing, viewport):
    with browsing.opened("viewer") as page:
        if viewport:
            page.set_viewport_size(viewport)
        page.goto("/ask/kite")
        assert page.evaluate("document.activeElement.id") == "question"
        for at, asked in enumerate(["How do I install Kite?", "How do I set the retry delay?"]):
            ask(page, asked)
            page.get_by_role("button", name="Helpful", exact=True).nth(at).wait_for()
            assert 0 <= top_of(page, ".asked") < 40
            assert top_of(page, ".reply .prose") < page.viewport_size["height"]
        assert page.evaluate("document.activeElement.id") == "question"
        page.reload()
        page.locator(".asked").last.wait_for()
        assert 0 <= top_of(page, ".asked") < 40


@pytest.mark.parametrize(("viewport", "position"), [(None, "sticky"), (LOW, "static"), (ZOOMED, "static")])
def test_field_is_one_line_that_grows_and_leaves_low_windows(browsing, viewport, position):
    with browsing.opened("viewer") as page:
        if viewport:
            page.set_viewport_size(viewport)
        page.goto("/ask/kite")
        field = page.get_by_label("Your question")
        height = "(one) => one.offsetHeight"
        before = field.evaluate(height)
        assert before < 50
        field.fill("one\ntwo\nthree")
        assert field.evaluate(height) > before + 30
        assert page.locator("#form").evaluate("(one) => getComputedStyle(one).position") == position


def test_long_answer_is_followed_until_the_reader_scrolls(browsing):
    with browsing.opened("viewer") as page:
        page.clock.install()
        page.add_init_script(SLOW_STREAM)
        page.goto("/ask/kite")
        ask(page, "How?")
        page.wait_for_function("window.stream")
        lines = [f"Line {number}.\n\n" for number in range(200)]
        push_text(page, "".join(lines[:5]))
        page.clock.fast_forward(3_000)
        push_text(page, "".join(lines[5:60]))
        hidden = (
            "document.querySelector('.reply').getBoundingClientRect().bottom"
            " - document.getElementById('form').getBoundingClientRect().top"
        )
        assert -100 < page.evaluate(hidden) <= 0
        page.evaluate("new Promise((done) => { addEventListener('scroll', done, { once: true }); scrollBy(0, -400); })")
        before = page.evaluate("scrollY")
        push_text(page, "".join(lines[60:90]))
        assert page.evaluate("scrollY") == before


def test_answer_that_is_slow_is_said_to_be_waited_for(browsing):
    with browsing.opened("viewer") as page:
        page.clock.install()
        page.add_init_script(SLOW_STREAM)
        page.goto("/ask/kite")
        ask(page, "How?")
        page.wait_for_function("window.stream")
        waiting = page.locator("#waiting")
        page.clock.fast_forward(9_000)
        assert waiting.is_hidden()
        page.clock.fast_forward(2_000)
        waiting.get_by_text("Still waiting for the answer").wait_for()
        assert "Still waiting" in page.locator("#spoken").inner_text()
        push_text(page, "Now.")
        waiting.wait_for(state="hidden")


def test_screen_reader_hears_sentences_and_nothing_stale(browsing, axe):
    with browsing.opened("viewer") as page:
        page.add_init_script(SLOW_STREAM)
        page.goto("/ask/kite")
        heard = page.locator("#spoken p")
        ask(page, "How?")
        page.wait_for_function("window.stream")
        push_text(page, "Run **it** [1](/install). Then\n\n| Key | Value |\n|---|---|\n| delay | 30 |\n\nand so ")
        assert heard.all_inner_texts() == ["Your question was sent.", "Run it .", "Then", "Key, Value. delay, 30."]
        table = page.locator(".reply .table")
        assert (table.get_attribute("role"), table.get_attribute("aria-label")) == ("group", "Key, Value")
        assert axe(page) == []
        page.get_by_role("button", name="Stop").click()
        heard.get_by_text("The answer was stopped.").wait_for()
        assert heard.all_inner_texts() == ["The answer was stopped."]
        ask(page, "And then?")
        heard.get_by_text("Your question was sent.").wait_for()
        assert heard.count() == 1
        page.evaluate("window.push({ type: 'error', errorText: 'It broke.' })")
        page.get_by_role("alert").filter(has_text="It broke.").wait_for()
        assert heard.count() == 0


def test_citations_name_their_source_and_lead_to_its_page(browsing, axe):
    with browsing.opened("viewer") as page:
        page.goto("/ask/kite")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=browsing.origin)
        ask(page, "How do I set the retry delay?")
        page.get_by_role("heading", name="Sources").wait_for()
        cited = page.locator(".reply .prose a", has_text="1").first
        assert cited.get_attribute("aria-label").startswith("1: Retries")
        numbers = [int(one.split(".")[0]) for one in page.locator(".sources summary").all_inner_texts()]
        assert numbers == sorted(numbers)
        page.get_by_role("button", name="Copy", exact=True).click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert f"]({browsing.origin}/ask/kite/pages/retry" in copied
        assert "](/" not in copied
        page.goto(cited.get_attribute("href"))
        page.get_by_text("retryDelaySecs").first.wait_for()
        assert axe(page) == []


def test_long_words_do_not_widen_a_table(browsing):
    with browsing.opened("viewer", size="phone") as page:
        page.add_init_script(SLOW_STREAM)
        page.goto("/ask/kite")
        ask(page, "How?")
        page.wait_for_function("window.stream")
        push_text(page, f"| Key | Value |\n|---|---|\n| delay | {'x' * 300} |\n\nDone.")
        page.locator(".reply td").first.wait_for()
        assert page.locator(".reply .table").evaluate("(one) => one.scrollWidth <= one.clientWidth")
