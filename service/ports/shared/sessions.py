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
    @property
    def is_shared(self) -> bool:
        """Return whether other instances of the service begin and use sessions in the same table."""

    async def load(self) -> list[StoredSession]:
        """Return all of them; called once, and first. Empty where the table cannot be read: people sign in again."""

    async def find(self, digest: str) -> StoredSession | None:
        """Return the session of a digest. Raises Unavailable."""

    async def of_person(self, person_id: str) -> list[StoredSession]:
        """Return all sessions of a person. Raises Unavailable."""

    async def add(self, session: StoredSession) -> None:
        """Keep one durably. Raises Unavailable."""

    async def update(self, used: Iterable[StoredSession], removed: Iterable[StoredSession]) -> None:
        """Keep when these were last used, and forget those, unless one was used later than it says.

        Raises Unavailable.
        """

    async def close(self) -> None: ...
