"""Running services whose model says what a test has it say."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.end_to_end.talk import chunks, message_url
from tests.fakes.provider import Asked, ScriptedProvider
from tests.service_process import Service, service_in, write_docs


@contextmanager
def scripted_service(folder: Path, provider_port: int, **settings: str) -> Iterator[Service]:
    """A service that asks a provider which may come to that port later; ``settings`` by their names below DOCSMITH_."""
    with service_in(folder, scripted_settings(provider_port, **settings)) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


def scripted_settings(provider_port: int, **settings: str) -> dict[str, str]:
    """The variables of such a service."""
    return {
        "DOCSMITH_ASSISTANT__MODEL": "scripted",
        "DOCSMITH_ASSISTANT__PLANNER": "off",  # else a plan takes the reply that a test has scripted
        "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
        "DOCSMITH_MODELS__SCRIPTED__MODEL": "openai/gpt-5.2",
        "DOCSMITH_MODELS__SCRIPTED__API_BASE": f"http://127.0.0.1:{provider_port}/v1",
        "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
        "SCRIPTED_KEY": "sk-scripted",
        **{f"DOCSMITH_{name}": value for name, value in settings.items()},
    }


class Reading:
    """A reply while it is read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._raw = b""

    @property
    def thread_id(self) -> str:
        return self.response.headers["X-Thread-Id"]

    @property
    def found(self) -> list[dict[str, Any]]:
        """The whole chunks so far."""
        return chunks(self._raw[: self._raw.rfind(b"\n\n") + 2].decode() + "\n")

    async def until(self, text: str) -> None:
        """Read up to where a text has come."""
        async with asyncio.timeout(60):
            while text.encode() not in self._raw:
                piece = await self.response.content.readany()
                assert piece, self._raw
                self._raw += piece

    async def rest(self) -> list[dict[str, Any]]:
        """Read to the end; all chunks from the start."""
        async with asyncio.timeout(60):
            self._raw += await self.response.content.read()
        assert self._raw.endswith(b"data: [DONE]\n\n")
        return self.found

    def leave(self) -> None:
        """As a connection that breaks."""
        self.response.close()


@asynccontextmanager
async def asking(
    http: aiohttp.ClientSession, service: Service, body: dict[str, Any], **headers: str
) -> AsyncIterator[Reading]:
    async with http.post(message_url(service), json=body, headers={**service.assistant, **headers}) as response:
        assert response.status == 200, await response.text()
        yield Reading(response)


async def next_asked(provider: ScriptedProvider) -> Asked:
    async with asyncio.timeout(60):
        return await provider.next_asked()


def prompt(asked: Asked) -> str:
    """All that the model was told, as one text."""
    return json.dumps(asked.body["messages"], ensure_ascii=False)
