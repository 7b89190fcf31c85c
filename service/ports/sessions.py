"""Where sessions are kept: a table beside the log, of which nothing is derived and nothing is backed up."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from service.domain.access.people import SignInMethod


class StoredSession(Struct):
    """A browser that was signed in. Whether its session is still open, the log says."""

    digest: str
    """SHA-256 of the cookie's secret, in hex."""
    id: str
    person_id: str
    method: SignInMethod
    browser: str
    address: str
    began_at: datetime
    used_at: datetime


class SessionTable(Protocol):
    async def load(self) -> list[StoredSession]:
        """Return all of them; called once, and first. Empty where the table cannot be read: people sign in again."""

    async def add(self, session: StoredSession) -> None:
        """Keep one durably. Raises Unavailable."""

    async def update(self, used: Iterable[StoredSession], removed: Iterable[str]) -> None:
        """Keep when these were last used, and forget those with these ids. Raises Unavailable."""

    async def close(self) -> None: ...
