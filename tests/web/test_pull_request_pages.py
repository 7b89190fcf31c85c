"""The embedded code host's pages, over HTTP and in a browser."""

import asyncio
import re
import shutil
from collections import Counter
from datetime import UTC, datetime

import pytest
from aiohttp import web
from msgspec.structs import replace
from structlog.testing import capture_logs
from yarl import URL

from service.domain.access.names import Names
from service.domain.errors import Conflict, NotFound, Unavailable
from service.ports.bounds import ignore_bounds
from service.ports.code_host import (
    MAX_SHOWN_LINE,
    Diffed,
    DiffHunk,
    DiffLine,
    PullRequest,
    PullRequestCommit,
    PullRequestFile,
    PullRequestPage,
    PullRequestTexts,
)
from service.views.jobs.job_steps import JobSteps
from service.views.jobs.jobs import FoundByChecks
from service.web.http import hosted as hosted_requests
from service.web.http.access.hosts import NAMES
from service.web.http.app_keys import COUNT_BOUND
from service.web.http.entrance import Entrance
from service.web.http.problems import BODY_SECONDS
from service.web.pages import pull_requests
from service.web.pages.pull_request_rights import ACT_BY_LINK
from service.web.pages.safe_markdown import safe_markdown
from tests.patches import hunks_of

AT = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)
TOKEN = "s3-cr_et"
ADDRESS = f"/hosted/p1/pulls/7-{TOKEN}"

PATCH = """\
@@ -36,5 +36,5 @@
 The second job has failed twice and waits for its third attempt.
-explained in [Retries](/concepts/retry).
+explained in [Retries](/concepts/retries).
\x20
 ## Where to go next
@@ -60,2 +60,4 @@
 - Run a job every night.
-The end
\\ No newline at end of file
+- Take it to production, and then read on about everything that may happen there: restarts, backups, failovers.
+
+The end
"""

PAGE = PullRequestPage(
    pull_request=PullRequest(
        number=7,
        url=f"http://docs.example{ADDRESS}",
        head="docs/fix-broken-links-1a2b3c",
        base="main",
        title="Fix broken links",
        state="open",
        draft=False,
    ),
    body=(
        "Mends **two links** that led nowhere:\n\n"
        "- `quickstart.mdx`: `/concepts/retry` is now [Retries](/concepts/retries)\n"
        "- `guides/deploy.md`: a typing error\n\n"
        "# Checks\n\nAll passed. See [the rules](https://docs.example/rules).\n"
    ),
    created_at=AT,
    commits=[
        PullRequestCommit(
            "9fceb02d0ae598e95dc970b74767f19372d61af8",
            "Docsmith <docsmith@docs.example>",
            "docs: fix broken links\n\nTwo links led nowhere.\n\nDocsmith-Job: 0192\n",
            AT,
        )
    ],
    files=[
        Diffed("quickstart.mdx", "quickstart.mdx", "changed", hunks_of(PATCH), added=4, removed=2),
        Diffed(
            "guides/new.md", "guides/new.md", "added", hunks_of("@@ -0,0 +1,2 @@\n+# New\n+Text\n"), added=2, removed=0
        ),
        Diffed("guides/gone.md", "guides/gone.md", "deleted", hunks_of("@@ -1 +0,0 @@\n-# Gone\n"), added=0, removed=1),
        Diffed("concepts/retries.md", "concepts/retry.md", "moved", (), added=0, removed=0),
        Diffed("logo.png", "logo.png", "changed", (), added=0, removed=0, binary=True),
    ],
    truncated=False,
    mergeable=True,
)


class FakeHosted:
    """One pull request; it can be merged while it is open and mergeable."""

    def __init__(self, page: PullRequestPage = PAGE) -> None:
        self.current = page
        self.found = FoundByChecks()
        self.changing: str | None = None
        self.steps: JobSteps | None = None
        self.hunks = {}
        """Of the files that have pages of their own."""
        self.of_page = PullRequestTexts("A title", "quickstart.mdx", "Before.\n", "After.\n")

    def change(self, *, state="open", **changes) -> None:
        self.current = replace(self.current, pull_request=replace(self.current.pull_request, state=state), **changes)

    async def found_by_checks(self, project_id, number):
        return self.found if (project_id, number) == ("p1", 7) else FoundByChecks()

    async def steps_of(self, project_id, number):
        return self.steps if (project_id, number) == ("p1", 7) else None

    async def admit(self, project_id, number, token):
        if (project_id, number, token) != ("p1", 7, TOKEN):
            raise NotFound("Pull request not found.")

    async def page(self, project_id, number, token, *, first_file=1):
        await self.admit(project_id, number, token)
        return replace(self.current, first_file=first_file, files=self.current.files[first_file - 1 :][:100])

    async def file(self, project_id, number, token, *, place, version):
        await self.admit(project_id, number, token)
        if version != self.current.version:
            raise Conflict("It has other commits.")
        file = self.current.files[place - 1]
        return PullRequestFile(self.current.pull_request.title, replace(file, hunks=self.hunks[file.path]))

    async def texts(self, project_id, number, token, *, place, version):
        await self.admit(project_id, number, token)
        if version != self.current.version:
            raise Conflict("It has other commits.")
        return self.of_page

    async def job_changing(self, _project_id, _number):
        return self.changing

    async def merge(self, project_id, number, token, *, now, version=""):
        page = await self.page(project_id, number, token)
        if version not in ("", page.version):
            raise Conflict("It has other commits.", code="branch_moved")
        if page.pull_request.state == "closed":
            raise Conflict("It was closed without merging.")
        if not page.mergeable:
            raise Conflict("Both sides changed quickstart.mdx.", code="merge_conflict")
        self.change(state="merged", closed_at=now, merge_commit="e83c5163316f89bfbde7d9ab23ca2e25604af290")
        return self.current

    async def close(self, project_id, number, token, *, now):
        page = await self.page(project_id, number, token)
        if page.pull_request.state == "merged":
            raise Conflict("It is merged already.")
        self.change(state="closed", closed_at=now)
        return self.current


@pytest.fixture
def hosted():
    return FakeHosted()


@pytest.fixture
def closed():
    """What the application was told."""
    return []


@pytest.fixture
def counted():
    """Bounds that were reached."""
    return Counter()


@pytest.fixture
def app(hosted, closed, counted):
    async def record(project_id, page, _at, _metadata):
        closed.append((project_id, page.pull_request.state))

    app = web.Application()

    def count(bound, times=1):
        counted[bound] += times

    app[COUNT_BOUND] = count
    app[hosted_requests.PAGE_TURNS] = hosted_requests.PageTurns(count)
    app[hosted_requests.HOSTED] = hosted
    app[hosted_requests.PULL_REQUEST_CLOSED] = record
    app[hosted_requests.PULL_REQUEST_CHANGING] = hosted.job_changing
    app[pull_requests.PULL_REQUEST_CHECKS] = hosted.found_by_checks
    app[pull_requests.PULL_REQUEST_STEPS] = hosted.steps_of
    app[ACT_BY_LINK], app[BODY_SECONDS], app[NAMES] = True, 60.0, Names("https://docs.example.com", "127.0.0.1")
    app.add_routes(pull_requests.routes)
    return app


@pytest.fixture
async def client(aiohttp_client, app):
    return await aiohttp_client(app)


async def test_what_a_job_changes_is_not_offered_and_not_merged(client, hosted, closed):
    hosted.changing = "019a-job"
    page = await text_of(client)
    assert "A job is changing it" in page
    assert "/merge" not in page
    assert "/close" in page
    refused = await client.post(f"{ADDRESS}/merge", headers={"Sec-Fetch-Site": "same-origin"})
    assert refused.status == 409
    assert "Job 019a-job is changing this pull request" in await refused.text()
    assert closed == []


async def text_of(client, path=ADDRESS, status=200):
    response = await client.get(path)
    assert response.status == status
    return await response.text()


async def test_a_page_shows_title_branches_commits_and_the_diff(client):
    html = await text_of(client)
    assert "<h1>Fix broken links</h1>" in html
    assert "docs/fix-broken-links-1a2b3c" in html
    assert "docs: fix broken links" in html
    assert "Docsmith-Job: 0192" in html
    assert "14 March 2026, 09:26 UTC" in html
    assert "Ready to merge" in html
    assert "explained in [Retries](/concepts/<mark>retries</mark>)." in html
    assert '<td class="number">37</td><td class="number"></td><td class="sign">\N{MINUS SIGN}</td>' in html
    assert "no newline at the end of the file" in html
    assert "A binary file" in html
    assert "Moved without a change." in html


async def test_pages_allow_no_script_and_are_kept_by_no_cache(client):
    for path, status in ((ADDRESS, 200), ("/hosted/p1/pulls/8-x", 404)):
        response = await client.get(path)
        assert response.status == status
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"
        html = await response.text()
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=", html)


async def test_wrong_token_number_or_project_get_the_same_404(client):
    answers = {
        await text_of(client, path, status=404)
        for path in ("/hosted/p1/pulls/7-wrong", f"/hosted/p1/pulls/8-{TOKEN}", f"/hosted/p2/pulls/7-{TOKEN}")
    }
    assert len(answers) == 1
    assert "Fix broken links" not in answers.pop()


async def test_merging_notifies_the_application_and_shows_the_result(client, closed):
    response = await client.post(f"{ADDRESS}/merge", headers={"Sec-Fetch-Site": "same-origin"})
    html = await response.text()
    assert (response.status, response.url.path, response.history[0].status) == (200, ADDRESS, 303)
    assert '<h2 id="decision">Merged</h2>' in html
    assert "e83c516331" in html
    assert "<form" not in html
    assert closed == [("p1", "merged")]


async def test_closing_notifies_the_application_and_shows_the_result(client, closed):
    response = await client.post(f"{ADDRESS}/close")
    assert "Closed without merging" in await response.text()
    assert closed == [("p1", "closed")]


async def test_a_conflict_is_explained_and_offers_no_merge(client, hosted, closed):
    hosted.change(mergeable=False)
    html = await text_of(client)
    assert "Cannot be merged" in html
    assert "/merge" not in html
    response = await client.post(f"{ADDRESS}/merge")  # the page was loaded before the conflict arose
    assert response.status == 409
    assert "Both sides changed quickstart.mdx." in await response.text()
    assert closed == []


async def test_pull_request_with_errors_is_not_ready(client, hosted):
    hosted.found = FoundByChecks(errors=2, unsourced=1)
    html = await text_of(client)
    assert "The checks found 2 errors" in html
    assert 'class="primary"' not in html
    assert "Ready" not in html
    assert "stands in the way" not in html


async def test_pull_request_with_an_unsourced_statement_is_not_ready(client, hosted):
    hosted.found = FoundByChecks(unsourced=1)
    html = await text_of(client)
    assert "1 statement without a source" in html
    assert "See whether it is right before you merge." in html
    assert "Merge into" in html
    assert 'class="primary"' not in html
    assert "Ready to merge" not in html
    assert "stands in the way" not in html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "<details><summary>2 *files*</summary>\n\n- `a`\n- b\n\n</details>\n\nAfter",
            "<details><summary>2 *files*</summary>\n<ul>\n<li><code>a</code></li>\n<li>b</li>\n</ul>\n</details>\n"
            "<p>After</p>\n",
        ),
        ("<details><summary>x</summary>", "<p>&lt;details&gt;&lt;summary&gt;x&lt;/summary&gt;</p>\n"),
        ("</details>", "<p>&lt;/details&gt;</p>\n"),
        (
            "<details><summary><b>x</summary>\n\n</details>",
            "<p>&lt;details&gt;&lt;summary&gt;&lt;b&gt;x&lt;/summary&gt;</p>\n<p>&lt;/details&gt;</p>\n",
        ),
    ],
)
def test_description_collapses_what_details_enclose(text, html):
    assert safe_markdown(text) == html


async def test_commits_that_the_page_did_not_show_are_not_merged(client, hosted, closed):
    hosted.current = replace(hosted.current, version="0123456789-fedcba9876")
    page = await (await client.get(ADDRESS)).text()
    (version,) = re.findall(r'name="version" value="([^"]+)"', page)
    hosted.current = replace(hosted.current, version="0123456789-abcdef0123")
    response = await client.post(f"{ADDRESS}/merge", data={"version": version})
    assert response.status == 409
    assert closed == []
    response = await client.post(f"{ADDRESS}/merge", data={"version": hosted.current.version})
    assert response.status == 200
    assert closed == [("p1", "merged")]


async def test_merging_after_closing_is_refused(client, hosted, closed):
    hosted.change(state="closed", closed_at=AT)
    response = await client.post(f"{ADDRESS}/merge")
    assert response.status == 409
    assert closed == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
async def test_another_site_can_neither_merge_nor_close(client, hosted, closed, headers):
    for action in ("merge", "close"):
        response = await client.post(f"{ADDRESS}/{action}", headers=headers)
        assert response.status == 403
    assert hosted.current.pull_request.state == "open"
    assert closed == []


async def test_a_form_of_our_own_works_over_plain_http(client, closed):
    origin = f"https://{client.host}:{client.port}"  # a proxy ended TLS before us
    response = await client.post(f"{ADDRESS}/merge", headers={"Origin": origin})
    assert response.status == 200
    assert closed == [("p1", "merged")]


async def test_text_of_others_cannot_become_markup(client, hosted):
    evil = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    hunks = [DiffHunk(1, 1, [DiffLine("removed", evil), DiffLine("added", f"{evil}!")])]
    hosted.current = PullRequestPage(
        pull_request=PullRequest(7, "", f"docs/{evil}", evil, evil, "open", draft=False),
        body=f"{evil}\n\n[a](javascript:alert(1)) [b](data:text/html,x) ![c](https://elsewhere.example/x.png)\n\n"
        "[d]( JaVaScript:alert(1)) [e](https://docs.example/) <https://docs.example/auto> <javascript:alert(1)>",
        created_at=AT,
        commits=[PullRequestCommit("a" * 40, evil, f"{evil}\n\n{evil}", AT)],
        files=[Diffed(evil, evil + "old", "moved", hunks, 1, 1)],
        truncated=True,
        mergeable=True,
    )
    html = await text_of(client)
    assert "<script" not in html
    assert "<img src=x" not in html
    assert "elsewhere.example" not in html
    links = re.findall(r'<a href="([^"]*)"', html)
    assert [link for link in links if ":" in link] == ["https://docs.example/", "https://docs.example/auto"]
    assert "This is not all." in html


async def test_draft_is_marked_and_a_large_file_is_folded(client, hosted):
    hosted.change(files=[Diffed("large.md", "large.md", "added", None, 500, 0, lines=501), *PAGE.files[:1]])
    hosted.current = replace(hosted.current, pull_request=replace(hosted.current.pull_request, draft=True))
    html = await text_of(client)
    assert "Draft</span>" in html
    assert "It is not marked as ready" in html
    assert "Ready to merge" not in html
    assert 'id="file-1">' in html
    assert 'id="file-2" open>' in html


async def test_characters_that_deceive_the_eye_are_shown(client, hosted):
    hosted.change(
        files=[Diffed("a.md", "a.md", "added", [DiffHunk(0, 1, [DiffLine("added", "safe\u202etxt.exe")])], 1, 0)]
    )
    assert "safe⟨U+202E⟩txt.exe" in await text_of(client)


async def test_style_sheet_is_cached_for_good_at_the_pages_address(client):
    found = re.search(r'href="([^"]*docsmith\.css[^"]*)"', await text_of(client))
    assert found
    assert found[1].startswith("../../../assets/")
    response = await client.get(found[1].removeprefix("../../.."))
    assert response.status == 200
    assert response.content_type == "text/css"
    assert "immutable" in response.headers["Cache-Control"]
    assert (await client.get("/assets/base.html")).status == 404


async def test_words_are_left_unmarked_past_a_budget(client, hosted, counted):
    before, after = (".!" * 200, ".?" * 200)
    lines = [
        DiffLine(side, f"{text}{number}")
        for side, text in (("removed", before), ("added", after))
        for number in range(20)
    ]
    hosted.change(files=[*PAGE.files[:1], Diffed("x.md", "x.md", "changed", [DiffHunk(1, 1, lines)], 20, 20)])
    html = await text_of(client)
    assert "Words are not marked everywhere." in html
    assert "<mark>retries</mark>" in html  # the budget of the page is not taken by a few lines
    assert counted["diff_words"] == 20
    hosted.change(files=PAGE.files)
    assert "Words are not marked" not in await text_of(client)


LONG = Diffed("guides/long.md", "guides/long.md", "changed", None, added=900, removed=0, lines=901)


async def test_long_file_is_read_when_it_is_opened(client, hosted):
    hosted.change(files=[*PAGE.files[:1], LONG], version="0a1b-2c3d")
    hosted.hunks = {LONG.path: [DiffHunk(0, 1, [DiffLine("added", "A line of its own")] * 900)]}
    response = await client.get(ADDRESS)
    html = await response.text()
    assert "A line of its own" not in html
    (source,) = re.findall(r'<iframe src="([^"]*/files/[^"]*)" loading="lazy"', html)
    assert "frame-src 'self'" in response.headers["Content-Security-Policy"]
    address = response.url.join(URL(source)).path
    framed = await client.get(address)
    assert (framed.status, (await framed.text()).count("A line of its own")) == (200, 900)
    policy = framed.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'")
    assert "frame-ancestors 'self'" in policy
    assert "form-action 'none'" in policy
    assert framed.headers["X-Frame-Options"] == "SAMEORIGIN"
    hosted.change(version="0a1b-ffff")
    changed = await client.get(address)
    assert (changed.status, "It has changed" in await changed.text()) == (409, True)
    for wrong in (address.replace(TOKEN, "other"), address.replace("/p1/", "/p2/")):
        assert (await client.get(wrong)).status == 404


async def test_page_of_many_files_has_them_closed_and_no_frame(client, hosted):
    few = [DiffHunk(0, 1, [DiffLine("added", "A line that is here")])]
    many = [Diffed(f"guides/{n}.md", f"guides/{n}.md", "changed", few, 1, 0, lines=2) for n in range(96)]
    hosted.change(files=[*many, LONG], version="0a1b-2c3d")
    hosted.hunks = {LONG.path: few}
    html = await text_of(client)
    assert html.count("A line that is here") == 96
    assert "<iframe" not in html
    assert " open>" not in html
    address = URL(ADDRESS).join(URL(re.findall(r'href="([^"]*/files/97[^"]*)"', html)[0]))
    alone = await (await client.get(address)).text()
    back = re.findall(r'href="([^"]*)">Back to the pull request', alone)[0]
    assert address.join(URL(back)).with_fragment(None).path == ADDRESS
    assert "Back to" not in await (await client.get(address.with_query(None))).text()


@pytest.mark.slow
async def test_files_beyond_a_page_have_pages_of_their_own(client, hosted):
    files = [Diffed(f"{number}.md", f"{number}.md", "added", None, 1, 0, lines=2) for number in range(1, 251)]
    hosted.change(files=files, file_count=250, version="0-1")
    seen, path = [], ADDRESS
    while path:
        html = await text_of(client, path)
        seen += re.findall(r'files/(\d+)-0-1[?]alone">Show', html)
        following = re.search(r'href="([^"]*)">Files after', html)
        path = following and str(URL(ADDRESS).join(URL(following[1].replace("&amp;", "&"))))
    assert seen == [str(number) for number in range(1, 251)]
    for odd in ("0", "-1", "x", "999999999999", "\u0663"):
        assert (await client.get(ADDRESS, params={"file": odd})).status == 200


async def test_page_that_takes_too_long_is_refused(client, hosted, counted):
    async def slow(*_, **__):
        raise Unavailable("This took longer than 30 seconds.", code="timed_out")

    hosted.page = slow
    response = await client.get(ADDRESS)
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert "Not now" in await response.text()
    assert counted == {"page_work": 1}


async def test_without_the_token_no_turn_is_taken(client, hosted):
    begun, end, page = asyncio.Event(), asyncio.Event(), hosted.page

    async def held(*arguments, **options):
        begun.set()
        await end.wait()
        return await page(*arguments, **options)

    hosted.page = held
    first = asyncio.create_task(client.get(ADDRESS))
    await begun.wait()
    async with asyncio.timeout(60):
        await text_of(client, ADDRESS + "x", status=404)
    end.set()
    assert (await first).status == 200


@pytest.mark.parametrize("verb", ["merge", "close"])
async def test_form_that_is_long_in_coming_takes_no_turn(client, closed, verb):
    end = asyncio.Event()

    async def coming():
        yield b"version="
        await end.wait()

    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    posts = [asyncio.create_task(client.post(f"{ADDRESS}/{verb}", data=coming(), headers=headers)) for _ in range(8)]
    await asyncio.wait(posts, timeout=0.1)
    async with asyncio.timeout(60):
        assert "Fix broken links" in await text_of(client)
    end.set()
    await asyncio.wait(posts)
    assert closed


@pytest.mark.parametrize("text", ["\x01&" * 900, "a\rb" * 900, "x" * 2_000_000, "<&>" * 700, "\u202e" * 1000])
async def test_long_lines_are_cut(client, hosted, text):
    hunks = [DiffHunk(0, 1, [DiffLine("added", text[:MAX_SHOWN_LINE], is_cut=True)] * 300)]
    hosted.change(files=[Diffed("x.md", "x.md", "added", hunks, 300, 0, lines=301)], body=text)
    assert len(await text_of(client)) < 8_000_000


# In a browser

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
    "--no-first-run",
]


@pytest.fixture
async def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


async def open_page(browser, url, *, width, scheme="light"):
    """The page, and a list of everything that went wrong in it."""
    page = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"{request.url} failed"))
    page.on("response", lambda response: wrong.append(response.url) if response.status >= 400 else None)
    await page.goto(url, wait_until="load")
    return page, wrong


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_person_reads_and_merges_in_a_browser(browser, aiohttp_server, app, hosted, tmp_path, width, scheme):
    server = await aiohttp_server(app)
    page, wrong = await open_page(browser, str(server.make_url(ADDRESS)), width=width, scheme=scheme)
    assert await page.get_by_role("heading", level=1).inner_text() == "Fix broken links"
    assert await page.get_by_text("explained in [Retries](/concepts/retries).").is_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(247, 245, 242)" if scheme == "light" else "rgb(21, 22, 26)"
    )
    picture = tmp_path / "page.png"
    await page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 20_000
    await page.get_by_role("button", name="Merge into main").click()
    await page.get_by_role("heading", name="Merged").wait_for()
    assert hosted.current.pull_request.state == "merged"
    assert wrong == []


@pytest.mark.slow
async def test_the_longest_line_wraps_on_a_phone(browser, aiohttp_server, app, hosted):
    name, line = "x" * 200 + ".md", DiffLine("added", "x" * MAX_SHOWN_LINE, is_cut=True)
    hosted.change(files=[Diffed(name, name, "added", [DiffHunk(0, 1, [line])], 1, 0)])
    server = await aiohttp_server(app)
    page, wrong = await open_page(browser, str(server.make_url(ADDRESS)), width=400)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 400
    assert wrong == []


@pytest.mark.slow
async def test_97_long_files_are_loaded_one_by_one_in_a_browser(browser, aiohttp_server, app, hosted, tmp_path):
    files = [
        Diffed(f"guides/{number}.md", f"guides/{number}.md", "changed", None, 12, 12, lines=31) for number in range(97)
    ]
    hosted.change(files=files, version="0a1b-2c3d")
    hosted.hunks = {file.path: hunks_of(PATCH) for file in files}
    server = await aiohttp_server(app)
    page, asked = await browser.new_page(viewport={"width": 1000, "height": 900}), []
    page.on("request", lambda request: asked.append(request.url) if "/files/" in request.url else None)
    await page.goto(str(server.make_url(ADDRESS)), wait_until="load")
    assert await page.evaluate("document.querySelectorAll('*').length") < 3_000
    assert asked == []
    picture = tmp_path / "page.png"
    await page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 20_000
    await page.get_by_role("heading", name="guides/3.md").click()
    await page.locator("#file-4").get_by_role("link", name="Show the changes").click()
    await page.get_by_text("explained in [Retries](/concepts/retries).").wait_for()
    assert [url.partition("/files/")[2] for url in asked] == ["4-0a1b-2c3d?alone"]
    await page.get_by_role("link", name="Back to the pull request").click()
    await page.get_by_role("heading", name="guides/3.md").wait_for()
    await page.close()


async def test_logged_error_does_not_contain_the_token(aiohttp_client, hosted):
    async def broken(*_):
        raise RuntimeError("broken")

    hosted.page = broken
    outer = web.Application(middlewares=[Entrance().enter])
    outer[hosted_requests.HOSTED] = hosted
    outer[COUNT_BOUND] = ignore_bounds
    outer[hosted_requests.PAGE_TURNS] = hosted_requests.PageTurns(ignore_bounds)
    outer.add_routes(pull_requests.routes)
    client = await aiohttp_client(outer)
    with capture_logs() as logged:
        response = await client.get(ADDRESS)
    assert response.status == 500
    assert [line["event"] for line in logged] == ["unhandled", "request"]
    assert TOKEN not in str(logged)
