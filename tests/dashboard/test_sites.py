"""Sites and projects in a browser: where documentation may be, how far its indexing is, and who may change it."""

import asyncio
import base64
import hashlib
import html
import io
import re
import zipfile

import aiohttp
import pytest

from tests.service_process import DOCS


@pytest.fixture
def base(service):
    return f"/dashboard/{service.organization_id}"


def zipped(files=DOCS):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def upload(content, **fields):
    """The body of the form, in the order of its fields."""
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in {"from": "upload", **fields}.items():
        form.add_field(name, value)
    form.add_field("archive", content, filename="guide.zip", content_type="application/zip")
    return form


async def text_of(client, path, status=200):
    async with client.get(path) as answer:
        assert answer.status == status, await answer.text()
        return await answer.text()


def notice_in(answer):
    """The notice that a form leaves for the next page."""
    cookie = next(one for one in answer.cookies.values() if "notice" in one.key)
    return base64.urlsafe_b64decode(cookie.value).decode()


async def live_until(client, path, words):
    """The fragments of a live region, up to the one with these words."""
    seen = ""
    async with asyncio.timeout(120), client.get(path) as answer:
        assert answer.content_type == "text/event-stream"
        async for line in answer.content:
            seen += line.decode()
            if words in seen:
                return seen
    raise AssertionError(seen)


async def test_uploaded_archive_is_indexed_before_the_eyes(owner, service, base):
    async with owner.post(
        f"{base}/projects/new",
        data=upload(zipped(), name="Sent <b>", domain="sent", site_url="https://docs.example.com/"),
        allow_redirects=False,
    ) as answer:
        assert answer.status == 303, await answer.text()
        assert answer.headers["Location"].endswith(f"{base.lstrip('/')}/sites/sent")
    await live_until(owner, f"{base}/sites/sent/live", "Commit ")
    page = await text_of(owner, f"{base}/sites/sent")
    assert "the upload guide.zip" in page
    assert "Sent &lt;b&gt;" in page
    path = f"{base}/sites/sent/project"
    page = await text_of(owner, path)
    assert ('type="file"' in page, 'value="https://docs.example.com"' in page) == (True, True)
    assert 'type="file"' not in await text_of(owner, f"{base}/sites/{service.domain}/project")
    async with owner.post(f"{path}/upload", data=upload(zipped({"new.md": "#"})), allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"].endswith("/sites/sent")) == (303, True)
    async with owner.post(f"{path}/upload", data=upload(b"no archive")) as answer:
        page = await answer.text()
        assert (answer.status, "not a zip archive" in page, 'type="file"' in page) == (400, True, True)
    assert list((service.data / "uploads").iterdir()) == []


async def test_report_lists_broken_links_and_claims_only_what_it_looked_at(owner, viewer, service, base):
    page = await text_of(owner, f"{base}/sites/{service.domain}/report")
    assert "Links that lead nowhere" in page
    assert "no mistake was found" not in page
    assert "Anchors are not checked here." in page
    assert "/jobs/new?" in page
    assert "Mintlify" in page
    assert "/jobs/new?" not in await text_of(viewer, f"{base}/sites/{service.domain}/report")


async def test_report_of_plain_files_is_in_words(owner, service, base):
    data = upload(zipped({"a.md": "# A\n\nText."}), name="Loose", domain="loose")
    async with owner.post(f"{base}/projects/new", data=data, allow_redirects=False) as answer:
        assert answer.status == 303
        # and nothing that may be over when the page is read
        assert notice_in(answer) == "The project is created. Next: ask it a question, or give the agent a job."
    await live_until(owner, f"{base}/sites/loose/live", "Commit ")
    page = re.sub(r"\s+", " ", await text_of(owner, f"{base}/sites/loose/report"))
    assert '<p class="label">site generator</p>' in page
    assert ">plain<" not in page
    assert "No list of pages was found" in page


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no archive", "not a zip archive"),
        (zipped({"../evil.md": "x"}), "leads out of the archive"),
        (zipped({"bomb.md": bytes(32 << 20)}), "100 times"),
    ],
)
async def test_bad_archive_is_refused_and_the_form_stays(owner, service, base, content, says):
    form = upload(content, name="Kept name", domain="bad")
    async with owner.post(f"{base}/projects/new", data=form, allow_redirects=False) as answer:
        page = await answer.text()
        assert (answer.status, says in page, "Kept name" in page) == (400, True, True)
    assert list((service.data / "uploads").iterdir()) == []


async def test_form_without_a_file_says_so(owner, base):
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("name", "x" * 20_000)
    async with owner.post(f"{base}/projects/new", data=form, allow_redirects=False) as answer:
        assert answer.status == 413
    form = aiohttp.FormData(default_to_multipart=True)
    for number in range(30):
        form.add_field(f"empty{number}", "")
    async with owner.post(f"{base}/projects/new", data=form, allow_redirects=False) as answer:
        assert (answer.status, "more than 20 fields" in await answer.text()) == (400, True)
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("name", "Guide")
    async with owner.post(f"{base}/projects/new", data=form, allow_redirects=False) as answer:
        assert (answer.status, "Choose a zip archive" in await answer.text()) == (400, True)


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"from": "git", "repository": "http://127.0.0.1:1/x.git"}, 403, "not an address of the public internet"),
        ({"from": "git", "repository": "/etc"}, 403, "No folder of this machine may be read"),
        ({"from": "folder", "repository": "/etc"}, 403, "No folder of this machine may be read"),
        ({"from": "host", "code_host": "local", "repository": "https://git.example/x"}, 400, "Choose the code host"),
        ({"from": "host", "code_host": "github", "repository": "https://github.com/a/b"}, 400, "needs a token"),
        (
            {"from": "git", "repository": "https://git.example/x", "site_url": "javascript:alert(1)"},
            400,
            "The address of a site is",
        ),
        (
            {"from": "host", "code_host": "gitlab", "repository": "http://10.0.0.1/a/b", "token": "glpat-s3cret"},
            400,
            "unencrypted",
        ),
    ],
)
async def test_what_may_not_be_named_is_refused(owner, base, fields, status, says):
    async with owner.post(f"{base}/projects/new", data={"name": "Evil", **fields}) as answer:
        page = await answer.text()
        assert (answer.status, says in page) == (status, True), page
        assert "glpat-s3cret" not in page


async def test_pages_of_a_site_tell_how_it_was_read(viewer, service, base):
    site = f"{base}/sites/{service.domain}"
    assert service.domain in await text_of(viewer, f"{base}/sites")
    assert "Mintlify" in await text_of(viewer, f"{site}/report")
    found = await text_of(viewer, f"{site}/search?q=retry+delay")
    assert "retry.md:" in found
    assert re.search(r"points: .*looked for:", found)
    assert "no word of the question" in await text_of(viewer, f"{site}/search?q=zzqxv")
    assert "private" in await text_of(viewer, f"{site}/access")


async def test_golden_questions_are_measured(editor, service, base):
    questions = '{"query": "retry delay", "relevant": ["retry.md"]}\n{"query": "zzqxv", "relevant": ["install"]}'
    async with editor.post(f"{base}/sites/{service.domain}/golden", data={"questions": questions}) as answer:
        page = await answer.text()
        assert (answer.status, "50%" in page, "zzqxv" in page) == (200, True, True)
    async with editor.post(f"{base}/sites/{service.domain}/golden", data={"questions": "{nonsense"}) as answer:
        assert (answer.status, "line 1" in await answer.text()) == (400, True)


async def test_api_explains_a_search_and_measures_it(service):
    async def called(method, path, body=None, key=service.admin_key):
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request(method, f"{service.url}/v2/sites/{service.domain}/{path}", json=body) as answer,
        ):
            return answer.status, await answer.json()

    reads = service.cli(
        "key", "create", "--kind", "admin", "--scope", "read", "--organization", service.organization_id
    )
    status, found = await called("GET", "search?query=retry+delay", key=reads["token"])
    assert (status, found["results"][0]["path"]) == (200, "retry")
    assert found["results"][0]["explanation"]["wordRank"] == 1
    assert (await called("GET", "search?query=zzqxv"))[1]["results"] == []
    for wrong in ("", "?query=+", f"?query={501 * 'a'}", f"?query=a&language={36 * 'x'}"):
        assert (await called("GET", f"search{wrong}"))[0] == 400
    questions = [{"query": "retry delay", "relevant": ["retry.md"]}, {"query": "zzqxv", "facts": ["never"]}]
    status, measured = await called("POST", "golden", {"questions": questions}, key=reads["token"])
    assert (status, measured["hitAt5"], [one["query"] for one in measured["misses"]]) == (200, 0.5, ["zzqxv"])
    status, refused = await called("POST", "golden", {"questions": [questions[0], {**questions[1], "relevant": ["a"]}]})
    assert (status, refused["errors"][0]["path"]) == (400, "$.questions[1]")
    assert (await called("POST", "golden", {"questions": questions[:1] * 201}))[0] == 400


async def test_owner_opens_a_site_and_closes_it(owner, service, base):
    path = f"{base}/sites/{service.domain}/access"
    async with owner.post(path, data={"public": "true", "origins": "https://docs.example.com"}) as answer:
        assert "public: anyone may ask it" in await answer.text()
    async with owner.post(path, data={"public": "true", "origins": "ftp://x"}) as answer:
        assert answer.status == 400
    async with owner.post(path, data={"origins": ""}) as answer:
        assert "private: only with" in await answer.text()


async def test_sources_lead_to_the_site_where_its_address_is_known(owner, viewer, service, base):
    path = f"{base}/sites/{service.domain}/project"
    for wrong in ("docs.example.com", "javascript:alert(1)", "https://user:secret@docs.example.com"):
        async with owner.post(path, data={"name": "kite", "site_url": wrong}) as answer:
            assert (answer.status, "The address of a site" in await answer.text()) == (400, True)
    try:
        async with owner.post(path, data={"name": "kite", "site_url": "https://acme.github.io/kite/"}) as answer:
            assert (answer.status, 'value="https://acme.github.io/kite"' in await answer.text()) == (200, True)
        page = ""
        while 'data-base="https://acme.github.io/kite"' not in page:  # known a moment later
            page = await text_of(viewer, f"/ask/{service.domain}")
    finally:
        async with owner.post(path, data={"name": "kite", "site_url": ""}) as answer:
            assert answer.status == 200
    assert service.cli("project", "show", service.project_id)["siteUrl"] == ""


async def test_owner_gets_the_tag_and_changes_the_widget(owner, viewer, service, base):
    path = f"{base}/sites/{service.domain}/widget"
    page = html.unescape(await text_of(viewer, path))
    assert page.count(f'src="{service.url}/widget.js" data-site="{service.domain}" data-key="KEY" async>') >= 2
    for generator in ("Docusaurus", "MkDocs Material", "VitePress", "Sphinx", "Hugo"):
        assert f"<summary>{generator}</summary>" in page
    assert f"{service.url}/mcp/{service.domain}" in page
    address, integrity = re.search(r'src="(\S+/widget/\S+\.js)" integrity="sha256-(\S+)"', page).groups()
    async with owner.get(address.removeprefix(service.url)) as answer:
        assert base64.b64encode(hashlib.sha256(await answer.read()).digest()).decode() == integrity
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    page = html.unescape(await text_of(owner, path))
    for_servers = re.search(r'href="([^"]+/keys/new[^"]+use=server)"', page)[1]
    assert 'value="server" selected' in await text_of(owner, for_servers.removeprefix(service.url))
    form = {"title": "Ask <us>", "suggestions": "How?\r\nWhy?\r\n", "hand_off": "help@example.com", "form": "modal"}
    async with owner.post(path, data=form) as answer:
        page = await answer.text()
        assert (answer.status, "Ask &lt;us&gt;" in page, "How?\nWhy?" in page) == (200, True, True)
    assert "How?; Why?" in await text_of(viewer, path)
    async with owner.post(path, data={"title": "Typed", "hand_off": "javascript:alert(1)"}) as answer:
        page = await answer.text()
        assert (answer.status, 'value="Typed"' in page, "no link and no mail address" in page) == (400, True, True)
    async with owner.post(path, data={"title": "", "suggestions": "", "hand_off": "", "form": "side"}) as answer:
        assert "Ask &lt;us&gt;" not in await answer.text()


async def test_owner_changes_a_project(owner, service, base):
    path = f"{base}/sites/{service.domain}/project"
    async with owner.post(path, data={"name": "Kite guide", "ref": "main"}) as answer:
        page = await answer.text()
        assert (answer.status, 'value="Kite guide"' in page) == (200, True)
    wrong = {"context_name_0": "code", "context_repository_0": "/etc", "context_token_0": "s3cret-token"}
    async with owner.post(path, data={"name": "Kite guide", **wrong}) as answer:
        page = await answer.text()
        assert (answer.status, "not an https:// URL" in page, "/etc" in page) == (400, True, True)
        assert "s3cret-token" not in page


async def test_editor_indexes_again_and_sees_it(editor, service, base):
    async with editor.post(f"{base}/sites/{service.domain}/index") as answer:
        assert (answer.status, "Index" in await answer.text()) == (200, True)
    await live_until(editor, f"{base}/sites/{service.domain}/live", "Commit ")


async def test_roles_bound_what_can_be_done(viewer, editor, outsider, nobody, service, base):
    site = f"{base}/sites/{service.domain}"
    posts = {f"{site}/index": 403, f"{site}/access": 403, f"{site}/project": 403, f"{base}/projects/new": 403}
    for path, status in posts.items():
        async with viewer.post(path, data={}) as answer:
            assert answer.status == status, path
        for client in (outsider, nobody):
            async with client.post(path, data={}, allow_redirects=False) as answer:
                assert answer.status in (404, 401, 303), path
    async with editor.post(f"{site}/access", data={"public": "true"}) as answer:
        assert answer.status == 403
    for path in (f"{base}/sites", site, f"{site}/report", f"{site}/search", f"{site}/live"):
        async with outsider.get(path) as answer:
            assert answer.status == 404, path


async def test_site_of_another_organization_is_not_found(outsider, people, service):
    path = f"/dashboard/{people.other_organization_id}/sites"
    assert "no documentation here yet" in await text_of(outsider, path)
    await text_of(outsider, f"{path}/{service.domain}", status=404)
