"""Words as directions; words that mean alike share one. Told when to fail or to be slow."""

import asyncio
import re
from collections.abc import Mapping, Sequence

from service.domain.errors import ServiceError

DIMENSIONS = 32


class FakeEmbeddings:
    """``alike``: a word to the one that it means."""

    def __init__(self, alike: Mapping[str, str] | None = None) -> None:
        self.name = "fake/embeddings"
        self.errors: list[ServiceError] = []  # raised by the next calls, first to last
        self.hold: asyncio.Event | None = None  # what calls wait for
        self.texts: list[str] = []  # that were embedded
        self.answers: list[list[float]] = []  # vectors of the next texts, first to last
        self._alike = alike or {}
        self._directions: dict[str, int] = {}

    async def prepare(self) -> None:
        pass

    async def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> list[list[float]]:
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.texts += texts
        return [self.answers.pop(0) if self.answers else self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.001] * DIMENSIONS
        for word in re.findall(r"\w+", text.casefold()):
            meant = self._alike.get(word)
            if meant is not None:
                vector[self._directions.setdefault(meant, len(self._directions) % DIMENSIONS)] += 1.0
        return vector
