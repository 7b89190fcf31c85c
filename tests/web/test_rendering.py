"""Text and addresses of others, as pages show them."""

import pytest

from service.web.pages.rendering import rendered, web_address


@pytest.mark.parametrize("url", ["https://git.example/1", "http://git.example/1", "/hosted/a/pulls/1-b", "pulls/1"])
def test_links_may_lead_to_web_addresses(url):
    assert web_address(url) == url


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "\x01javascript:a", "data:text/html,a"],
)
def test_links_may_not_run_scripts(url):
    assert web_address(url) == ""


def test_error_shows_invisible_characters():
    html = rendered("problem_part.html", title="Not found", detail="Not found: a\u202eb <b>")
    assert "a⟨U+202E⟩b &lt;b&gt;" in html
