"""What every SessionTable does. A subclass gives the fixture ``opened``: each call is another process on one table."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from service.ports.shared.sessions import SessionTable, StoredSession

Opened = Callable[[], Awaitable[SessionTable]]

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


def session(number: int, person_id: str = "ada", used_at: datetime = AT) -> StoredSession:
    return StoredSession(f"digest {number}", f"id {number}", person_id, "link", "Firefox", "192.0.2.1", AT, used_at)


def by_id(sessions: list[StoredSession]) -> list[StoredSession]:
    return sorted(sessions, key=lambda one: one.id)


class SessionTableContract:
    async def test_sessions_are_found_as_they_were_added(self, opened: Opened):
        table = await opened()
        assert await table.load() == []
        for one in (session(1), session(2), session(3, "eve", AT.replace(microsecond=0))):
            await table.add(one)
        other = await opened()
        assert by_id(await other.load()) == [session(1), session(2), session(3, "eve", AT.replace(microsecond=0))]
        assert by_id(await other.of_person("ada")) == [session(1), session(2)]
        assert await other.of_person("bob") == []
        assert await other.find("digest 3") == session(3, "eve", AT.replace(microsecond=0))
        assert await other.find("digest 4") is None

    async def test_many_are_found_at_once(self, opened: Opened):
        table = await opened()
        for number in range(20):
            await table.add(session(number))
        found = await asyncio.gather(*(table.find(f"digest {number}") for number in range(40)))
        assert found == [session(number) for number in range(20)] + [None] * 20

    async def test_last_use_is_kept_and_never_goes_back(self, opened: Opened):
        one, other = await opened(), await opened()
        for number in range(3):
            await one.add(session(number))
        later, earlier = AT + timedelta(minutes=1), AT - timedelta(minutes=1)
        await other.update([session(0, used_at=later), session(1, used_at=earlier), session(9, used_at=later)], [])
        found = by_id(await one.load())
        assert [each.used_at for each in found] == [later, AT, AT]

    async def test_forgotten_sessions_are_gone(self, opened: Opened):
        one, other = await opened(), await opened()
        for number in range(3):
            await one.add(session(number))
        await other.update([session(2)], [session(0), session(9)])
        assert by_id(await one.load()) == [session(1), session(2)]
        assert await one.find("digest 0") is None

    async def test_one_that_was_used_since_is_not_forgotten(self, opened: Opened):
        one, other = await opened(), await opened()
        used = session(0, used_at=AT + timedelta(seconds=1))
        await one.add(session(0))
        await one.update([used], [])
        await other.update([], [session(0)])
        assert await other.load() == [used]
        await other.update([], [replace(used, used_at=used.used_at + timedelta(seconds=1))])
        assert await other.load() == []

    async def test_many_processes_keep_the_same_sessions(self, opened: Opened):
        tables = [await opened() for _ in range(4)]
        rows = [session(number) for number in range(30)]
        for row in rows:
            await tables[0].add(row)
        moved = [replace(row, used_at=AT + timedelta(seconds=1)) for row in rows]
        await asyncio.gather(*(table.update(moved[::step], []) for table in tables for step in (1, -1)))
        assert by_id(await tables[0].load()) == by_id(moved)
