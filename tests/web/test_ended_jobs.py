"""Ended jobs in memory: gone from there with the next event of the job, and with every erasure."""

import asyncio
from datetime import UTC, datetime

import pytest

from eventstore import NewEvent, SQLiteEventStore
from service.domain.model import Usage
from service.projections.ended_jobs import EndedJobs
from service.projections.jobs import JobRow


def row(status="completed"):
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return JobRow(
        "one", "org", "project", "/repository", "main", "builtin/editor", status, "Title", "docs/x", None, None, None,
        Usage(0, 0, 0), at, None, None, (), "key", None,
    )  # fmt: skip


@pytest.mark.parametrize("stream", ["job-one", "erasure-job-one"])
async def test_what_changes_or_is_erased_is_forgotten(tmp_path, stream):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        ended = EndedJobs(store)
        await ended.load()
        following = asyncio.create_task(ended.run())
        ended.remember(row(), ended.changes)
        assert ended.find("project", "one") == row()
        assert ended.find("another", "one") is None
        async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as other:
            before = ended.changes
            await other.append(stream, [NewEvent("anything", b"{}")], expected_version=0)
            async with asyncio.timeout(60):
                while ended.find("project", "one") is not None:  # noqa: ASYNC110  (it tells nobody)
                    await asyncio.sleep(0.01)
        ended.remember(row(), before)  # read before the change
        assert ended.find("project", "one") is None
        following.cancel()
        await asyncio.wait([following])


async def test_a_job_that_goes_on_is_not_kept(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        ended = EndedJobs(store)
        ended.remember(row("active"), ended.changes)
        assert ended.find("project", "one") is None


async def test_what_readers_get_is_made_once_for_a_row_that_is_kept(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        ended, kept, made = EndedJobs(store), row(), []

        def encode(one):
            made.append(one.status)
            return one.status.encode(), "tag"

        ended.remember(kept, ended.changes)
        assert [ended.encoded(kept, encode) for _ in range(2)] == [(b"completed", "tag")] * 2
        assert ended.encoded(row("active"), encode) == (b"active", "tag")  # another state of the same job
        assert ended.encoded(kept, encode) == (b"completed", "tag")
        assert made == ["completed", "active"]
        changed = row("failed")
        ended.remember(changed, ended.changes)
        assert ended.encoded(changed, encode) == (b"failed", "tag")
        ended.forget("one")
        assert ended.encoded(changed, encode) == (b"failed", "tag")
        assert made == ["completed", "active", "failed", "failed"]
