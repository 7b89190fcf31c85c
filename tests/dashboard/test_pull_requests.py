"""The page of a pull request: its link reads; who is signed in as an editor merges, closes, comments and resolves."""

from urllib.parse import urlsplit

from tests.dashboard.conftest import post_form
from tests.dashboard.test_jobs import created, followed, post, text_of


async def opened(client, service, prompt):
    """The path of a job and that of its pull request."""
    path = await created(client, service, prompt)
    await followed(client, path)
    page = await text_of(client, path)
    link = page.partition('href="../../../hosted/')[2].partition('"')[0]
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
    said = page[page.index("Kites are told") :]
    assert "Docsmith, " in said
    assert "in commit <code>" in said
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


async def test_pull_request_is_not_merged_while_a_job_changes_it(editor, nobody, service):
    path, link = await opened(editor, service, 'Append "Kites are held." to index.md')
    branch = service.cli("job", "show", path.rsplit("/", 1)[1])["branch"]
    other = await created(editor, service, "Go on with the kites", branch=branch, model="away")
    page = await text_of(editor, link)
    assert "A job is changing it" in page
    assert f"{other.rsplit('/', 1)[1]}" in page
    assert "/merge" not in page
    assert "A job is changing it" in await text_of(nobody, link)
    assert "once the other job on its branch has ended" in await text_of(editor, path)
    _, refused = await post(editor, f"{link}/merge", 409)
    assert "is changing this pull request" in refused
    await post(editor, f"{path}/merge", 409)
    merge = f"{service.url}/v2/agent/{service.project_id}/job/{path.rsplit('/', 1)[1]}/merge"
    async with editor.post(merge, headers=service.admin) as answer:
        assert (answer.status, (await answer.json())["code"]) == (409, "pull_request_changing")
    told = service.cli("job", "merge", path.rsplit("/", 1)[1], status=1)
    assert told["code"] == "pull_request_changing"
    await post(editor, f"{other}/cancel")
    assert "Ready to merge" in await text_of(editor, link)
    await post(editor, f"{link}/merge")


async def test_news_of_a_pull_request_are_for_members(viewer, outsider, nobody, editor, service):
    _, link = await opened(editor, service, 'Append "Kites are news." to index.md')
    assert "<script" not in await text_of(nobody, link)
    page = await text_of(viewer, link)
    number = int(link.rpartition("/")[2].partition("-")[0])
    live = f"/dashboard/{service.organization_id}/pulls/{service.project_id}/{number}/live"
    assert f'{live}"' in page
    async with viewer.get(live) as answer:
        assert await answer.content.readline() == b"data: changed\n"
    async with outsider.get(live) as answer:
        assert answer.status == 404
    await post(editor, f"{link}/close")
