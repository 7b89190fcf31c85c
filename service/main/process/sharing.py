"""The things that the instances of a log share beside it: sessions, and everything that they count together.

With the log in a data folder there is one instance, and these are files of the folder, or nothing.
"""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from service.adapters.sessions import SqliteSessions
from service.adapters.sign_in.challenges import Challenges
from service.integrity.log_place import log_place
from service.main.process.joining import Joined
from service.ports.shared.sessions import SessionTable
from service.workers.admission.shared_counts import SharedCounts

_CHALLENGES = b"challenges 1"


class Shared(Struct, frozen=True):
    sessions: SessionTable
    counts: SharedCounts | None = None
    challenges: Challenges | None = None
    """Those of sign-ins, where an answer may come to another instance than the question."""


def of_folder(data: Path) -> Shared:
    return Shared(SqliteSessions(data / "sessions.db"))


@asynccontextmanager
async def share(data: Path, joined: Joined, secret: bytes) -> AsyncIterator[Shared]:
    """Yield what an instance shares with the others; ``secret``: the same for all.

    Raises StoreUnavailable and its kinds, StoreNewer.
    """
    if joined.tables is None and log_place(data).is_local:
        yield of_folder(data)
        return
    from eventstore.postgres.place import TablePlace
    from service.adapters.postgres.counts import Circuit, TableCounts, TableReaderTokens, TableUsedOnce
    from service.adapters.postgres.sessions import TableSessions
    from service.adapters.postgres.tables import Tables
    from service.adapters.postgres.turns import TableTurns

    place = log_place(data)
    assert isinstance(place, TablePlace)
    if joined.tables is None:  # only reading is served
        vault = await Tables.open_to_read(place.vault)
        try:
            yield Shared(TableSessions(vault, reads_only=True))
        finally:
            await vault.close()
        return
    vault = await Tables.open(place.vault, "service_vault")
    try:
        turns = TableTurns(joined.tables, is_alone=lambda: not joined.instances.others())
        circuit = Circuit(joined.tables)
        brief, once = TableCounts(circuit), TableUsedOnce(circuit)
        key = hmac.digest(secret, _CHALLENGES, "sha256")
        clearing = asyncio.create_task(brief.run(), name="clear counts")
        try:
            yield Shared(
                TableSessions(vault),
                SharedCounts(turns, brief, TableReaderTokens(circuit), once),
                Challenges(time.time, key=key, once=once),
            )
        finally:
            clearing.cancel()
            await asyncio.gather(clearing, return_exceptions=True)
            await brief.close()
            await once.close()
    finally:
        await vault.close()
