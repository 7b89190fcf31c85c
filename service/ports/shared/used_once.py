"""Marks what is valid for one use, over all instances of the service."""

from datetime import datetime
from typing import Protocol


class UsedOnce(Protocol):
    async def use(self, what: bytes, ends_at: datetime) -> bool:
        """Mark something as used until a time, after which it is not good any more. Return whether it was not before.

        Raises Unavailable: it is not known whether it was.
        """
