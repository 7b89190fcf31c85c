"""The pages of jobs: list, new job, one job with its steps as they come, and what each role may do."""

import asyncio
import re
import shlex
import subprocess

import pytest

from tests.dashboard.conftest import SAME_ORIGIN, browser, people_of
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import ScriptedProvider
from tests.service_process import service_in, write_docs


def jobs_of(service):
    return f"/dashboard/{service.organization_id}/jobs"


async def text_of(client, path, status=200):
    async with client.get(path) as response:
        assert response.status == status, await response.text()
        return await response.text()


async def post(client, path, status=303, /, **fields):
    async with client.post(path, data=fields, headers=SAME_ORIGIN, allow_redirects=False) as response:
        assert response.status == status, await response.text()
        return response.headers.get("Location", ""), await response.text()


async def created(client, service, prompt, **fields):
    """The path of a new job's page."""
    location, _ = await post(client, f"{jobs_of(service)}/new", project=service.project_id, prompt=prompt, **fields)
    return f"{jobs_of(service)}/{location.rsplit('/', 1)[1]}"


async def followed(client, path):
    """What the live region receives until the job has ended."""
    async with asyncio.timeout(120), client.get(f"{path}/live?after=0") as response:
        assert response.status == 200
        return (await response.read()).decode()


async def test_editor_gives_a_job_follows_it_and_merges(editor, viewer, service):
    path = await created(editor, service, 'Append "Kites have a page." to index.md', context="Kites fly.")
    live = await followed(editor, path)
    assert "event: done" in live
    assert live.count("Pull request opened") == 1
    page = await text_of(viewer, path)
    for words in ("Ready for review", "Append &#34;Kites have a page.&#34;", "Kites fly.", " by editor"):
        assert words in page, words
    assert page.count("Pull request opened") == 1
    assert "<form" not in page.partition("<main")[2]  # a viewer reads
    listed = await text_of(viewer, f"{jobs_of(service)}?only=review")
    badge = re.search(r'<span class="state \w+">Ready for review</span>', listed)[0]
    assert badge in await text_of(viewer, f"/dashboard/{service.organization_id}")
    reads = service.cli("audit", "show", "--type", "audit-read", "--limit", "1000")["events"]
    assert "page overview" in [read["data"]["command"] for read in reads]  # titles are words of people
    await post(editor, f"{path}/merge")
    assert "Merged" in await text_of(viewer, path)
    refused = await post(editor, f"{path}/retry", 409)
    assert "The job has not failed." in refused[1]


async def test_job_that_asks_has_one_state_in_words(editor, viewer, service):
    path = await created(editor, service, "Look around")
    await followed(editor, path)
    page = await text_of(editor, path)
    assert "Needs your answer" in page
    assert "Answer with a message, and the job continues." in page
    assert "Asked a question" in page
    assert "<strong>Completed</strong>" not in page
    page = await text_of(viewer, path)
    assert "An editor or an owner can answer it." in page
    assert "Answer with a message" not in page
    shown = await asyncio.to_thread(service.run, "job", "show", path.rsplit("/", 1)[1])
    assert "\nstatus needs your answer\n" in shown.stdout


async def test_failed_job_says_why_in_a_sentence(tmp_path):
    async with ScriptedProvider() as provider:
        with service_in(tmp_path, with_model(provider)) as service:
            await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
            await asyncio.to_thread(service.start)
            people = await asyncio.to_thread(people_of, service)
            async with browser(service.url, people.cookies["editor"]) as editor:
                provider.will_fail(401, "authentication_error", "Incorrect API key")
                path = await created(editor, service, "Look around")
                await followed(editor, path)
                page = await text_of(editor, path)
    state = re.search(r"<section class=\"card decision blocked\".*?</section>", page, re.DOTALL)[0]
    assert "model_key_refused</code>" not in state
    assert "refuses the key" in state
    assert '/docs/errors/model_key_refused">How to solve this problem</a>' in state


async def test_changes_are_shown_against_the_documentation(editor, viewer, service):
    path = await created(editor, service, 'Append "Kites have changes." to install.md')
    await followed(editor, path)
    page = await text_of(viewer, f"{path}/changes")
    assert "install.md" in page
    assert "Kites have changes." in page
    assert "To install Kite, run the installer" not in page  # far from the change
    path = await created(editor, service, "Look around")
    await followed(editor, path)
    assert "The job changed no file." in await text_of(viewer, f"{path}/changes")


async def test_editors_read_each_request_to_the_model(editor, viewer, service):
    path = await created(editor, service, 'Append "Kites are <asked> for." to index.md')
    await followed(editor, path)
    assert f"{path}/requests" in await text_of(editor, path)
    assert f"{path}/requests" not in await text_of(viewer, path)
    await text_of(viewer, f"{path}/requests", 403)
    page = await text_of(editor, f"{path}/requests")
    count = int(re.search(r"Request (\d+) of \1<", page)[1])
    assert count > 1
    assert "You maintain the documentation of a software project." in page
    assert "Kites are &lt;asked&gt; for." in page
    assert f"as in request {count - 1}</span>" in page
    first = await text_of(editor, f"{path}/requests?number=1")
    assert f"Request 1 of {count}<" in first
    assert "Earlier</a>" not in first
    assert await text_of(editor, f"{path}/requests?number=0") == first
    assert f"Request {count} of {count}<" in await text_of(editor, f"{path}/requests?number=999999")
    assert f"Request {count} of {count}<" in await text_of(editor, f"{path}/requests?number=x1")
    job_id = path.rsplit("/", 1)[1]
    reads = service.cli("audit", "show", "--type", "audit-read", "--limit", "1000")["events"]
    assert ("page job requests", job_id) in [
        (read["data"]["command"], read["data"]["filters"].get("job")) for read in reads
    ]
    await asyncio.to_thread(service.cli, "audit", "erase", f"job-{job_id}", "--yes")
    erased = await text_of(editor, f"{path}/requests")
    assert "The text of this request is not on record" in erased
    assert "You maintain" not in erased


async def test_long_messages_of_a_request_are_cut_on_the_page(editor, service):
    path = await created(
        editor, service, "Look around", context="".join(f"Line {number}.\n" for number in range(4_200))
    )
    await followed(editor, path)
    page = await text_of(editor, f"{path}/requests?number=1")
    assert "Long messages are cut." in page
    assert re.search(r"\[[\d,]+ characters more\]", page)
    assert "Line 1000." in page
    assert "Line 4199." not in page
    command = re.search(r"<code>docsmith (job show \S+ --prompts --call 1)</code>", page)[1]
    shown = await asyncio.to_thread(service.run, *command.split())
    assert "Line 4199." in shown.stdout


async def test_form_sent_twice_creates_one_job(editor, service):
    first = await created(editor, service, "Look around", form="one")
    assert await created(editor, service, "Look around", form="one") == first
    assert await created(editor, service, "Look elsewhere", form="one") != first


async def test_job_that_has_ended_goes_on_with_a_message(editor, service):
    path = await created(editor, service, "Look around")
    await followed(editor, path)
    (form,) = re.findall(r'name="form" value="(\w+)"', await text_of(editor, path))
    for _ in range(2):
        await post(editor, f"{path}/message", text='Append "Kites go on." to index.md', form=form)
    await text_of(editor, f"{path}?before={'1'.zfill(16)}{'9' * 30}")  # no position
    assert "Job continued" in await followed(editor, path)
    await post(editor, f"{path}/archive")
    assert path.rsplit("/", 1)[1] not in await text_of(editor, jobs_of(service))
    assert path.rsplit("/", 1)[1] in await text_of(editor, f"{jobs_of(service)}?only=archived")
    assert "/unarchive" in await text_of(editor, path)
    await post(editor, f"{path}/unarchive")
    assert path.rsplit("/", 1)[1] in await text_of(editor, jobs_of(service))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": ""}, "Write what the agent should do."),
        ({"prompt": "Look", "project": "another"}, "Choose the project"),
        ({"prompt": "Look", "branch": "main"}, "on a branch of its own"),
        ({"prompt": "Look", "model": "none-such"}, "none-such"),
    ],
)
async def test_form_that_cannot_be_keeps_its_words(editor, service, fields, words):
    values = {"project": service.project_id, "context": "Kept words", **fields}
    _, page = await post(editor, f"{jobs_of(service)}/new", 400, **values)
    assert words in page
    assert "Kept words" in page


async def test_call_shown_as_curl_creates_the_job(editor, service):
    fields = {"project": service.project_id, "prompt": "Look at 'kites'", "context": "One", "show": "curl"}
    _, page = await post(editor, f"{jobs_of(service)}/new", 200, **fields)
    command = re.search(r"curl -sS.*?(?=</code>)", page, re.DOTALL)[0]
    for entity, character in (("&#34;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        command = command.replace(entity, character)
    command = command.replace("$DOCSMITH_KEY", service.admin_key)
    arguments = shlex.split(command.replace("\\\n", ""))
    done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True, check=True)
    assert '"title":"Look at \'kites\'"' in done.stdout


async def test_jobs_of_another_organization_are_not_found(editor, outsider, service, people):
    path = await created(editor, service, "Look around")
    await text_of(outsider, path, status=404)
    await text_of(outsider, path.replace(service.organization_id, people.other_organization_id), status=404)
    await text_of(outsider, f"{path}/live", status=404)
    await post(outsider, f"{path}/cancel", 404)
    for action in ("cancel", "retry", "archive", "unarchive", "merge", "close", "message"):
        await post(outsider, f"{path}/{action}".replace(service.organization_id, people.other_organization_id), 404)


async def test_viewer_changes_no_job(editor, viewer, nobody, service):
    path = await created(editor, service, "Look around")
    for action in ("cancel", "retry", "archive", "unarchive", "merge", "close", "message"):
        await post(viewer, f"{path}/{action}", 403, text="Go on")
        await post(nobody, f"{path}/{action}", 401, text="Go on")
    await text_of(viewer, f"{jobs_of(service)}/new", status=403)
