"""Given events, then rows: the projections over a real log and a real file, read by the queries of the service."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import reduce
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from eventstore import Decider, SQLiteEventStore, Views
from service.queries.read_models import read_models

Given: TypeAlias = tuple[Decider[Any, Any, Any], str, Any]
"""The kind of a thing, its id, and what happened to it."""
Query: TypeAlias = Callable[[Views], Awaitable[Any]]


class Log:
    """A log for ``given`` events, and ``then`` the rows of a query. Both may follow more than once."""

    def __init__(self, folder: Path, store: SQLiteEventStore) -> None:
        self._folder, self._store = folder, store
        self._versions: Counter[str] = Counter()

    async def given(self, *events: Given) -> None:
        for decider, entity, event in events:
            stream = decider.stream(entity)
            await self._store.append(stream, [decider.codec.encode(event)], expected_version=self._versions[stream])
            self._versions[stream] += 1

    async def then(self, query: Query, columns: str = "") -> Any:
        """Return the query's answer; with ``columns``, of each row these attributes, a path with dots for a part's."""
        async with await Views.open(self._folder / "views.db", self._store, read_models()) as views:
            await views.catch_up()
            answer = await query(views)
        return [picked(row, columns.split()) for row in answer] if columns else answer


def picked(row: Any, paths: Iterable[str]) -> tuple[Any, ...]:
    return tuple(reduce(_part, path.split("."), row) for path in paths)


def _part(row: Any, name: str) -> Any:
    return None if row is None else attrgetter(name)(row)
