"""Texts as vectors, near each other where they mean alike."""

from collections.abc import Sequence
from typing import Protocol

from service.domain.errors import Invalid


class TextRefused(Invalid):
    """One of the texts is too long for the model, or not to its provider's liking; others may be accepted."""

    code = "text_refused"


class Embeddings(Protocol):
    @property
    def name(self) -> str:
        """Name of the model: vectors of different models do not compare."""
        ...

    async def prepare(self) -> None:
        """Do what takes long, before a question waits for it."""
        ...

    async def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> Sequence[Sequence[float]]:
        """A vector for each text, all of one length. Its numbers may be any that the model gives, also NaN. Safe to
        repeat.

        Raises:
            Unavailable: down, slow or rate limited; another time it may work.
            TextRefused: because of one of the texts, or of all.
            ServiceError: of another kind: refused, and will be again.
        """
