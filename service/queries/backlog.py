"""How much work waits, for operators. Each number comes from an index."""

from datetime import datetime

from msgspec import Struct

from eventstore import Views


class Backlog(Struct, frozen=True):
    jobs_running: int
    jobs_waiting: int
    oldest_job_at: datetime | None
    """When the oldest job was asked for that has not ended."""
    sites: int
    sites_stale: int
    """A newer index is wanted, or the last one failed."""
    oldest_index_at: datetime | None
    """When the oldest index of a site was made."""
    webhooks_waiting: int
    """Deliveries that have not arrived, and are tried again."""


async def read_backlog(views: Views) -> Backlog:
    row = await views.query_one(
        """
        WITH active AS (SELECT waiting_since, waits_for, created_at FROM jobs WHERE status = 'active')
        SELECT (SELECT COUNT(*) FROM active WHERE waiting_since IS NULL AND waits_for IS NULL),
               (SELECT COUNT(*) FROM active WHERE waiting_since IS NOT NULL OR waits_for IS NOT NULL),
               (SELECT MIN(created_at) FROM active),
               (SELECT COUNT(*) FROM sites),
               (SELECT COUNT(*) FROM sites WHERE index_wanted OR failure_code IS NOT NULL),
               (SELECT MIN(indexed_at) FROM sites),
               (SELECT COUNT(*) FROM webhook_deliveries WHERE state = 'pending')
        """
    )
    assert row is not None
    running, waiting, job_at, sites, stale, index_at, webhooks = row
    return Backlog(running, waiting, _time(job_at), sites, stale, _time(index_at), webhooks)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
