"""Editors read each request to a job's model as it was sent: by the API, and by the command line."""

import asyncio
import json

import pytest

from tests.end_to_end.scripted import scripted_settings
from tests.end_to_end.talk import create_job, get_job, job_events
from tests.fakes.provider import Asked, Call, Reply, ScriptedProvider
from tests.service_process import free_port, service_in, write_docs

READS = 14
PAGES = {f"page{number}.md": f"# Page {number}\n\n" + f"Text of page {number}.\n" * 200 for number in range(READS)}
SECRET = "the_secret_formula = wind * 42"


def call(tool, **arguments):
    return Call(tool, (json.dumps(arguments),))


def finish(title):
    return call("finish", title=title, summary="It is said now.", change=title, answer="Done.")


def script():
    """Two rounds: pages that do not fit the window together, the code, an edit each."""
    yield Reply((), (call("read", path="@code/kite.py"), call("search", query="fly")))
    for number in range(READS):
        yield Reply((f"I read page {number}.",), (call("read", path=f"page{number}.md"),))
    yield Reply((), (call("insert", path="index.md", text="Kites fly high.\n"),))
    yield Reply((), (finish("Say how kites fly"),))
    yield Reply((), (call("insert", path="index.md", text="They fly well.\n"), call("read", path="page1.md")))
    yield Reply((), (finish("Say that they fly well"),))


@pytest.fixture
def served(tmp_path, git):
    port = free_port()
    settings = scripted_settings(port, AGENT__MODEL="scripted", MODELS__SCRIPTED__CONTEXT_TOKENS="16000")
    with service_in(tmp_path, settings) as service:
        service.set_up(write_docs(tmp_path / "docs", {"index.md": "# Kites\n", **PAGES}))
        for name, text in (("code", "def fly(height):\n    return height\n"), ("inner", f"{SECRET}\n# ok\n")):
            folder = tmp_path / name
            git("init", "-q", "-b", "main", str(folder))
            (folder / "kite.py").write_text(text)
            git("-C", str(folder), "add", ".")
            git("-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-qm", "Begin")
        service.cli("project", "update", "kite", "--context", f"code={tmp_path / 'code'}", "--context-public", "code")
        service.start()
        yield service, port


def request_url(service, job):
    return f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/request"


async def read_request(http, service, job, number):
    async with http.get(request_url(service, job), params={"number": number}, headers=service.admin) as response:
        assert response.status == 200
        return await response.json()


def in_openai_form(messages):
    """Rebuilt messages as a provider of this kind gets them: what users say in a row is one message."""
    found = []
    for form in map(one_in_openai_form, messages):
        if found and form["role"] == found[-1]["role"] == "user":
            found[-1] = {"role": "user", "content": f"{found[-1]['content']}\n\n{form['content']}"}
        else:
            found.append(form)
    return found


def one_in_openai_form(message):
    form = {"role": message["role"], "content": message["text"]}
    if message["calls"]:
        form = {"role": "assistant"} | ({"content": message["text"]} if message["text"] else {})
        form["tool_calls"] = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in message["calls"]
        ]
    if message["callId"]:
        form["tool_call_id"] = message["callId"]
    return form


def require_same(rebuilt, asked: Asked):
    assert rebuilt["isRebuilt"]
    sent = [{name: value for name, value in one.items() if name != "name"} for one in asked.body["messages"]]
    assert in_openai_form(rebuilt["messages"]) == sent
    tools = [{"type": "function", "function": tool} for tool in rebuilt["tools"]]
    assert tools == asked.body["tools"]
    assert asked.body["max_completion_tokens"] == rebuilt["maxOutputTokens"]


async def test_requests_are_what_the_provider_received(http, served):
    service, port = served
    replies, kill_before = list(script()), 7
    held, killed = asyncio.Event(), False
    given = 0

    def play(_: Asked) -> Reply:
        nonlocal given, killed
        if given == kill_before and not killed:
            killed = True
            held.set()
            return Reply(("never",), delay_seconds=60)
        given += 1
        return replies[given - 1]

    async with ScriptedProvider(play, port=port) as provider:
        job = await create_job(http, service, "Read all of it, then say how kites fly.")
        async with asyncio.timeout(120):
            await held.wait()
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start)
        await job_events(http, service, job["id"])
        say = f"{service.url}/v2/agent/{service.project_id}/job/{job['id']}/message"
        async with http.post(say, json={"prompt": "Say that they fly well, too."}, headers=service.admin) as response:
            assert response.status == 200
        await job_events(http, service, job["id"])
    done = await get_job(http, service, job["id"])
    assert (done["status"], done["outcome"]) == ("completed", "pull_request")

    asked = list(provider.asked)
    assert asked[kill_before].body["messages"] == asked[kill_before + 1].body["messages"]
    del asked[kill_before]  # its reply never came
    assert len(asked) == len(replies)
    for number, one in enumerate(asked, 1):
        require_same(await read_request(http, service, job, number), one)
    texts = [message.get("content") or "" for message in asked[READS].body["messages"]]
    assert any("left out to save room" in text for text in texts)  # the window was too small for all

    last = await read_request(http, service, job, len(asked))
    async with http.get(request_url(service, job), headers=service.admin) as response:
        assert await response.json() == last
    assert (last["number"], last["count"], last["lost"]) == (len(asked), len(asked), "")
    for wrong, status in ((0, 400), (len(asked) + 1, 404), ("x", 400)):
        async with http.get(request_url(service, job), params={"number": wrong}, headers=service.admin) as response:
            assert response.status == status
    async with http.get(request_url(service, job), headers=service.assistant) as response:
        assert response.status == 403

    shown = service.cli("job", "show", "--prompts", job["id"])["requests"]
    assert shown == [await read_request(http, service, job, number) for number in range(1, len(asked) + 1)]
    assert service.cli("job", "show", "--prompts", "--call", "2", job["id"]) == shown[1]
    text = service.run("job", "show", "--prompts", job["id"]).stdout
    assert f"=== request 2 of {len(asked)}, replied by" in text
    assert "--- 18 tools, as in request 1" in text
    assert "Kites fly high." in text
    assert text.count("You maintain the documentation of a software project.") < len(asked)

    service.cli("audit", "erase", f"job-{job['id']}", "--yes")
    erased = await read_request(http, service, job, 2)
    assert (erased["isRebuilt"], erased["messages"], erased["tools"]) == (False, [], [])
    assert (erased["prompts"], erased["count"]) == (last["prompts"], len(asked))


async def test_lines_of_contexts_that_are_not_public_are_left_out(http, served, tmp_path):
    service, port = served
    service.cli("project", "update", "kite", "--context", f"inner={tmp_path / 'inner'}")
    steps = iter(
        (
            Reply((), (call("read", path="@inner/kite.py"), call("search", query="formula", folder="@inner"))),
            Reply(
                (f"It says\n{SECRET}\nso I write it.",), (call("write", path="new.md", text=f"# New\n\n{SECRET}\n"),)
            ),
            Reply((), (call("read", path="@code/kite.py"), call("revert", path="."))),
            Reply((), (finish("Nothing"),)),
        )
    )
    async with ScriptedProvider(lambda _: next(steps), port=port) as provider:
        job = await create_job(http, service, "Look at the code.")
        await job_events(http, service, job["id"])
    assert SECRET in json.dumps(provider.asked[-1].body)
    last = await read_request(http, service, job, len(provider.asked))
    told = json.dumps(last)
    assert SECRET not in told
    assert "line of @inner left out: it is not public]" in told
    assert last["linesLeftOut"] >= 4
    assert "def fly(height):" in told  # the other context is public
    assert any(message["text"].startswith("@inner/kite.py, lines 1 to 2 of 2:") for message in last["messages"])
    assert SECRET not in service.run("job", "show", "--prompts", job["id"]).stdout
