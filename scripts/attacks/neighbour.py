"""B, who has done nothing: its requests, one of each kind after the other, and how long each takes."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp

from scripts.attacks.git import files_push
from scripts.attacks.ground import Tenant
from tests.service_process import DOCS

REQUEST_SECONDS = 60.0
"""After which a request counts as failed."""
PAUSES = {"healthz": 0.02, "search": 0.2, "reply": 0.2, "ls-remote": 0.2, "job": 0.5, "push": 1.0}
"""Between two requests of a kind, in seconds. Searches stay below the limit of a key."""


class Neighbour:
    def __init__(self, url: str, tenant: Tenant) -> None:
        self._url, self._tenant = url, tenant
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failures: Counter[str] = Counter()
        self.readiness: Counter[str] = Counter()
        self._words = 0

    @property
    def kinds(self) -> dict[str, Callable[[aiohttp.ClientSession], Awaitable[None]]]:
        return {
            "healthz": self._healthz,
            "search": self._search,
            "reply": self._reply,
            "ls-remote": self._ls_remote,
            "job": self._job,
            "push": self._push,
        }

    async def once(self) -> None:
        """One request of each kind."""
        async with self._session() as http:
            for kind in self.kinds:
                await self._measured(kind, http)

    async def run(self, seconds: float) -> None:
        """All kinds at the same time, for so long."""
        ends = time.monotonic() + seconds
        async with self._session() as http:
            await asyncio.gather(*(self._again(kind, http, ends) for kind in self.kinds), self._look(http, ends))

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS))

    async def _again(self, kind: str, http: aiohttp.ClientSession, ends: float) -> None:
        while time.monotonic() < ends:
            await self._measured(kind, http)
            await asyncio.sleep(PAUSES[kind])

    async def _measured(self, kind: str, http: aiohttp.ClientSession) -> None:
        begun = time.monotonic()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self.kinds[kind](http)
        except (aiohttp.ClientError, TimeoutError, OSError, Unexpected) as error:
            self.failures[f"{kind}: {error or type(error).__name__}"[:200]] += 1
        self.seconds[kind].append(time.monotonic() - begun)

    async def _look(self, http: aiohttp.ClientSession, ends: float) -> None:
        while time.monotonic() < ends:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with http.get(f"{self._url}/readyz") as response:
                    reasons = (await response.json())["reasons"]
                    self.readiness["; ".join(sorted(reasons)) or "ready"] += 1
            await asyncio.sleep(1)

    async def _healthz(self, http: aiohttp.ClientSession) -> None:
        async with http.get(f"{self._url}/healthz") as response:
            _expect(response, 200)
            await response.read()

    async def _search(self, http: aiohttp.ClientSession) -> None:
        if not await self._found(http, "How long is the delay between two tries?"):
            raise Unexpected("nothing found")

    async def _found(self, http: aiohttp.ClientSession, query: str) -> list[str]:
        url = f"{self._url}/discovery/v1/search/{self._tenant.domain}"
        async with http.post(url, json={"query": query}, headers=self._tenant.assistant) as response:
            _expect(response, 200)
            return [one["content"] for one in await response.json()]

    async def _reply(self, http: aiohttp.ClientSession) -> None:
        message = {"role": "user", "parts": [{"type": "text", "text": "How do I install Kite?"}]}
        url = f"{self._url}/discovery/v2/assistant/{self._tenant.domain}/message"
        body = {"fp": "anonymous", "messages": [message]}
        async with http.post(url, json=body, headers=self._tenant.assistant) as response:
            _expect(response, 200)
            text = await response.text()
        if "[DONE]" not in text or '"type":"error"' in text:
            raise Unexpected(text[-200:])

    async def _ls_remote(self, http: aiohttp.ClientSession) -> None:
        await self._main(http, "git-upload-pack")

    async def _main(self, http: aiohttp.ClientSession, service: str) -> bytes:
        """The commit of the branch, as ``git ls-remote`` asks for it."""
        url = f"{self._url}/hosted/{self._tenant.project_id}.git/info/refs"
        async with http.get(url, params={"service": service}, headers=self._tenant.git) as response:
            _expect(response, 200)
            for line in (await response.read()).splitlines():
                if b" refs/heads/main" in line:
                    return line.partition(b" refs/heads/main")[0][-40:]
        raise Unexpected("no branch main")

    async def _job(self, http: aiohttp.ClientSession) -> None:
        url = f"{self._url}/v2/agent/{self._tenant.project_id}/job"
        body = {"prompt": 'Replace "no such words" with "others" in index.md'}
        async with http.post(url, json=body, headers=self._tenant.admin) as response:
            _expect(response, 201)
            job = (await response.json())["id"]
        async with http.get(f"{url}/{job}?wait=60", headers=self._tenant.admin) as response:
            _expect(response, 200)
            status = (await response.json())["status"]
        if status != "completed":
            raise Unexpected(f"job {status}")

    async def _push(self, http: aiohttp.ClientSession) -> None:
        """Push a page with a new word, and wait until it is found."""
        self._words += 1
        word = f"zephyr{self._words}q{time.monotonic_ns() % 1_000_000}"
        files = {name: text.encode() for name, text in DOCS.items()}
        files["retry.md"] += f"\nThe word of the day is {word}.\n".encode()
        _, body = files_push(files, await self._main(http, "git-receive-pack"))
        url = f"{self._url}/hosted/{self._tenant.project_id}.git/git-receive-pack"
        headers = {**self._tenant.git, "Content-Type": "application/x-git-receive-pack-request"}
        async with http.post(url, data=body, headers=headers) as response:
            _expect(response, 200)
            answer = await response.read()
        if b"ok refs/heads/main" not in answer:
            raise Unexpected(f"push: {answer[:100]!r}")
        while True:
            if any(word in text for text in await self._found(http, word)):
                return
            await asyncio.sleep(0.25)


class Unexpected(Exception):
    """An answer that B should not get."""


def _expect(response: aiohttp.ClientResponse, status: int) -> None:
    if response.status != status:
        raise Unexpected(f"{response.url.path} {response.status}")


def percentile(values: list[float], share: float) -> float:
    found = sorted(values)
    return found[min(len(found) - 1, int(share * len(found)))] if found else 0.0
