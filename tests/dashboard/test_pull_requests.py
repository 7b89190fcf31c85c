"""The page of a pull request: its link reads; who is signed in as an editor merges, closes, comments and resolves."""

from urllib.parse import urlsplit

from tests.dashboard.conftest import post_form
from tests.dashboard.test_jobs import created, followed, post, text_of


async def opened(client, service, prompt):
    """The path of a job and that of its pull request."""
    path = await created(client, service, prompt)
    await followed(client, path)
    page = await text_of(client, path)
    link = page.partition('href="' + service.url + "/hosted/")[2].partition('"')[0]
    return path, urlsplit(f"/hosted/{link}").path


async def test_link_reads_and_only_an_editor_acts(editor, viewer, outsider, operator, nobody, service):
    _, link = await opened(editor, service, 'Append "Kites are reviewed." to index.md')
    for client in (viewer, outsider, operator, nobody):
        page = await text_of(client, link)
        assert "Kites are reviewed." in page
        assert "<form" not in page
        for action in ("merge", "close", "comment", "resolve"):
            await post(client, f"{link}/{action}", 403, text="Go on")
        await post(client, f"{link}/comment", 403, line="no number")  # not looked at
    assert f"sign-in?next={link}" in await text_of(nobody, link)
    page = await text_of(editor, link)
    for action in ("merge", "close", "comment"):
        assert f"/{action}" in page
    await post(editor, f"{link}/merge")
    assert "Merged" in await text_of(nobody, link)


async def test_comment_goes_to_the_job_once_and_is_shown_to_members(editor, viewer, nobody, service):
    path, link = await opened(editor, service, 'Append "Kites are said." to index.md')
    fields = {"text": 'Append "Kites are told." to retry.md', "path": "retry.md", "line": "3", "form": "one"}
    for _ in range(2):
        await post(editor, f"{link}/comment", **fields)
    await followed(editor, path)
    page = await text_of(viewer, link)
    assert "1 comment" in page
    assert "retry.md:3" in page
    assert "the job has answered" in page
    assert "1 comment" not in await text_of(nobody, link)
    await post(editor, f"{link}/comment", 400, text="")
    await post(editor, f"{link}/close")


async def test_resolving_has_the_job_merge_the_base(editor, service):
    path, link = await opened(editor, service, 'Append "Kites are resolved." to index.md')
    await post(editor, f"{link}/resolve")
    assert "Comment received" in await followed(editor, path)
    assert "Merge main" in await text_of(editor, path)


async def test_another_site_posts_nothing_for_an_editor(editor, service, people):
    _, link = await opened(editor, service, 'Append "Kites are safe." to index.md')
    cookie = {"Cookie": f"__Host-docsmith={people.cookies['editor']}", "Sec-Fetch-Site": "cross-site"}
    for action in ("merge", "close", "comment", "resolve"):
        assert post_form(f"{service.url}{link}/{action}", {"text": "x"}, cookie).status == 403
        bare = {name: value for name, value in cookie.items() if name == "Cookie"}
        assert post_form(f"{service.url}{link}/{action}", {"text": "x"}, bare, site=False).status == 403
    assert "Open</span>" in await text_of(editor, link)
