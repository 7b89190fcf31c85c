"""Where the pieces of a model's reply come from: the provider's stream itself, or litellm's reader of it."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Protocol

import aiohttp

from service.adapters.models.errors import address_of, answered_with_page, begins_page, error_of
from service.adapters.models.exchange import EXCHANGE, TURN_SECONDS, Exchange, Silence
from service.adapters.models.failures import ContentRefused
from service.adapters.models.fields import json_of, whole_characters
from service.adapters.models.memory import MemoryCollector
from service.adapters.models.model_settings import ModelSettings
from service.adapters.models.streams import CARRIED, CARRIED_OF_CALLS, Ending, StreamReader, Tokens, ending_of
from service.adapters.models.tool_calls import ToolCalls
from service.domain.errors import ServiceError, Unavailable


def failure_of(error: BaseException, exchange: Exchange, spec: ModelSettings, secrets: Collection[str]) -> Exception:
    """Our error for litellm's, by what the exchange knows of it. Raises ContentRefused."""
    return exchange.failure or error_of(
        error,
        model=spec.model,
        status=exchange.status if exchange.status >= 400 else 0,
        headers=exchange.headers or _headers_of(error),
        secrets=secrets,
        address=address_of(exchange.url) if exchange.url else "",
    )


def _headers_of(error: BaseException) -> Mapping[str, str]:
    """The headers of the answer behind an error, in either of the places where litellm leaves them."""
    headers = getattr(error, "litellm_response_headers", None)
    if headers is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
    return dict(headers) if headers is not None else {}


class Source(Protocol):
    """Where the rest of a reply comes from."""

    async def read(self) -> Sequence[str] | None:
        """The next texts, perhaps none; None at the end. Raises ServiceError, ContentRefused."""

    @property
    def has_begun(self) -> bool:
        """Return whether anything of an answer has come, which then may have to be paid."""

    @property
    def hidden_characters(self) -> int:
        """Return the characters of thoughts and calls so far, which are no text of the reply."""

    def tokens(self) -> Tokens | None:
        """Return the tokens that the provider has reported so far; None when it has not."""

    async def ending(self) -> Ending: ...

    async def close(self) -> None: ...


PIECE_BYTES = 16 * 1024
"""Bytes of a stream that are read in one turn of the event loop."""
SMALL_BYTES = 1024
"""As many, with those that are held, are read without a look at the time."""
LARGE = 64 * 1024
"""Bytes of one line or document, or characters of calls, that are read in a thread."""
_LOOKS_EVERY = 16
LAST_SECONDS = 2.0
"""Wait for what comes behind the end of a reply, its usage or the end of the stream: some servers never end it."""


class ProviderSource:
    """A provider's stream, read here."""

    def __init__(self, response: aiohttp.ClientResponse, reader: StreamReader, spec: ModelSettings) -> None:
        self._content = response.content
        self._reader = reader
        self._spec = spec
        self._seconds, self._idle_seconds = spec.first_token_timeout_seconds, spec.idle_timeout_seconds
        self._last_seconds = min(self._idle_seconds, LAST_SECONDS)
        self._silence = Silence(self._content)
        self._failure: Exception | None = None
        self._url = response.url
        self._has_ended = False
        self._data = b""
        """The data that is still to be read."""
        self._reading: Iterator[str] | None = None
        """The texts of a piece of it that are still to be taken."""
        self._is_large = False
        self.has_begun = False

    async def read(self) -> Sequence[str] | None:
        if self._failure is not None:
            raise self._failure
        reader = self._reader
        if self._reading is not None or self._data:
            await asyncio.sleep(0)  # others have their turn
        elif self._has_ended:
            return None
        else:
            if not self._content.is_eof():  # else nothing is waited for
                self._silence.begin(self._seconds)
            try:
                data = await self._content.readany()
            except TimeoutError:
                data = self._cut_off("fell silent")
            except (aiohttp.ClientError, OSError):
                data = self._cut_off("broke the connection off")
            finally:
                self._silence.end()
            if not self.has_begun:
                if begins_page(data):
                    raise answered_with_page(address_of(str(self._url)), 200)
                self.has_begun = bool(data)
            if 0 < len(data) <= SMALL_BYTES - reader.held_bytes:  # nearly always: no turn is too long
                texts: list[str] = []
                try:
                    texts.extend(reader.feed(data))
                except (ServiceError, ContentRefused) as error:
                    self._fail_after(texts, error)
                self._seconds = self._last_seconds if reader.is_whole else self._idle_seconds
                return texts if all(texts) else [text for text in texts if text]
            self._data, self._has_ended = data, not data
        if self._reading is None:
            self._is_large = reader.held_bytes > LARGE
            piece, self._data = self._data[:PIECE_BYTES], self._data[PIECE_BYTES:]
            self._reading = reader.feed(piece) if piece else reader.finish()
        texts = await asyncio.to_thread(self._take) if self._is_large else self._take()
        self._seconds = self._last_seconds if reader.is_whole else self._idle_seconds
        return None if self._has_ended and not texts and self._reading is None else texts

    def _cut_off(self, how: str) -> bytes:
        """Return nothing, as the end of a reply that is whole. Raise Unavailable for one that is not."""
        if not self._reader.is_whole:
            raise Unavailable(f"the provider of {self._spec.model} {how}") from None
        return b""

    def _take(self) -> list[str]:
        """Return the next texts of what is being read: all, or those of one turn."""
        reading, until = self._reading, 0.0
        texts: list[str] = []
        assert reading is not None
        try:
            texts.extend(islice(reading, _LOOKS_EVERY))
            while len(texts) % _LOOKS_EVERY == 0 and texts:
                now = time.perf_counter()
                until = until or now + TURN_SECONDS
                if now > until:
                    return [text for text in texts if text]
                before = len(texts)
                texts.extend(islice(reading, _LOOKS_EVERY))
                if len(texts) == before:
                    break
        except (ServiceError, ContentRefused) as error:
            self._fail_after(texts, error)
        self._reading = None
        return texts if all(texts) else [text for text in texts if text]

    def _fail_after(self, texts: Collection[str], error: ServiceError | ContentRefused) -> None:
        """Fail at the next read: not before the texts that came with it. Raise the error where none did."""
        if not any(texts):
            raise error
        self._failure = error.with_traceback(None)

    @property
    def hidden_characters(self) -> int:
        return self._reader.hidden_characters

    def tokens(self) -> Tokens | None:
        return self._reader.tokens()

    async def ending(self) -> Ending:
        is_large = self._reader.call_characters > LARGE
        return await asyncio.to_thread(self._reader.ending) if is_large else self._reader.ending()

    async def close(self) -> None:
        self._silence.close()


class LitellmSource:
    """A stream read through litellm, in OpenAI's form. Of some providers it makes the request only now."""

    def __init__(self, stream: Any, exchange: Exchange, spec: ModelSettings, secrets: Collection[str]) -> None:
        self._stream = stream
        self._exchange = exchange
        self._spec = spec
        self._secrets = secrets
        self._seconds = spec.first_token_timeout_seconds
        self._tool_calls = ToolCalls()
        self._memory = MemoryCollector()
        self._finish_reason = ""
        self._tokens: Tokens | None = None
        self._model = ""
        self.has_begun = False

    async def read(self) -> Sequence[str] | None:
        try:
            async with asyncio.timeout(self._seconds):
                chunk = await self._next()
        except TimeoutError:
            if self._finish_reason:
                return None
            raise Unavailable(f"the provider of {self._spec.model} fell silent") from None
        except Exception as error:  # noqa: BLE001  as in _ask
            if self._finish_reason:  # of what stands behind it, or of litellm's own accounts
                return None
            raise failure_of(error, self._exchange, self._spec, self._secrets) from None
        if chunk is None:
            return None
        self.has_begun = True
        self._seconds = self._spec.idle_timeout_seconds
        text = self._read(chunk)
        return (text,) if text else ()

    async def close(self) -> None:
        with suppress(Exception):  # litellm works its own accounts out at the end, which fails for some streams
            await self._stream.aclose()

    async def _next(self) -> Any:
        token = EXCHANGE.set(self._exchange)
        try:
            return await anext(self._stream, None)
        finally:
            EXCHANGE.reset(token)

    def _read(self, chunk: Any) -> str:
        self._model = self._model or chunk.model or ""
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            details = usage.prompt_tokens_details
            self._tokens = Tokens(
                usage.prompt_tokens or 0,
                usage.completion_tokens or 0,
                cache_read=getattr(details, "cached_tokens", None) or 0,
                cache_written=getattr(usage, "cache_creation_input_tokens", None) or 0,
            )
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        for piece in choice.delta.tool_calls or ():
            arguments = json_of(piece.function.arguments)
            extra = {name: value for name in CARRIED_OF_CALLS if (value := getattr(piece, name, None))}
            self._tool_calls.add(piece.index, piece.id or "", piece.function.name or "", arguments, extra)
        for name in CARRIED:
            self._memory.add(name, getattr(choice.delta, name, None))
        return whole_characters(choice.delta.content or "")

    @property
    def hidden_characters(self) -> int:
        return self._tool_calls.written + self._memory.written

    def tokens(self) -> Tokens | None:
        return self._tokens

    async def ending(self) -> Ending:
        if not self._finish_reason:
            raise Unavailable(f"the provider of {self._spec.model} ended its stream before the reply did")
        return ending_of(self._finish_reason, self._tool_calls, self._memory, self._tokens, self._model)
