"""Embeddings over litellm: any provider that it knows, or a server of one's own that speaks OpenAI's form."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from service.adapters.models.errors import error_of
from service.adapters.models.exchange import EXCHANGE, Exchange, open_session
from service.adapters.models.failures import ContentRefused
from service.adapters.models.library import Library, load
from service.adapters.models.model_settings import ModelSettings
from service.adapters.redaction import secrets_of
from service.domain.errors import Invalid, ServiceError, Unavailable
from service.ports.embeddings import TextRefused
from service.ports.model import CONTEXT_WINDOW_EXCEEDED

MAX_CHARACTERS = 8_000
"""Limit for a text: about 2,000 tokens, which every current embedding model accepts."""


_OF_THE_TEXT = frozenset({400, 413, 422})


class LitellmEmbeddings:
    def __init__(self, settings: ModelSettings, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._key = env.get(settings.api_key_env, "") if settings.api_key_env else ""
        self._secrets = {self._key, *secrets_of(env)}
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        return self._settings.model

    async def prepare(self) -> None:
        await load()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> Sequence[Sequence[float]]:
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._ask(await load(), texts, timeout_seconds)
        except TimeoutError:
            raise Unavailable(f"{self.name} took longer than {timeout_seconds:g} seconds.", code="timed_out") from None
        if len(answer) != len(texts) or len({len(vector) for vector in answer}) > 1 or not all(answer):
            raise Unavailable(f"{self.name} answered with other vectors than requested.")
        return answer

    async def _ask(self, library: Library, texts: Sequence[str], timeout_seconds: float) -> Sequence[Sequence[float]]:
        options: dict[str, Any] = {}
        if self._settings.api_base:
            # Without a key of its own such a server is sent none: not the one that the environment has for another.
            options = {"api_base": self._settings.api_base, "api_key": self._key or "none"}
        elif self._key:
            options = {"api_key": self._key}
        exchange = Exchange(self._open_session(library), first_token_timeout_seconds=timeout_seconds)
        exchange.is_asked = True  # there is no stream that we would read ourselves
        exchange.wants_vectors = True
        token = EXCHANGE.set(exchange)
        try:
            answer = await library.module.aembedding(
                model=self._settings.model,
                input=[text[:MAX_CHARACTERS] or " " for text in texts],
                timeout=timeout_seconds,
                max_retries=0,
                encoding_format="float",
                **options,
            )
        except Exception as error:  # noqa: BLE001  (litellm raises of all kinds; error_of says which)
            raise self._told(error, exchange) from None  # not "from error": its request holds the texts and the key
        finally:
            EXCHANGE.reset(token)
            exchange.close()
        if exchange.vectors is not None:
            return exchange.vectors
        try:  # of a provider that is asked in another form than OpenAI's
            return [[float(number) for number in item["embedding"]] for item in answer.data]
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            raise Unavailable(f"{self.name} answered without vectors.") from None

    def _told(self, error: Exception, exchange: Exchange) -> ServiceError:
        if exchange.failure is not None:
            return exchange.failure
        try:
            failure = error_of(
                error, model=self.name, status=exchange.status, headers=exchange.headers, secrets=self._secrets
            )
        except ContentRefused:
            return TextRefused(f"{self.name} refuses a text because of its content.")
        is_of_text = failure.code == CONTEXT_WINDOW_EXCEEDED or exchange.status in _OF_THE_TEXT
        return TextRefused(str(failure)) if is_of_text and isinstance(failure, Invalid) else failure

    def _open_session(self, library: Library) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = open_session(
                connect_timeout_seconds=self._settings.connect_timeout_seconds, certificates=library.certificates
            )
        return self._session
