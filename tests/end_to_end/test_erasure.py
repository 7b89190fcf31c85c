"""Erasing what people typed: from the log, the read models, the running service's memory, and from old backups."""

import asyncio
import shutil

import aiohttp
import pytest

from eventstore import FilePlace, LogPlace
from tests.end_to_end.talk import (
    ask,
    create_job,
    files_with,
    get_job,
    job_events,
    message_url,
    question,
    text_of,
    words_gone,
)
from tests.service_process import service_in, write_docs

WORD = b"ermentrude"
"""Stands in what people typed and nowhere else."""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("erasure")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


async def types_of(place: LogPlace, stream: str) -> dict[str, bool]:
    """Of each type in a stream, whether its personal fields can be read."""
    async with await place.open(read_only=True) as store:
        return {event.type: not event.erased for event in await store.read_stream(stream)}


async def test_nothing_that_was_typed_into_a_thread_is_left(http, service, tmp_path):
    text = "How do I install Kite for my aunt Ermentrude?"
    found = await ask(http, service, question(text, fp="fp-of-Ermentrude", currentPath="/ermentrude"))
    thread_id = found[0]["X-Thread-Id"]
    stream = f"thread-{thread_id}"
    before = tmp_path / "before"
    if service.place.is_local:
        shutil.copytree(service.data, before, ignore=shutil.ignore_patterns("keys.db*", "server.lock"))

    asked = service.run("audit", "erase", "--fp", "fp-of-Ermentrude")
    assert (asked.returncode, stream in asked.stdout) == (2, True)
    assert (await types_of(service.place, stream))["message-posted"]
    (erased,) = service.cli("audit", "erase", "--fp", "fp-of-Ermentrude", "--yes")["erased"]
    assert (erased["subject"], erased["again"]) == (stream, False)

    await words_gone(WORD, service)
    assert service.cli("audit", "verify")["sound"]
    assert set((await types_of(service.place, stream)).items()) >= {
        ("message-posted", False),
        ("thread-started", False),
    }
    (recorded,) = service.cli("audit", "show", "--stream", f"erasure-{stream}")["events"]
    assert recorded["actor"].startswith("cli:")
    assert service.run("audit", "erase", "--fp", "fp-of-Ermentrude", "--yes").returncode == 1

    if service.place.is_local:
        for file in service.data.glob("keys.db*"):  # a backup of the log, from before, with today's vault
            shutil.copy(file, before)
        of_before = FilePlace(before / "events.db", before / "keys.db")
        assert not (await types_of(of_before, stream))["message-posted"]

    for fp in ("fp-of-Ermentrude", "anonymous", "[erased]"):
        body = question("And on Windows?", threadId=thread_id, fp=fp)
        async with http.post(message_url(service), json=body, headers=service.assistant) as response:
            assert (response.status, (await response.json())["code"]) == (404, "thread_not_found")


async def test_erased_job_reveals_nothing_of_its_instruction(http, service):
    job = await create_job(http, service, "Ask Ermentrude to dance")
    await job_events(http, service, job["id"])
    assert "Ermentrude" in (await get_job(http, service, job["id"]))["title"]
    assert files_with(WORD, *service.folders) != []
    (erased,) = service.cli("audit", "erase", f"job-{job['id']}", "--yes")["erased"]
    assert erased["kept"] == []
    async with asyncio.timeout(60):  # the service looks at what other processes have done every 25 ms
        while (shown := await get_job(http, service, job["id"]))["title"] != "[erased]":  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    assert (shown["title"], shown["branch"], shown["status"]) == ("[erased]", "[erased]", "completed")
    assert "ermentrude" not in str(await job_events(http, service, job["id"])).lower()
    await words_gone(WORD, service)
    assert service.cli("audit", "erase", f"job-{job['id']}", "--yes")["erased"][0]["again"]


async def test_erasing_a_job_names_what_it_did_to_the_repository(http, service):
    job = await create_job(http, service, 'Append "Kites rise." to index.md')
    await job_events(http, service, job["id"])
    (erased,) = service.cli("audit", "erase", f"job-{job['id']}", "--yes")["erased"]
    assert [one.split()[0] for one in erased["kept"]] == ["changed", "commit", "branch", "pull"]


async def test_a_reply_under_way_ends_and_the_service_goes_on(service):
    async with aiohttp.ClientSession() as http:
        body = question("How do I install Kite for my aunt Ermentrude?")
        async with http.post(message_url(service), json=body, headers=service.assistant) as response:
            stream = f"thread-{response.headers['X-Thread-Id']}"
            service.cli("audit", "erase", stream, "--yes")
            await response.text()
        await words_gone(WORD, service)
        found = await ask(http, service, question("How do I install Kite?"))
        assert "installer" in text_of(found)
        async with http.get(f"{service.url}/readyz") as response:
            assert response.status == 200, await response.text()


def test_unknown_subject_cannot_be_erased(service):
    for subject in ("thread-nothing", "job-", "project-1", "nothing"):
        done = service.run("audit", "erase", subject, "--yes")
        assert (done.returncode, "Not found" in done.stderr) == (1, True)
    assert service.run("audit", "erase", "--yes").returncode == 2
    assert service.run("audit", "erase", "--fp", "anonymous", "--yes").returncode == 1


async def test_a_vault_that_was_put_back_forgets_again(http, service, tmp_path):
    found = await ask(http, service, question("Where does Ermentrude live?"))
    stream = f"thread-{found[0]['X-Thread-Id']}"
    service.stop()
    shutil.copy(service.data / "keys.db", tmp_path)
    service.cli("audit", "erase", stream, "--yes")
    shutil.copy(tmp_path / "keys.db", service.data)
    assert (await types_of(service.place, stream))["message-posted"]
    service.start()
    service.stop()
    assert not (await types_of(service.place, stream))["message-posted"]
