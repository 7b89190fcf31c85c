"""Embeddings over litellm: any provider that it knows, or a server of one's own that speaks OpenAI's form."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from service.adapters.litellm_model import ModelSettings
from service.adapters.model_errors import ContentRefused, error_of
from service.adapters.model_library import load
from service.domain.errors import Invalid, ServiceError, Unavailable

MAX_CHARACTERS = 8_000
"""Of a text: about 2,000 tokens, which every embedding model of today takes."""


class LitellmEmbeddings:
    def __init__(self, settings: ModelSettings, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._key = env.get(settings.api_key_env, "") if settings.api_key_env else ""

    @property
    def name(self) -> str:
        return self._settings.model

    async def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> list[list[float]]:
        options: dict[str, Any] = {}
        if self._settings.api_base:
            # Without a key of its own such a server is sent none: not the one that the environment has for another.
            options = {"api_base": self._settings.api_base, "api_key": self._key or "none"}
        elif self._key:
            options = {"api_key": self._key}
        try:
            async with asyncio.timeout(timeout_seconds):
                library = await load()
                answer = await library.module.aembedding(
                    model=self._settings.model,
                    input=[text[:MAX_CHARACTERS] or " " for text in texts],
                    timeout=timeout_seconds,
                    max_retries=0,
                    encoding_format="float",
                    **options,
                )
        except TimeoutError:
            raise Unavailable(f"{self.name} took longer than {timeout_seconds:g} seconds.", code="timed_out") from None
        except Exception as error:  # noqa: BLE001  (of whatever library the provider needs)
            raise self._told(error) from None
        vectors = [[float(number) for number in item["embedding"]] for item in answer.data]
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1 or not all(vectors):
            raise Unavailable(f"{self.name} answered with other vectors than it was asked for.")
        return vectors

    def _told(self, error: Exception) -> ServiceError:
        status = getattr(error, "status_code", 0)
        try:
            return error_of(
                error, model=self.name, status=status if isinstance(status, int) else 0, headers={}, secret=self._key
            )
        except ContentRefused:
            return Invalid(f"{self.name} refuses a text for what it says.", code="content_refused")
