"""The Python client of one file, used as its users would: by its path, away from this tree."""

import asyncio
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import threading
from contextlib import aclosing, suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from scripts.python_client import BY_HAND, CLIENT, FOR_PAGES, generated
from service.web.api.description.description import OPERATIONS, description
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import recorded
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

QUESTION = "How do I install Kite?"


@pytest.fixture(scope="module")
def sdk():
    spec = importlib.util.spec_from_file_location("docsmith_client", CLIENT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["docsmith_client"] = module  # where dataclasses look for the types that they name
    spec.loader.exec_module(module)
    yield module
    del sys.modules["docsmith_client"]


@pytest.fixture
def admin(sdk, service):
    with sdk.Docsmith(service.url, service.admin_key) as client:
        yield client


@pytest.fixture
def assistant(sdk, service):
    with sdk.Docsmith(service.url, service.assistant_key) as client:
        yield client


def test_client_is_made_from_this_description():
    text = CLIENT.read_text(encoding="utf-8")
    assert text == generated(text, description()), "run scripts/client, and commit what it writes"


def test_client_has_a_method_for_each_operation(sdk):
    for operation in OPERATIONS:
        if operation.is_deprecated or operation.id in FOR_PAGES | {"resumeReply"}:
            continue
        name = re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", operation.id)
        for client in (sdk.Docsmith, sdk.AsyncDocsmith):
            assert inspect.getdoc(getattr(client, name)), name
    assert {operation.id for operation in OPERATIONS} >= BY_HAND


def test_client_names_each_field_as_json_does(sdk):
    for kind in vars(sdk).values():
        if inspect.isclass(kind) and hasattr(kind, "__dataclass_fields__") and kind.__name__ in SCHEMAS:
            given = {sdk._json_name(name) for name in kind.__dataclass_fields__}
            assert given == set(SCHEMAS[kind.__name__]["properties"])


SCHEMAS = description()["components"]["schemas"]


async def test_client_is_served_with_the_scripts(service, http):
    async with http.get(f"{service.url}/sdk/docsmith_client.py") as response:
        assert response.status == 200
        assert response.content_type == "text/x-python"
        assert await response.read() == CLIENT.read_bytes()


def test_job_is_created_awaited_and_followed(sdk, admin, service):
    job = admin.create_job(service.project_id, prompt='Replace "20 MB" with "22 MB" in install.md')
    assert job.status == "active"
    events = list(admin.follow_job(service.project_id, job.id))
    assert [events[0].type, events[-1].type] == ["job-requested", "job-completed"]
    done = admin.wait_for_job(service.project_id, job.id)
    assert (done.status, done.outcome, done.failure) == ("completed", "pull_request", None)
    assert done.created_at.utcoffset() == timedelta(0)
    middle = events[len(events) // 2]
    rest = admin.follow_job(service.project_id, job.id, after=middle.id)
    assert [one.id for one in rest] == [one.id for one in events if one.id > middle.id]
    listed = islice(sdk.pages(admin.list_jobs, service.project_id, limit=1), 2)
    assert next(listed).jobs[0].id == job.id


def test_repeated_key_finds_the_first_job(sdk, admin, service):
    jobs = [
        admin.create_job(service.project_id, prompt="Make it dance", idempotency_key="of a client") for _ in range(2)
    ]
    assert jobs[0].id == jobs[1].id
    with pytest.raises(sdk.InvalidRequest) as refused:
        admin.create_job(service.project_id, prompt="Something else", idempotency_key="of a client")
    assert refused.value.code == "idempotency_key_reused"


def test_errors_have_a_type_and_a_code(sdk, admin, service):
    with pytest.raises(sdk.NotFound) as refused:
        admin.get_job(service.project_id, "nowhere")
    assert (refused.value.status, refused.value.code) == (404, "job_not_found")
    assert refused.value.request_id
    with pytest.raises(sdk.InvalidRequest) as refused:
        admin.create_job(service.project_id, prompt=" ")
    assert refused.value.errors[0][0] == "$.prompt"
    with pytest.raises(sdk.Unauthorized):
        sdk.Docsmith(service.url, "docsmith_wrong").get_organization()
    with pytest.raises(sdk.ConnectionLost):
        sdk.Docsmith(f"http://127.0.0.1:{free_port()}", retries=0).health()
    with pytest.raises(ValueError, match="Not an id"):
        admin.get_job(service.project_id, "..")
    assert service.admin_key not in repr(admin)


def test_answer_comes_in_parts_with_its_sources(sdk, assistant, admin, service):
    answer = assistant.ask(service.domain, QUESTION, filter=sdk.Filter(language="en"))
    parts = list(answer)
    assert len(parts) > 1
    assert "".join(parts) == answer.text
    assert "kite.example/install" in answer.text
    assert answer.is_done
    assert answer.sources[0].url.startswith("/install")
    assert answer.checks.unsupported == 0
    follow_up = assistant.ask(
        service.domain, "How much disk does it need?", thread_id=answer.thread_id, thread_key=answer.thread_key
    )
    assert "20 MB" in follow_up.read()
    assert follow_up.thread_id == answer.thread_id
    assistant.rate_reply(service.domain, thread_id=answer.thread_id, message_id=answer.id, rating="up")
    told = admin.get_conversation(answer.thread_id)
    assert [one.feedback.rating for one in told.messages if one.feedback] == ["up"]


def test_site_is_searched_and_read(assistant, service):
    found = assistant.search(service.domain, query=QUESTION, page_size=2, highlights=True)
    assert found[0].metadata.url == "/install"
    assert found[0].metadata.highlights is not None
    assert "20 MB" in assistant.read_page(service.domain, path=found[0].path).content


def test_threads_may_share_a_client(admin, service):
    found = []

    def read():
        found.extend(admin.get_project(service.project_id).id for _ in range(5))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [service.project_id] * 40


async def test_everything_is_asynchronous_too(sdk, service):
    async with sdk.AsyncDocsmith(service.url, service.admin_key, connections=4) as admin:
        found = await asyncio.gather(*(admin.get_project(service.project_id) for _ in range(6)))
        assert {project.id for project in found} == {service.project_id}
        job = await admin.create_job(service.project_id, prompt="Make it sing")
        types = [event.type async for event in admin.follow_job(service.project_id, job.id)]
        assert types[-1] in ("job-completed", "job-failed")
        assert (await admin.wait_for_job(service.project_id, job.id)).status != "active"
        async with aclosing(sdk.async_pages(admin.list_jobs, service.project_id, limit=1)) as pages:
            assert len((await anext(pages)).jobs) == 1
    async with sdk.AsyncDocsmith(service.url, service.assistant_key) as assistant:
        async with await assistant.ask(service.domain, QUESTION) as answer:
            text = "".join([part async for part in answer])
        assert text == answer.answer.text
        assert "kite.example/install" in text


async def test_cancelled_call_closes_its_connection(sdk):
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def hold(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        closed.set()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server, sdk.AsyncDocsmith(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        call = asyncio.create_task(client.health())
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(60):
            await closed.wait()


ANSWER = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"


class Scripted:
    """A server that gives one answer to each connection, in turn; None closes it without one."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    async def __call__(self, reader, writer):
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        answer = self.answers.pop(0)
        if answer is not None:
            writer.write(answer)
        writer.close()

    async def run(self, sdk, use):
        def run(url):
            with sdk.Docsmith(url) as client:
                return use(client)

        server = await asyncio.start_server(self, "127.0.0.1", 0)
        async with server:
            return await asyncio.to_thread(run, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


def answer(status, body, headers=b""):
    return ANSWER % (status, len(body), headers, body)


HEALTH = answer(b"200 OK", b'{"status": "ok", "version": "1", "new": {"field": 1}}')
BUSY = answer(b"503 Service Unavailable", b'{"code": "unavailable", "detail": "Busy."}', b"Retry-After: 0\r\n")


async def test_reading_is_repeated_and_writing_is_not(sdk):
    lost = Scripted(None, BUSY, HEALTH)
    assert (await lost.run(sdk, lambda client: client.health())).status == "ok"
    assert len(lost.requests) == 3
    written = Scripted(None, HEALTH)
    with pytest.raises(sdk.ConnectionLost):
        await written.run(sdk, lambda client: client.create_key(kind="admin", name="Reports"))
    assert len(written.requests) == 1
    jobs = Scripted(None, answer(b"404 Not Found", b'{"code": "project_not_found"}'))
    with pytest.raises(sdk.NotFound):
        await jobs.run(sdk, lambda client: client.create_job("p", prompt="Sing"))
    keys = [re.search(r"Idempotency-Key: (\S+)", one)[1] for one in jobs.requests]
    assert keys[0] == keys[1]


async def test_long_retry_after_is_left_to_the_caller(sdk):
    limited = answer(b"429 Too Many Requests", b'{"code": "rate_limited"}', b"Retry-After: 3600\r\n")
    with pytest.raises(sdk.RateLimited) as refused:
        await Scripted(limited).run(sdk, lambda client: client.health())
    assert refused.value.retry_after_seconds == 3600


async def test_answer_of_another_server_is_unexpected(sdk):
    with pytest.raises(sdk.UnexpectedAnswer):
        await Scripted(answer(b"200 OK", b"<html>")).run(sdk, lambda client: client.health())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "use"),
    [
        (b" " * 1_000_000, lambda client: client.health()),
        (b"data: " + b"x" * 1_000_000, lambda client: client.ask("kite", QUESTION).read()),
        (b"data: x\n" * 100_000, lambda client: next(client.follow_job("p", "j"))),
    ],
)
async def test_answer_without_an_end_is_unexpected(sdk, piece, use):
    async def write(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()

    server = await asyncio.start_server(write, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        with sdk.Docsmith(url) as client, pytest.raises(sdk.UnexpectedAnswer):
            await asyncio.to_thread(use, client)


async def test_long_answer_is_not_read(sdk):
    long = Scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    with pytest.raises(sdk.UnexpectedAnswer):
        await long.run(sdk, lambda client: client.health())


@pytest.mark.parametrize("event", ["<html>", "[]", '{"type": "finish", "messageMetadata": 1}', "[" * 100_000])
async def test_event_of_another_server_is_unexpected(sdk, event):
    with pytest.raises(sdk.UnexpectedAnswer):
        await Scripted(chunked(event, ends=True)).run(sdk, lambda client: client.ask("kite", QUESTION).read())
    with pytest.raises(sdk.DocsmithError):
        await Scripted(chunked(event, ends=True), HEALTH).run(sdk, lambda client: list(client.follow_job("p", "j")))


async def test_redirect_is_not_followed(sdk):
    elsewhere = Scripted(answer(b"302 Found", b"", b"Location: http://127.0.0.1:9/\r\n"))
    with pytest.raises(sdk.ApiError) as refused:
        await elsewhere.run(sdk, lambda client: client.health())
    assert refused.value.status == 302


def test_key_is_taken_from_a_file_and_in_no_error(sdk):
    sdk.Docsmith("http://127.0.0.1:9", "docsmith_secret\n")
    with pytest.raises(ValueError, match="characters that no key has") as refused:
        sdk.Docsmith("http://127.0.0.1:9", "docsmith_secret\nX-Other: y")
    assert "secret" not in str(refused.value)


async def test_requests_go_through_the_proxy_that_is_named(sdk, monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    proxy = Scripted(HEALTH)

    def use(client):
        monkeypatch.setenv("http_proxy", client._url.replace("//", "//name:word@"))
        with sdk.Docsmith("http://docs.example") as client:
            return client.health()

    assert (await proxy.run(sdk, use)).status == "ok"
    assert proxy.requests[0].startswith("GET http://docs.example:80/healthz HTTP/1.1")
    assert "Proxy-Authorization: Basic bmFtZTp3b3Jk" in proxy.requests[0]


def chunked(*events, ends):
    stream = "".join(f"data: {one}\n\n" for one in events).encode()
    head = (
        b"HTTP/1.1 200 OK\r\nX-Message-Id: m\r\nX-Thread-Id: t\r\nX-Thread-Key: k\r\n"
        b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"%x\r\n%s\r\n" % (len(stream), stream) + (b"0\r\n\r\n" if ends else b"")


def delta(text):
    return f'{{"type": "text-delta", "id": "1", "delta": "{text}"}}'


async def test_broken_answer_goes_on_without_a_gap(sdk):
    server = Scripted(
        chunked(delta("Run "), delta("the in"), ends=False),
        chunked(delta("Run the "), ends=False),
        b"HTTP/1.1 204 No Content\r\n\r\n",
        chunked(delta("Run the installer."), "[DONE]", ends=True),
    )
    text = await server.run(sdk, lambda client: list(client.ask("kite", QUESTION)))
    assert text == ["Run ", "the in", "staller."]
    assert [one.partition(" ")[0] for one in server.requests] == ["POST", "GET", "GET", "POST"]
    assert "X-Thread-Key: k" in server.requests[1]


async def test_failed_answer_is_an_error(sdk):
    server = Scripted(chunked(delta("Run "), '{"type": "error", "errorText": "It broke."}', ends=True))
    with pytest.raises(sdk.AnswerFailed, match=r"It broke\."):
        await server.run(sdk, lambda client: client.ask("kite", QUESTION).read())


@pytest.mark.slow
async def test_answer_outlasts_a_kill_of_the_service(sdk, tmp_path):
    """The service is killed while it writes, and starts again at the same address."""
    texts, provider_port = ("Fetch the kite, ", "hold the ", "string."), free_port()
    async with ScriptedProvider(port=provider_port) as provider:
        with scripted_service(tmp_path, provider_port, THREADS__GRACE_SECONDS="600") as service:
            provider.will_reply(*texts, after=2, hold=asyncio.Event())
            async with sdk.AsyncDocsmith(service.url, service.assistant_key, retries=10) as client:
                answer = await client.ask(service.domain, QUESTION)
                parts = aiter(answer)
                text = ""
                while "hold the" not in text:
                    text += await anext(parts)
                await recorded(service, f"thread-{answer.answer.thread_id}", until="reply-written")
                provider.will_reply("".join(texts).removeprefix("Fetch the "))
                await asyncio.to_thread(service.kill)
                await asyncio.to_thread(service.start, "--port", service.url.rpartition(":")[2])
                text += "".join([part async for part in parts])
    assert text == "".join(texts)


PROGRAM = """\
from docsmith_client import AsyncDocsmith, Docsmith, Job, pages

def run(docsmith: Docsmith) -> str | None:
    job = docsmith.create_job("project", prompt="Fix it", as_draft=True)
    for page in pages(docsmith.list_jobs, "project", status="active"):
        found: list[Job] = page.jobs
    return docsmith.wait_for_job("project", job.id).pr_link

async def ask(docsmith: AsyncDocsmith) -> str:
    async with await docsmith.ask("guide", "How?") as answer:
        async for text in answer:
            print(text.upper())
    results = await docsmith.search("guide", query="How?", page_size=3)
    return results[0].metadata.title
"""
WRONG = 'from docsmith_client import Docsmith\nDocsmith("").create_job("p", promt="x")\n'


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.13"])
def test_types_hold_in_a_strict_program(tmp_path, version):
    (tmp_path / "docsmith_client.py").write_bytes(CLIENT.read_bytes())
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--python-version={version}", "--no-incremental"]

    def check(*files):
        return subprocess.run(
            [*mypy, *files], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
        )

    done = check("program.py", "docsmith_client.py")
    assert done.returncode == 0, done.stdout
    assert "call-arg" in check("wrong.py").stdout


def test_client_needs_only_the_standard_library():
    imported = set(re.findall(r"^(?:from|import) (\w+)", CLIENT.read_text(), re.MULTILINE))
    assert imported <= sys.stdlib_module_names
    assert Path(CLIENT).name == "docsmith_client.py"


@pytest.mark.slow
def test_programs_of_the_manual_run(service, tmp_path):
    text = (CLIENT.parent.parent / "manual" / "clients.md").read_text(encoding="utf-8")
    names = {
        "http://localhost:8080": service.url,
        "ADMIN_KEY": service.admin_key,
        "ASSISTANT_KEY": service.assistant_key,
        "PROJECT_ID": service.project_id,
        '"guide"': f'"{service.domain}"',
    }
    (tmp_path / "docsmith_client.py").write_bytes(CLIENT.read_bytes())
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert programs
    for program in programs:
        for name, value in names.items():
            program = program.replace(name, value)
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout
