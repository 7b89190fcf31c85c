"""A model provider on this machine that says what a script tells it to.

It speaks OpenAI's chat completions and responses (``provider.openai_base``), also at Azure's address, Anthropic's
messages and Gemini's generated content (``provider.url``), event for event as the real ones do, so that everything up
to the socket is tested::

    async with ScriptedProvider() as provider:
        provider.will_reply("Hel", "lo")
        provider.will_fail(429, headers={"retry-after": "3"})

Replies are given in order; when the script is empty, ``answer`` is asked. As a process of its own it answers whatever
it is asked, for end-to-end tests: ``python -m tests.fakes.provider --port 0 --chunks 40 --delay-ms 20``, which prints
``listening on http://127.0.0.1:PORT`` first.
"""

import argparse
import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

from tests.fakes.provider_protocols import EVENTS, WHOLE, Call, Failure, Protocol, Reply, data, event, failed, headers

__all__ = ["Asked", "Call", "Failure", "Reply", "ScriptedProvider", "answering", "plausible"]


class Asked:
    """A request as it came."""

    def __init__(self, protocol: Protocol, request: web.Request, body: dict[str, Any]) -> None:
        self.protocol = protocol
        self.path = request.path
        self.query = dict(request.query)
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        self.body = body
        self.peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        """The client's end of the connection."""
        self.disconnected = asyncio.Event()
        self.disconnected_at: float | None = None
        """``time.monotonic()`` when the client went away before the end."""
        self.finished = asyncio.Event()

    def left(self) -> None:
        self.disconnected_at = time.monotonic()
        self.disconnected.set()

    @property
    def key(self) -> str:
        """The key that came with it."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        names = ("x-api-key", "api-key", "x-goog-api-key")
        return next((self.headers[name] for name in names if name in self.headers), bearer)


def plausible(asked: Asked) -> Reply:
    """The last question said back, in words; what the standalone process answers."""
    question = _last_text(asked.body)
    words = f"You asked: {question.strip()[:400]} The documentation answers this in its first section [1].".split(" ")
    return Reply((*(f"{word} " for word in words[:-1]), words[-1]), input_tokens=200, output_tokens=len(words))


def _last_text(body: dict[str, Any]) -> str:
    for message in reversed(body.get("messages") or body.get("input") or []):
        content = message.get("content")
        if message.get("role") == "user":
            if isinstance(content, str):
                return content
            return " ".join(part.get("text", "") for part in content or [] if isinstance(part, dict))
    return ""


class ScriptedProvider:
    def __init__(self, answer: Callable[[Asked], Reply | Failure] | None = None, *, port: int = 0) -> None:
        self._answer = answer or (lambda _asked: Failure(400, "invalid_request_error", "nothing is scripted"))
        self._script: list[Reply | Failure] = []
        self._numbers = itertools.count(1)
        self.asked: list[Asked] = []
        self._arrivals: asyncio.Queue[Asked] = asyncio.Queue()
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_base(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_base(self) -> str:
        return self.url

    def will_reply(self, *texts: str, calls: tuple[Call, ...] = (), **more: Any) -> None:
        """``more`` are the other fields of ``Reply``."""
        self._script.append(Reply(texts, calls, **more))

    def will_fail(self, status: int, type: str = "api_error", message: str = "scripted failure", **more: Any) -> None:  # noqa: A002
        """``more`` are the other fields of ``Failure``."""
        self._script.append(Failure(status, type, message, **more))

    def will(self, *answers: Reply | Failure) -> None:
        """Answer so next, in this order."""
        self._script.extend(answers)

    async def next_asked(self) -> Asked:
        """The next request that has not been taken yet, as soon as it is there."""
        return await self._arrivals.get()

    async def __aenter__(self) -> "ScriptedProvider":
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._openai)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_post("/openai/deployments/{deployment}/chat/completions", self._openai)
        app.router.add_post("/models/{model}:streamGenerateContent", self._gemini)
        app.router.add_post("/api/chat", self._openai)  # Ollama's: the same
        app.router.add_post("/api/show", self._ollama_model)
        app.router.add_post("/model/{model}/converse-stream", self._openai)  # Bedrock's: only failures can be scripted
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("openai", request)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("responses", request)

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("anthropic", request)

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        return await self._serve("gemini", request)

    async def _ollama_model(self, _request: web.Request) -> web.Response:
        return web.json_response({"model_info": {"general.context_length": 16_384}, "template": "{{ .Tools }}"})

    async def _serve(self, protocol: Protocol, request: web.Request) -> web.StreamResponse:
        asked = Asked(protocol, request, await request.json())
        self.asked.append(asked)
        self._arrivals.put_nowait(asked)
        reply = self._script.pop(0) if self._script else self._answer(asked)
        number = next(self._numbers)
        try:
            if isinstance(reply, Failure):
                return failed(protocol, reply, number)
            if reply.after == -1:
                await self._happen(asked, reply, request, None)
            if asked.body.get("stream") or protocol == "gemini":
                return await self._stream(asked, reply, request, number)
            return web.json_response(WHOLE[protocol](asked, reply, number), headers=headers(protocol, number))
        except asyncio.CancelledError:
            asked.left()
            raise
        except ConnectionError:
            asked.left()
            return web.Response()  # to nobody
        finally:
            asked.finished.set()

    async def _stream(self, asked: Asked, reply: Reply, request: web.Request, number: int) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                **headers(asked.protocol, number),
            }
        )
        await response.prepare(request)
        events = EVENTS[asked.protocol](asked, reply, number)
        texts = 0
        if reply.after == 0 and not await self._happen(asked, reply, request, response):
            return response
        for sent, is_text in events:
            if is_text and reply.delay_seconds:
                await asyncio.sleep(reply.delay_seconds)
            await response.write(sent)
            texts += is_text
            if is_text and texts == reply.after and not await self._happen(asked, reply, request, response):
                return response
        await response.write_eof()
        return response

    async def _happen(
        self, asked: Asked, reply: Reply, request: web.Request, response: web.StreamResponse | None
    ) -> bool:
        """What the script has happen in the middle of a reply. Whether the reply goes on."""
        if reply.hold is not None:
            await reply.hold.wait()
        if reply.raw and response is not None:
            await response.write(reply.raw)
        if reply.error and response is not None:
            error = {"type": reply.error, "message": "scripted failure"}
            if asked.protocol == "responses":
                await response.write(event("error", {**error, "code": reply.error, "param": None}))
            elif asked.protocol == "anthropic":
                await response.write(event("error", {"error": error}))
            else:
                await response.write(data({"error": {**error, "code": reply.error, "param": None}}))
            await response.write_eof()
            return False
        if reply.cut:
            if request.transport is not None:
                request.transport.abort()
            return False
        return True


@contextlib.asynccontextmanager
async def answering(*, port: int, chunks: int, delay_seconds: float) -> AsyncIterator[ScriptedProvider]:
    """A provider that answers everything, in about so many pieces."""

    def answer(asked: Asked) -> Reply:
        reply = plausible(asked)
        texts = itertools.islice(itertools.cycle(reply.texts), chunks) if chunks else reply.texts
        return Reply(tuple(texts), input_tokens=reply.input_tokens, output_tokens=chunks, delay_seconds=delay_seconds)

    async with ScriptedProvider(answer, port=port) as provider:
        yield provider


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A model provider that answers everything.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=0, help="pieces of an answer; 0: one for each word")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="before each piece")
    options = parser.parse_args()
    async with answering(port=options.port, chunks=options.chunks, delay_seconds=options.delay_ms / 1000) as provider:
        print(f"listening on {provider.url}", flush=True)  # noqa: T201  whoever starts it needs the port
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
