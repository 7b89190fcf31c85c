"""Given events, then rows: the projections over a real log and a real file, read by the queries of the service."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import reduce
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from eventstore import Decider, SQLiteEventStore, Views
from service.queries.read_models import read_models

Given: TypeAlias = tuple[Decider[Any, Any, Any], str, Any]
"""The kind of a thing, its id, and what happened to it."""
Query: TypeAlias = Callable[[Views], Awaitable[Any]]


class Log:
    """A log for ``given`` events, and ``then`` the rows of a query. Both may follow more than once."""

    def __init__(self, folder: Path, store: SQLiteEventStore, live: Views) -> None:
        self._folder, self._store, self._live = folder, store, live
        self._versions: Counter[str] = Counter()

    async def given(self, *events: Given) -> None:
        for decider, entity, event in events:
            stream = decider.stream(entity)
            await self._store.append(stream, [decider.codec.encode(event)], expected_version=self._versions[stream])
            self._versions[stream] += 1
            await self._live.catch_up()

    async def then(self, query: Query, columns: str = "") -> Any:
        """Return the query's answer, the same from rows that grew with each event and from rows made of all at once;
        with ``columns``, these attributes of each row, dots leading to a part's.
        """
        with TemporaryDirectory(dir=self._folder) as folder:
            async with await Views.open(Path(folder, "views.db"), self._store, read_models()) as rebuilt:
                await rebuilt.catch_up()
                answer = await query(rebuilt)
                assert answer == await query(self._live)
        return [picked(row, columns.split()) for row in answer] if columns else answer


def picked(row: Any, paths: Iterable[str]) -> tuple[Any, ...]:
    return tuple(reduce(_part, path.split("."), row) for path in paths)


def _part(row: Any, name: str) -> Any:
    return None if row is None else attrgetter(name)(row)
