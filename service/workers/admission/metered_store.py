"""The store as one request sees it that counts against limits: what it records first, it records with its admission."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from typing import TypeVar

from eventstore import Append, Appended, Codec, EventStore, Folded, Metadata, NewEvent, RecordedEvent
from service.domain.access.usage import RequestAccepted
from service.workers.admission.admissions import Admissions

S = TypeVar("S")
E = TypeVar("E")


class MeteredStore:
    """An EventStore. Appending may raise OverLimit besides; nothing is recorded then."""

    def __init__(self, store: EventStore, admissions: Admissions, request: RequestAccepted, metadata: Metadata) -> None:
        self._store, self._admissions, self._request, self._metadata = store, admissions, request, metadata
        self._is_admitted = False

    async def append(self, stream: str, events: Sequence[NewEvent], *, expected_version: int) -> Appended:
        return await self.append_all((Append(stream, tuple(events), expected_version),))

    async def append_all(self, writes: Sequence[Append]) -> Appended:
        if self._is_admitted:
            return await self._store.append_all(writes)
        appended = await self._admissions.append(self._request, self._metadata, writes)
        self._is_admitted = True
        return appended

    @property
    def trouble(self) -> str | None:
        return self._store.trouble

    async def check_writable(self) -> None:
        await self._store.check_writable()

    async def read_stream(
        self, stream: str, *, after_version: int = 0, limit: int | None = None, backwards: bool = False
    ) -> list[RecordedEvent]:
        return await self._store.read_stream(stream, after_version=after_version, limit=limit, backwards=backwards)

    def iterate_stream(self, stream: str, *, after_version: int = 0) -> AsyncGenerator[RecordedEvent, None]:
        return self._store.iterate_stream(stream, after_version=after_version)

    async def fold_stream(
        self,
        stream: str,
        codec: Codec[E],
        evolve: Callable[[S, E], S],
        initial: S,
        *,
        after_version: int = 0,
        may_be_old: bool = True,
    ) -> Folded[S]:
        return await self._store.fold_stream(
            stream, codec, evolve, initial, after_version=after_version, may_be_old=may_be_old
        )

    async def read_all(
        self, *, after: int = 0, category: str | None = None, limit: int = 1000, backwards: bool = False
    ) -> list[RecordedEvent]:
        return await self._store.read_all(after=after, category=category, limit=limit, backwards=backwards)

    def subscribe(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[RecordedEvent, None]:
        return self._store.subscribe(after=after, category=category, stream=stream)

    def follow(
        self, *, after: int = 0, category: str | None = None, stream: str | None = None
    ) -> AsyncGenerator[Sequence[RecordedEvent], None]:
        return self._store.follow(after=after, category=category, stream=stream)

    async def wait_until(self, position: int) -> None:
        await self._store.wait_until(position)

    async def find(self, event_id: str, *, may_be_old: bool = True) -> RecordedEvent | None:
        return await self._store.find(event_id, may_be_old=may_be_old)

    async def head(self) -> int:
        return await self._store.head()

    async def size(self) -> int:
        return await self._store.size()

    async def log_id(self) -> str:
        return await self._store.log_id()

    async def log_key(self) -> str:
        return await self._store.log_key()

    async def stream_version(self, stream: str) -> int:
        return await self._store.stream_version(stream)

    async def erase(self, subject: str) -> None:
        await self._store.erase(subject)

    async def erase_all(self, subjects: Collection[str]) -> int:
        return await self._store.erase_all(subjects)

    @property
    def held(self) -> str | None:
        return self._store.held

    @property
    def away(self) -> str | None:
        return self._store.away

    def hold(self, reason: str) -> None:
        self._store.hold(reason)

    async def close(self) -> None:
        """The request is over; the store is not."""
