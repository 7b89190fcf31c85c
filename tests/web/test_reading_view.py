"""A page of a pull request as its readers see it, before and after; and the steps of the job behind it."""

import re
from datetime import UTC, datetime

import pytest

from service.domain.jobs.events import ContextsOpened, ModelReminded, ModelReplied, OpenedContext
from service.domain.model import ToolCall, Usage
from service.ports.code_host import PullRequestTexts
from service.views.jobs.job_steps import JobStep, JobSteps, StepReader
from service.web.pages.rendered_pages import MAX_CHARACTERS, render
from tests.web.test_pull_request_pages import (  # noqa: F401 - fixtures
    ADDRESS,
    app,
    browser,
    client,
    closed,
    counted,
    hosted,
    open_page,
    text_of,
)

READING = f"{ADDRESS}/rendered/1-0a1b-2c3d"
HEAD = "---\ntitle: Quickstart\n---\n\nimport X from 'x'\n\n# Begin { #begin }\n\n"
BEFORE = HEAD + "".join(f"Paragraph {n}.\n\n" for n in range(9)) + "Retry *twice*. See [it](/retry).\n"
AFTER = BEFORE.replace("*twice*", "*often*") + "\n<Note>\n  Be patient.\n</Note>\n"


@pytest.fixture
def reading(hosted):  # noqa: F811
    hosted.change(version="0a1b-2c3d")
    hosted.of_page = PullRequestTexts("A title", "quickstart.mdx", BEFORE, AFTER)
    return hosted


def html_of(text, path="a.mdx"):
    return "".join(row.after for row in render(None, text, path).rows)


async def test_pull_request_links_the_reading_view_of_pages(client, reading):  # noqa: F811
    html = await text_of(client)
    assert len(re.findall(r'<iframe src="7-s3-cr_et/rendered/\d-0a1b-2c3d" loading="lazy"', html)) == 4
    assert "/rendered/5-" not in html  # a picture


async def test_both_sides_are_shown_and_changes_marked(client, reading):  # noqa: F811
    response = await client.get(READING)
    html = await response.text()
    assert response.headers["Content-Security-Policy"].count("script-src") == 0
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert '<del class="prose"><p>Retry <em>twice</em>.' in html
    assert '<ins class="prose"><p>Retry <em>often</em>.' in html
    assert "Be patient." in html
    assert "unchanged blocks</summary>" in html
    assert "import X" not in html
    assert "#begin" not in html


async def test_reading_view_of_other_commits_says_so(client, reading):  # noqa: F811
    assert "Load its page again" in await text_of(client, f"{ADDRESS}/rendered/1-ffff-ffff", status=409)


async def test_reading_view_needs_the_token(client, reading):  # noqa: F811
    await text_of(client, READING.replace("s3-cr_et", "wrong"), status=404)


async def test_binary_page_is_not_rendered(client, reading):  # noqa: F811
    reading.of_page = PullRequestTexts("A title", "a.md", None, None, is_text=False)
    assert "too long" in await text_of(client, READING)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        '[x](<https://e.example/"onmouseover="alert(1)>)',
        "![<img src=x onerror=alert(1)>](x)",
        '```"><script>alert(1)</script>\nx\n```',
        '---\ntitle: "<script>alert(1)</script>"\nx: </code></pre><script>\n---\n\nHi',
        "<iframe src=//evil.example></iframe><style>*{display:none}</style><svg onload=alert(1)>",
        "{alert(1)}\n\n<X onClick={() => alert(1)} />\n\nexport const x = alert(1)",
        "<details open ontoggle=alert(1)>",
    ],
)
def test_markup_of_a_page_never_runs(text):
    for path in ("a.md", "a.mdx"):
        tags = re.findall(r"<([^>]*)", html_of(f"# T\n\n{text}\n", path))
        assert not [tag for tag in tags if re.match(r"(?:script|img|a|iframe|style|svg|details)\b", tag)]
        assert not [tag for tag in tags if re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', "", tag))]


@pytest.mark.parametrize("text", ["> " * 5_000 + "x", "[" * 50_000, "<Card title={" * 9_000, "<!--" * 20_000])
def test_deep_and_endless_markup_is_rendered(text):
    assert render(None, text, "a.mdx").rows


def test_page_beyond_the_limit_is_not_rendered():
    assert render("x" * MAX_CHARACTERS, "x", "a.md").is_too_long
    assert render("x" * (5 << 20), None, "a.md").is_too_long


def test_pages_without_a_common_block_are_still_shown():
    before, after = ("\n\n".join(f"{word} {n}" for n in range(3_000)) for word in ("old", "new"))
    assert "new 2999" in "".join(row.after for row in render(before, after, "a.md").rows)


async def test_steps_of_the_job_are_shown_to_those_with_the_link(client, hosted):  # noqa: F811
    steps = (JobStep(datetime(2026, 3, 14, 9, 26, tzinfo=UTC), "replace", "guides/<b>.md", is_error=True),)
    hosted.steps = JobSteps("job1", "builtin/editor", steps, is_cut=False)
    html = await text_of(client, f"{ADDRESS}/job")
    assert "guides/&lt;b&gt;.md" in html
    assert "builtin/editor" in html
    await text_of(client, f"{ADDRESS}x/job", status=404)


async def test_pull_request_of_no_job_has_no_steps(client):  # noqa: F811
    await text_of(client, f"{ADDRESS}/job", status=404)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "is_beside"), [(1200, True), (420, False)])
async def test_sides_are_beside_each_other_where_there_is_space(
    browser, aiohttp_server, app, reading, width, is_beside  # noqa: F811
):  # fmt: skip
    server = await aiohttp_server(app)
    page, wrong = await open_page(browser, str(server.make_url(ADDRESS)), width=width)
    await page.get_by_text("As readers see it, before and after").first.click()
    frame = page.frame_locator("iframe[title='quickstart.mdx as readers see it']")
    await frame.locator("ins").first.wait_for()
    before, after = [await frame.locator(tag).first.bounding_box() for tag in ("del", "ins")]
    assert (before["x"] < after["x"]) is is_beside
    assert (before["y"] < after["y"]) is not is_beside
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []
    await page.close()


def test_steps_name_reminders_and_count_context_repositories():
    at = datetime(2026, 11, 22, 15, tzinfo=UTC)
    contexts = (OpenedContext("code", "https://x/y", "main", "c" * 40), OpenedContext("z", "", "", problem="away"))
    reader = StepReader()
    assert reader.step(ModelReminded("words", at)) == JobStep(at, "Model reminded", "to call a tool")
    opened = JobStep(at, "Context repositories", "1 read, 1 not available", is_error=True)
    assert reader.step(ContextsOpened(contexts, at)) == opened


def test_steps_count_the_calls_of_a_tool():
    at = datetime(2026, 11, 22, 15, tzinfo=UTC)
    calls = tuple(
        ToolCall(str(number), name, "{}") for number, name in enumerate(["read", "replace", "replace", "plan"])
    )
    replied = JobStep(at, "Model replied", "calls read, replace (2 times), plan; 30 tokens")
    assert StepReader().step(ModelReplied("m", "Words", calls, Usage(10, 20), at)) == replied
