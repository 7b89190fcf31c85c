"""Files of the widget whose load failed are loaded again when they are needed next."""

import re

import pytest

from service.web.widget.bundle import HIGHLIGHT, MARKDOWN, SEARCH, widget
from tests.widget.conftest import expected_errors
from tests.widget.test_panel import answer, ask

pytestmark = pytest.mark.slow

CODE = "```python\nx = 1\n```\n"


def file_of(key):
    """The name of a file that the panel names."""
    return re.search(rf'"{key}":"([\w-]{{43}})"', widget().panel.body.decode())[1]


def lose(page, name, times):
    """Lose the first requests for a file; return the addresses of all."""
    asked = []

    def answer_or_lose(route):
        asked.append(route.request.url)
        if len(asked) <= times:
            route.abort()
        else:
            route.continue_()

    page.route(f"**/widget/{name}.js*", answer_or_lose)
    return asked


def search_for(page, words):
    page.get_by_role("searchbox", name="Search the documentation").press_sequentially(words)
    return page.get_by_role("list", name="Results").get_by_role("link").first


def test_panel_is_loaded_again_after_a_lost_request(opened, provider):
    provider.will_reply("Run it.")
    page = opened()
    asked = lose(page, widget().panel.name, 2)
    with expected_errors(opened) as errors:
        with page.expect_console_message(lambda said: "cannot be loaded" in said.text):
            page.keyboard.press("Control+i")  # it asks for the panel twice
        ask(page)
        assert "Run it." in answer(page).inner_text()
        assert [one for one in errors if "ERR_FAILED" not in one and "cannot be loaded" not in one] == []
    assert len(set(asked)) == len(asked) == 3
    assert page.locator("head script").count() == 0  # those that the widget added


@pytest.mark.parametrize("key", ["en", SEARCH], ids=["texts", "search"])
def test_file_is_loaded_again_after_a_lost_request(opened, key):
    page = opened()
    asked = lose(page, file_of(key), 1)
    with expected_errors(opened) as errors:
        with page.expect_console_message(lambda said: "cannot be loaded" in said.text):
            page.keyboard.press("Control+k")
        page.keyboard.press("Control+k")
        search_for(page, "installer").wait_for()
        assert [one for one in errors if "ERR_FAILED" not in one and "cannot be loaded" not in one] == []
    assert len(set(asked)) == len(asked) == 2


def test_answers_are_marked_up_after_a_lost_request(opened, provider):
    page = opened()
    lost = [lose(page, file_of(key), 1) for key in (MARKDOWN, HIGHLIGHT)]
    with expected_errors(opened) as errors:
        for number in range(3):  # the first has no Markdown, the second no colours
            provider.will_reply(CODE)
            ask(page)
            answer(page, number)
        assert {one for one in errors if "ERR_FAILED" not in one} == set()
    page.locator("ask-docs .prose").nth(2).locator("code span").first.wait_for()
    assert [len(asked) for asked in lost] == [2, 2]
    assert page.locator("head script").count() == 0


def test_answer_can_be_read_before_its_marks_are_drawn(opened, provider):
    provider.will_reply("Run it, **then wait**.")
    page = opened()
    held = []
    page.route(f"**/widget/{file_of(MARKDOWN)}.js*", lambda route: held.append(route))
    ask(page)
    found = answer(page)
    assert "Run it, **then wait**." in found.inner_text()
    held[0].continue_()
    found.locator("strong").wait_for()
    assert found.locator(".prose").inner_text() == "Run it, then wait."
