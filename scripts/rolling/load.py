"""Load while instances are replaced: reads, questions, jobs and their live events. What was acknowledged is looked for
at the end.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp

from tests.end_to_end.talk import chunks, question, text_of
from tests.service_process import Service

READERS, ASKERS = 4, 2
PAUSE = 0.05
JOB_PAUSE = 1.0
END_SECONDS = 180.0
"""For a job to end after the last replacement."""
ENDED = frozenset({"job-completed", "job-failed"})


class Load:
    def __init__(self, http: aiohttp.ClientSession, service: Service, url: str) -> None:
        self._http, self._service, self._url = http, service, url
        self.done: Counter[str] = Counter()
        """Requests that were answered as they should be, by kind."""
        self.refused: Counter[str] = Counter()
        """The others, by kind and what came instead."""
        self.threads: dict[str, str] = {}
        """By id, the answer that was read to its end."""
        self.jobs: list[str] = []
        self.followed: dict[str, list[str]] = {}
        """By job, the ids of the events that came, in order, over however many connections."""
        self.reconnects = 0
        self._ending = asyncio.Event()

    async def until_indexed(self, url: str) -> None:
        """Wait until an instance whose folder is new has fetched the index from another one."""
        while True:
            async with self._http.get(f"{url}{self._search_path()}", headers=self._service.admin) as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(PAUSE)

    def _search_path(self) -> str:
        return f"/v2/sites/{self._service.domain}/search?query=install"

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Load the instances until the work is done, and follow each job to its end."""
        async with asyncio.TaskGroup() as group:
            for number in range(READERS):
                group.create_task(self._again(lambda number=number: self._read(number), PAUSE))  # type: ignore[misc]
            for _ in range(ASKERS):
                group.create_task(self._again(self._ask, PAUSE))
            group.create_task(self._again(lambda: self._give_job(group), JOB_PAUSE))
            try:
                await work()
            finally:
                self._ending.set()

    async def _again(self, once: Callable[[], Awaitable[None]], pause: float) -> None:
        while not self._ending.is_set():
            await once()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)

    async def _answered(self, kind: str, method: str, path: str, wanted: int, **more: Any) -> str | None:
        """Return the body, and count it; None where the answer was another one."""
        try:
            async with self._http.request(method, self._url + path, **more) as answer:
                body = await answer.text()
                if answer.status == wanted:
                    return body
                self.refused[f"{kind}: {answer.status} {_code(body)}"] += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            self.refused[f"{kind}: {type(error).__name__}"] += 1
        return None

    async def _read(self, number: int) -> None:
        service = self._service
        paths = (
            (f"/v2/agent/{service.project_id}/jobs", service.admin),
            (self._search_path(), service.admin),
            ("/healthz", {}),
            (f"/v2/sites/{service.domain}", service.admin),
        )
        path, headers = paths[number % len(paths)]
        if await self._answered("read", "GET", path, 200, headers=headers) is not None:
            self.done["read"] += 1

    async def _ask(self) -> None:
        service = self._service
        path = f"/discovery/v2/assistant/{service.domain}/message"
        body = question("How do I install Kite?")
        text = await self._answered("question", "POST", path, 200, json=body, headers=service.assistant)
        if text is None:
            return
        found = chunks(text)
        errors = [one for one in found if one["type"] == "error"]
        if errors or not text.endswith("data: [DONE]\n\n"):
            self.refused[f"question: {errors[:1] or 'cut'}"] += 1
            return
        start = next(one for one in found if one["type"] == "start")
        self.threads[start["messageMetadata"]["threadId"]] = text_of(found)
        self.done["question"] += 1

    async def _give_job(self, group: asyncio.TaskGroup) -> None:
        service, name = self._service, f"page-{len(self.jobs)}"
        prompt = f'Create page {name}.md with title "Page" and text "This is {name}."'
        path = f"/v2/agent/{service.project_id}/job"
        body = await self._answered("job", "POST", path, 201, json={"prompt": prompt}, headers=service.admin)
        if body is not None:
            self.jobs.append(json.loads(body)["id"])
            self.done["job"] += 1
            group.create_task(self._follow(self.jobs[-1]))

    async def _follow(self, job_id: str) -> None:
        """Follow the events of a job to its end, over new connections where one ends before."""
        service, ids = self._service, self.followed.setdefault(job_id, [])
        url = f"{self._url}/v2/agent/{service.project_id}/job/{job_id}/events"
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while True:
                    headers = {**service.admin, **({"Last-Event-ID": ids[-1]} if ids else {})}
                    try:
                        async with self._http.get(url, headers=headers) as answer:
                            if answer.status == 200 and await _ended(answer.content, ids):
                                return
                            if answer.status != 200:
                                self.refused[f"events: {answer.status}"] += 1
                    except (aiohttp.ClientError, TimeoutError) as error:
                        self.refused[f"events: {type(error).__name__}"] += 1
                    self.reconnects += 1
                    await asyncio.sleep(PAUSE)
        self.refused[f"events: no end of job {job_id} within {END_SECONDS:g} s"] += 1

    async def lost(self) -> list[str]:
        """Return what is missing of all that was acknowledged, or is there twice."""
        found = []
        for thread, text in self.threads.items():
            body = await self._answered("thread", "GET", f"/v2/threads/{thread}", 200, headers=self._service.admin)
            if body is None or not _has_text(json.loads(body), text):
                found.append(f"the answer of thread {thread}")
        for job_id in self.jobs:
            path = f"/v2/agent/{self._service.project_id}/job/{job_id}"
            body = await self._answered("job", "GET", path, 200, headers=self._service.admin)
            job = json.loads(body) if body is not None else {"status": "not found"}
            if job["status"] != "completed" or not job["prLink"]:
                found.append(f"job {job_id}: it is {job['status']} {job.get('failure') or ''}")
            ids = [int(one) for one in self.followed.get(job_id, ())]
            if ids != sorted(set(ids)):
                found.append(f"job {job_id}: its events came as {ids}")
        return found


def _code(body: str) -> str:
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(body)["code"])
    return ""


def _has_text(value: object, text: str) -> bool:
    if isinstance(value, str):
        return value == text
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_has_text(one, text) for one in inside)


async def _ended(content: aiohttp.StreamReader, ids: list[str]) -> bool:
    """Read events, whose ids are added, until the job or the stream has ended; return whether it was the job."""
    async for line in content:
        if line.startswith(b"id:"):
            ids.append(line[3:].strip().decode())
        elif line.startswith(b"data:") and line[5:].strip() != b"[DONE]" and json.loads(line[5:])["type"] in ENDED:
            return True
    return False
