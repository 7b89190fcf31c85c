"""kill -9 at bad moments: nothing acknowledged is lost, and nothing happens twice."""

import asyncio
import json

import pytest

from tests.end_to_end.talk import ask, create_job, get_job, head, job_events, message_url, question, recorded, text_of
from tests.fakes.provider import Call, ScriptedProvider
from tests.service_process import DOCS, service_in, write_docs

pytestmark = pytest.mark.slow


def with_model(provider):
    """Settings, from the environment, for a provider on this machine."""
    return {
        "DOCSMITH_AGENT__MODEL": "scripted",
        "DOCSMITH_ASSISTANT__MODEL": "scripted",
        "DOCSMITH_ASSISTANT__PLANNER": "off",  # it would take the replies in the script
        "DOCSMITH_MODELS__SCRIPTED__MODEL": "openai/gpt-5.2",
        "DOCSMITH_MODELS__SCRIPTED__API_BASE": provider.openai_base,
        "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
        "SCRIPTED_KEY": "sk-scripted",
    }


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def crashing(tmp_path, provider):
    """A service that these tests may kill, answering with a scripted model."""
    with service_in(tmp_path, with_model(provider)) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        yield service


@pytest.fixture(scope="module")
def editing(tmp_path_factory):
    """Another, with the builtin model; one for all who kill it, since each start takes seconds."""
    folder = tmp_path_factory.mktemp("editing")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"), index=False)
        service.start()
        yield service


async def restart(service):
    service.kill()
    await asyncio.to_thread(service.start)


def pull_requests(service):
    folder = service.data / "hosted" / f"{service.project_id}.git" / "docsmith" / "pulls"
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


async def test_a_job_goes_on_where_it_was(http, crashing, provider):
    text = DOCS["retry.md"] + "\nWritten once.\n"
    write = Call("write", (json.dumps({"path": "retry.md", "text": text}),), id="call_1")
    finish = Call("finish", (json.dumps({"title": "Write a page", "summary": "Wrote retry.md."}),), id="call_2")
    held = asyncio.Event()
    provider.will_reply("I will write it.", calls=(write,))
    provider.will_reply("Done", "…", after=1, hold=held)
    job = await create_job(http, crashing, "Add a page")
    first = await provider.next_asked()
    second = await provider.next_asked()
    provider.will_reply("Done.", calls=(finish,))  # it may be asked before we know that the service is there again
    await restart(crashing)
    held.set()
    await job_events(http, crashing, job["id"])
    third = await provider.next_asked()
    done = await get_job(http, crashing, job["id"])
    assert (done["status"], done["failure"]) == ("completed", None)
    assert len(first.body["messages"]) < len(second.body["messages"])
    assert third.body["messages"] == second.body["messages"]  # what was paid for is not asked again
    types = [event["type"] for event in crashing.cli("audit", "show", "--stream", f"job-{job['id']}")["events"]]
    assert types.count("job-interrupted") == 1
    for once in ("file-changed", "committed", "branch-pushed", "pull-request-opened", "job-completed"):
        assert types.count(once) == 1
    assert len(pull_requests(crashing)) == 1


@pytest.mark.parametrize(
    "moment", ["job-requested", "workspace-opened", "model-replied", "file-changed", "committed", "branch-pushed"]
)
async def test_a_job_ends_with_one_pull_request(http, editing, moment):
    job = await create_job(http, editing, 'Replace "20 MB" with "25 MB" in install.md')
    await recorded(editing, f"job-{job['id']}", until=moment)
    await restart(editing)
    await job_events(http, editing, job["id"])
    done = await get_job(http, editing, job["id"])
    assert (done["status"], done["failure"]) == ("completed", None)
    (pull_request,) = [one for one in pull_requests(editing) if one["head"] == job["branch"]]
    assert done["prLink"].endswith(f"/pulls/{pull_request['number']}-{pull_request['token']}")
    types = [event["type"] for event in editing.cli("audit", "show", "--stream", f"job-{job['id']}")["events"]]
    for once in ("committed", "branch-pushed", "pull-request-opened", "job-completed"):
        assert types.count(once) == 1
    assert editing.place.verify().is_sound


async def test_written_part_of_an_answer_is_on_its_thread(http, crashing, provider):
    provider.will_reply("To install Kite, ", "run the installer [1].", after=1, hold=asyncio.Event())
    async with http.post(
        message_url(crashing), json=question("How do I install Kite?"), headers=crashing.assistant
    ) as response:
        thread_id = response.headers["X-Thread-Id"]
        await recorded(crashing, f"thread-{thread_id}", until="reply-written")
        await restart(crashing)
    types = await recorded(crashing, f"thread-{thread_id}", until="reply-stopped")
    assert types[:3] == ["thread-started", "message-posted", "reply-started"]
    events = crashing.cli("audit", "show", "--stream", f"thread-{thread_id}")["events"]
    assert "".join(e["data"]["text"] for e in events if e["type"] == "reply-written").strip() == "To install Kite,"
    assert events[-1]["data"]["reason"] == "interrupted"
    provider.will_reply("As I was saying.")
    found = await ask(http, crashing, question("Go on.", threadId=thread_id))
    assert "As I was saying." in text_of(found)
    asked = [await provider.next_asked(), await provider.next_asked()][1]
    assert "To install Kite," in json.dumps(asked.body["messages"])


async def test_a_reader_that_leaves_ends_the_models_call(http, crashing, provider):
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
    response = await http.post(message_url(crashing), json=question("How do I install?"), headers=crashing.assistant)
    thread_id = response.headers["X-Thread-Id"]
    asked = await provider.next_asked()
    await recorded(crashing, f"thread-{thread_id}", until="reply-written")
    response.close()
    async with asyncio.timeout(60):
        await asked.disconnected.wait()
    await recorded(crashing, f"thread-{thread_id}", until="reply-stopped")


async def test_a_stop_ends_streams_properly_and_parks_jobs(http, crashing, provider):
    provider.will_reply("To install ", "Kite", after=1, hold=asyncio.Event())
    provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
    async with http.post(
        message_url(crashing), json=question("How do I install Kite?"), headers=crashing.assistant
    ) as response:
        await provider.next_asked()
        job = await create_job(http, crashing, "Think about it")
        await provider.next_asked()
        status = await asyncio.to_thread(crashing.stop)
        assert status == 0
        text = await response.text()
    assert '"type":"error"' in text
    assert text.endswith("data: [DONE]\n\n")
    types = [event["type"] for event in crashing.cli("audit", "show", "--stream", f"job-{job['id']}")["events"]]
    assert types[-1] == "job-interrupted"
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_1")
    provider.will_reply(calls=(finish,))
    await asyncio.to_thread(crashing.start)
    await job_events(http, crashing, job["id"])
    assert (await get_job(http, crashing, job["id"]))["status"] == "completed"


async def test_a_second_server_on_the_same_data_is_refused(crashing):
    done = await asyncio.to_thread(crashing.run, "serve", "--port", "0")
    assert done.returncode == 1
    assert str(crashing.each[0].process.pid) in done.stderr


async def test_read_tables_are_rebuilt_when_they_are_gone(http, crashing, provider):
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_1")
    provider.will_reply(calls=(finish,))
    job = await create_job(http, crashing, "Nothing")
    await job_events(http, crashing, job["id"])
    before = await get_job(http, crashing, job["id"])
    crashing.kill()
    for folder in crashing.folders:
        for file in folder.glob("views.db*"):
            file.unlink()
    await asyncio.to_thread(crashing.start)
    assert await get_job(http, crashing, job["id"]) == before


async def post(http, service, *parts, body=None, **headers):
    url = "/".join([service.url, "v2", "agent", service.project_id, *parts])
    async with http.post(url, json=body, headers={**service.admin, **headers}) as response:
        assert response.status in (200, 201), await response.text()
        return await response.json()


async def test_cancelling_ends_the_model_call_and_a_message_continues(http, crashing, provider):
    provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
    job = await create_job(http, crashing, "Think about it")
    asked = await provider.next_asked()
    cancelled = await post(http, crashing, "job", job["id"], "cancel")
    async with asyncio.timeout(60):
        await asked.disconnected.wait()
    assert (cancelled["status"], cancelled["failure"]["code"]) == ("failed", "cancelled")
    assert await post(http, crashing, "job", job["id"], "cancel") == cancelled
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_1")
    provider.will_reply(calls=(finish,))
    await post(http, crashing, "job", job["id"], "message", body={"prompt": "Go on after all"})
    await job_events(http, crashing, job["id"])
    assert (await get_job(http, crashing, job["id"]))["status"] == "completed"
    told = (await provider.next_asked()).body["messages"]
    assert told[-1]["role"] == "user"
    assert told[-1]["content"].endswith("\n\nGo on after all")


async def test_the_command_line_cancels_a_job_of_the_running_service(http, crashing, provider):
    provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
    job = await create_job(http, crashing, "Think about it")
    asked = await provider.next_asked()
    url = f"{crashing.url}/v2/agent/{crashing.project_id}/job/{job['id']}/events"
    of_another_log = {**crashing.admin, "Last-Event-ID": "900000000000000000"}  # such as before a restored backup
    async with http.get(url, headers=of_another_log) as follower:
        assert (await asyncio.to_thread(crashing.cli, "job", "cancel", job["id"]))["failure"]["code"] == "cancelled"
        async with asyncio.timeout(60):
            await asked.disconnected.wait()
            assert "event: job-failed\n" in await follower.text()


async def test_a_message_is_in_the_next_prompt_also_after_a_crash(http, crashing, provider):
    look = Call("list", ("{}",), id="call_1")
    provider.will_reply("I look first.", calls=(look,))
    provider.will_reply("Hm", "…", after=1, hold=asyncio.Event())
    job = await create_job(http, crashing, "Add a page")
    await provider.next_asked()
    second = await provider.next_asked()
    await post(http, crashing, "job", job["id"], "message", body={"prompt": "Call it zebra"})
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_2")
    provider.will_reply(calls=(finish,))
    await restart(crashing)
    await job_events(http, crashing, job["id"])
    third = await provider.next_asked()
    assert third.body["messages"] == [*second.body["messages"], {"role": "user", "content": "Call it zebra"}]


async def test_continued_job_is_published_once_whenever_it_is_killed(http, editing):
    job = await create_job(http, editing, 'Replace "20 MB" with "25 MB" in install.md')
    await job_events(http, editing, job["id"])
    ends = 1
    for moment in ("job-reopened", "committed", "branch-pushed"):
        before = head(editing)
        await post(http, editing, "job", job["id"], "message", body={"prompt": f'Append "{moment}." to retry.md'})
        await recorded(editing, f"job-{job['id']}", until=moment, after=before)
        await restart(editing)
        await job_events(http, editing, job["id"])
        ends += 1
    types = [event["type"] for event in editing.cli("audit", "show", "--stream", f"job-{job['id']}")["events"]]
    for once_a_round in ("committed", "branch-pushed", "job-completed"):
        assert types.count(once_a_round) == ends
    assert (types.count("pull-request-opened"), types.count("pull-request-updated")) == (1, ends - 1)
    assert len([one for one in pull_requests(editing) if one["head"] == job["branch"]]) == 1


async def test_answered_request_is_not_repeated_after_a_crash(http, crashing, provider):
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_1")
    provider.will_reply(calls=(finish,))
    key = {"Idempotency-Key": "one-and-only"}
    job = await post(http, crashing, "job", body={"prompt": "Nothing"}, **key)
    await restart(crashing)
    assert (await post(http, crashing, "job", body={"prompt": "Nothing"}, **key))["id"] == job["id"]
    await job_events(http, crashing, job["id"])


async def test_waiting_jobs_show_their_place_in_the_queue(http, tmp_path, provider):
    settings = with_model(provider) | {"DOCSMITH_AGENT__CONCURRENT_JOBS": "1"}
    finish = Call("finish", (json.dumps({"title": "Nothing", "summary": "Nothing to do."}),), id="call_1")
    held = asyncio.Event()
    with service_in(tmp_path, settings) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
        await asyncio.to_thread(service.start)
        provider.will_reply("Hm", "…", after=1, hold=held)
        first = await create_job(http, service, "Think about it")  # of several instances, home has the only slot for it
        await provider.next_asked()
        second = await create_job(http, service, "Look around")
        third = await create_job(http, service, "Look around, too")
        assert [(await get_job(http, service, job["id"]))["queuePosition"] for job in (first, second, third)] == [
            None, 1, 2
        ]  # fmt: skip
        assert (await job_events(http, service, third["id"], until="queue-position"))[-1]["position"] == 2
        provider.will_reply(calls=(finish,))
        provider.will_reply(calls=(finish,))
        await post(http, service, "job", first["id"], "cancel")
        for job in (second, third):
            await job_events(http, service, job["id"])
            assert (await get_job(http, service, job["id"]))["queuePosition"] is None
