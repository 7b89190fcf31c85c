"""Speaking to a running service as its callers do."""

import asyncio
import json
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import aiohttp

from eventstore import RecordedEvent, StoredEvent
from tests.service_process import Service


def question(text: str, **more: Any) -> dict[str, Any]:
    message = {"id": "q1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"fp": "anonymous", "messages": [message], **more}


def message_url(service: Service, version: int = 2) -> str:
    return f"{service.url}/discovery/v{version}/assistant/{service.domain}/message"


async def ask(
    http: aiohttp.ClientSession, service: Service, body: dict[str, Any], **headers: str
) -> list[dict[str, Any]]:
    """The chunks of a v2 reply, as a reader of server-sent events gets them, and the answer's headers as the first."""
    async with http.post(message_url(service), json=body, headers={**service.assistant, **headers}) as response:
        assert response.status == 200, await response.text()
        text = await response.text()
        return [{"type": "headers", **dict(response.headers)}, *chunks(text)]


def chunks(stream: str) -> list[dict[str, Any]]:
    """By the specification: lines end with CR, LF or both; a blank line ends an event; its data lines are joined."""
    found, data = [], []
    for line in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line == "" and data:
            joined = "\n".join(data)
            if joined != "[DONE]":
                found.append(json.loads(joined))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    return found


def text_of(found: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in found if chunk["type"] == "text-delta")


async def create_job(http: aiohttp.ClientSession, service: Service, prompt: str) -> dict[str, Any]:
    url = f"{service.url}/v2/agent/{service.project_id}/job"
    async with http.post(url, json={"prompt": prompt}, headers=service.admin) as response:
        assert response.status == 201, await response.text()
        job: dict[str, Any] = await response.json()
        assert response.headers["Location"] == f"/v2/agent/{service.project_id}/job/{job['id']}"
        return job


async def get_job(http: aiohttp.ClientSession, service: Service, job_id: str) -> dict[str, Any]:
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job_id}"
    async with http.get(url, headers=service.admin) as response:
        assert response.status == 200, await response.text()
        job: dict[str, Any] = await response.json()
        return job


async def job_events(
    http: aiohttp.ClientSession, service: Service, job_id: str, *, until: str = ""
) -> list[dict[str, Any]]:
    """The events of a job up to its end, or to the first one of a type."""
    url = f"{service.url}/v2/agent/{service.project_id}/job/{job_id}/events"
    found: list[dict[str, Any]] = []
    async with http.get(url, headers=service.admin) as response:
        assert response.status == 200
        async for line in response.content:
            if line.startswith(b"data:"):
                found.append(json.loads(line[5:]))
                if found[-1]["type"] == until:
                    return found
    return found


def head(service: Service) -> int:
    """The log's last position; the chain is checked on the way."""
    found = service.place.verify()
    assert found.is_sound
    return found.position


async def recorded(service: Service, stream: str, *, until: str, after: int = 0, seconds: float = 60) -> list[str]:
    """The types of a stream's events in the log, read beside the server, up to the first of a type."""
    types = []
    store = await service.place.open(read_only=True)
    async with asyncio.timeout(seconds), aclosing(store.subscribe(stream=stream, after=after)) as events:
        async for event in events:
            types.append(event.type)
            if event.type == until:
                break
    await store.close()
    return types


async def events_in(service: Service, stream: str) -> list[RecordedEvent]:
    """A stream's events in the log, read beside the server."""
    async with await service.place.open(read_only=True) as store:
        return list(await store.read_stream(stream))


def stored(service: Service) -> list[StoredEvent]:
    """All of the log, byte for byte."""
    return list(service.place.stored_events(range(1, head(service) + 1)))


def trace(service: Service) -> int:
    """How many events there are, but for that a key was used, which is noted once an hour and a moment later."""
    return sum(event.type != "key-used" for event in stored(service))


async def words_gone(word: bytes, service: Service) -> None:
    """Wait until no file of the service has a word. One instance has seen to that when a command returns; the others
    of several do so a moment later.
    """
    if len(service.each) == 1:
        assert files_with(word, *service.folders) == []
        return
    async with asyncio.timeout(60):
        while await asyncio.to_thread(files_with, word, *service.folders):  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)


def files_with(word: bytes, *folders: Path) -> list[str]:
    """By their bytes, whatever the case: those of WAL and free pages, too. The service may delete some meanwhile."""
    found = []
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            with suppress(FileNotFoundError):
                if file.is_file() and word.lower() in file.read_bytes().lower():
                    found.append(str(file.relative_to(folder.parent)))
    return found
