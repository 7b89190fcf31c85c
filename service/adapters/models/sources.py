"""Where the pieces of a model's reply come from: the provider's stream itself, or litellm's reader of it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import aiohttp

from service.adapters.models.errors import address_of, answered_with_page, begins_page, error_of
from service.adapters.models.exchange import EXCHANGE, Exchange, Silence
from service.adapters.models.model_settings import ModelSettings
from service.adapters.models.streams import Ending, StreamReader, Tokens, ToolCalls, end_reason
from service.domain.errors import ServiceError, Unavailable


def failure_of(error: BaseException, exchange: Exchange, spec: ModelSettings, secrets: Collection[str]) -> Exception:
    """Our error for litellm's, by what the exchange knows of it. Raises ContentRefused."""
    return exchange.failure or error_of(
        error,
        model=spec.model,
        status=exchange.status if exchange.status >= 400 else 0,
        headers=exchange.headers or _headers_of(error),
        secrets=secrets,
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

    def tokens(self) -> Tokens | None:
        """Return the tokens that the provider has reported so far; None when it has not."""

    def ending(self) -> Ending: ...

    async def close(self) -> None: ...


class ProviderSource:
    """A provider's stream, read here."""

    def __init__(self, response: aiohttp.ClientResponse, reader: StreamReader, spec: ModelSettings) -> None:
        self._content = response.content
        self._reader = reader
        self._spec = spec
        self._seconds = spec.first_token_timeout_seconds
        self._silence = Silence(self._content)
        self._failure: ServiceError | None = None
        self._address = address_of(str(response.url))
        self._has_begun = False

    async def read(self) -> Sequence[str] | None:
        if self._failure is not None:
            raise self._failure
        self._silence.begin(self._seconds)
        try:
            data = await self._content.readany()
        except TimeoutError:
            raise Unavailable(f"the provider of {self._spec.model} fell silent") from None
        except (aiohttp.ClientError, OSError):
            raise Unavailable(f"the provider of {self._spec.model} broke the connection off") from None
        finally:
            self._silence.end()
        if not data:
            return None
        if not self._has_begun and begins_page(data):
            raise answered_with_page(self._address, 200)
        self._has_begun = True
        self._seconds = self._spec.idle_timeout_seconds
        texts: list[str] = []
        try:
            texts.extend(self._reader.feed(data))
        except ServiceError as error:  # not before the texts that came with it
            if not texts:
                raise
            self._failure = error
        return texts

    def tokens(self) -> Tokens | None:
        return self._reader.tokens()

    def ending(self) -> Ending:
        return self._reader.ending()

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
        self._finish_reason = ""
        self._tokens: Tokens | None = None
        self._model = ""

    async def read(self) -> Sequence[str] | None:
        try:
            async with asyncio.timeout(self._seconds):
                chunk = await self._next()
        except TimeoutError:
            raise Unavailable(f"the provider of {self._spec.model} fell silent") from None
        except Exception as error:  # noqa: BLE001  as in _ask
            raise failure_of(error, self._exchange, self._spec, self._secrets) from None
        if chunk is None:
            return None
        self._seconds = self._spec.idle_timeout_seconds
        text = self._read(chunk)
        return (text,) if text else ()

    async def close(self) -> None:
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
            self._tool_calls.add(piece.index, piece.id or "", piece.function.name or "", piece.function.arguments or "")
        return choice.delta.content or ""

    def tokens(self) -> Tokens | None:
        return self._tokens

    def ending(self) -> Ending:
        if not self._finish_reason:
            raise Unavailable(f"the provider of {self._spec.model} ended its stream before the reply did")
        calls = self._tool_calls.complete(cut=self._finish_reason == "length")
        return Ending(end_reason(self._finish_reason, calls, refused=False), calls, self._tokens, self._model)
