"""Texts as vectors, near each other where they mean alike."""

from collections.abc import Sequence
from typing import Protocol


class Embeddings(Protocol):
    @property
    def name(self) -> str:
        """Name of the model: vectors of different models do not compare."""
        ...

    async def prepare(self) -> None:
        """Do what takes long, before a question waits for it."""
        ...

    async def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> list[list[float]]:
        """A vector for each text, all of one length. Safe to repeat.

        Raises:
            Unavailable: down, slow or rate limited; another time it may work.
            ServiceError: of another kind: refused, and will be again.
        """
