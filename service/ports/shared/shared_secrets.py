"""Secrets that all instances of the service share, each made by the first one that asks for it."""

from collections.abc import Callable
from typing import Protocol

PREFIX = "shared-"
"""Begins their names where they are kept among the other secrets of a vault."""


class SharedSecrets(Protocol):
    async def obtain(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the secret of that name, kept durably before it is used; ``make`` is called where there is none yet.

        All instances get the same bytes. Raises StoreUnavailable and its kinds, OSError.
        """

    async def find(self, name: str) -> bytes | None: ...
