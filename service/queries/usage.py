"""Accepted requests: for the limits that count them, and how many there were."""

from datetime import UTC, date, datetime, timedelta

import msgspec

from eventstore import Views
from service.domain.access.usage import RequestAccepted
from service.views.usage import UsageDayView, UsageOfView

PAGE = 20_000
"""Rows in one query."""
Place = tuple[int, int]
"""The time of a request in milliseconds since 1970, and its version in the stream."""
MAX_NAMED = 50
"""Keys, and projects, that are listed: those with most requests."""
LAST = 2**62
"""A version after all others."""


async def counted_version(views: Views) -> int:
    """Return the version of the newest accepted request that is a row; 0 when there is none."""
    row = await views.query_one("SELECT coalesce(max(version), 0) FROM requests")
    return 0 if row is None else int(row[0])


async def accepted_after(views: Views, after: Place, version: int) -> tuple[list[RequestAccepted], Place]:
    """Return a page of the requests after a place, oldest first, up to a version, and the place of the last one; none
    when there are no more.
    """
    rows = await views.query(
        "SELECT accepted_at, api, organization_id, project_id, key_id, address, is_reader, fp, is_public, version"
        " FROM requests WHERE (accepted_at, version) > (?, ?) AND version <= ? ORDER BY accepted_at, version LIMIT ?",
        (*after, version, PAGE),
    )
    found = [
        RequestAccepted(
            accepted_at=datetime.fromtimestamp(at / 1000, UTC), api=api, organization_id=organization_id,
            project_id=project_id, key_id=key_id, address=address, is_reader=bool(is_reader), fp=fp,
            is_public=bool(is_public),
        )
        for at, api, organization_id, project_id, key_id, address, is_reader, fp, is_public, _ in rows
    ]  # fmt: skip
    return found, (rows[-1]["accepted_at"], rows[-1]["version"]) if rows else after


async def key_times(views: Views, since: int, until: int, version: int) -> list[tuple[str, list[int]]]:
    """Return the times of the assistant's requests with each key, after one time, at most another, up to a version;
    in milliseconds since 1970, in any order.
    """
    rows = await views.query(
        "SELECT key_id, json_group_array(accepted_at) FROM requests WHERE accepted_at > ? AND accepted_at <= ?"
        " AND version <= ? AND api = 'assistant' AND key_id <> '' GROUP BY key_id",
        (since, until, version),
    )
    return [(key_id, msgspec.json.decode(times, type=list[int])) for key_id, times in rows]


async def usage_by_day(views: Views, organization_id: str, last: date, days: int) -> tuple[UsageDayView, ...]:
    """Return the requests of each of the days up to the last one; also of days without any."""
    first = last - timedelta(days=days - 1)
    rows = await views.query(
        "SELECT day, sum(requests) FILTER (WHERE api = 'assistant'), sum(requests) FILTER (WHERE api = 'agent')"
        " FROM usage_days WHERE organization_id = ? AND day BETWEEN ? AND ? GROUP BY day",
        (organization_id, first.isoformat(), last.isoformat()),
    )
    found = {day: (assistant or 0, agent or 0) for day, assistant, agent in rows}
    all_days = [(first + timedelta(days=number)).isoformat() for number in range(days)]
    return tuple(UsageDayView(day, *found.get(day, (0, 0))) for day in all_days)


async def usage_by_key(views: Views, organization_id: str, last: date, days: int) -> tuple[UsageOfView, ...]:
    """Return the keys with most requests in that time; the requests without a key count as one, with an empty id."""
    return await _usage_by(views, "key_id", "(SELECT name FROM keys WHERE id = key_id)", (organization_id, last, days))


async def usage_by_project(views: Views, organization_id: str, last: date, days: int) -> tuple[UsageOfView, ...]:
    """Return the projects with most requests in that time."""
    return await _usage_by(
        views,
        "project_id",
        "(SELECT settings ->> 'name' FROM projects WHERE id = project_id)",
        (organization_id, last, days),
    )


async def _usage_by(views: Views, column: str, name: str, wanted: tuple[str, date, int]) -> tuple[UsageOfView, ...]:
    organization_id, last, days = wanted
    first = last - timedelta(days=days - 1)
    rows = await views.query(
        f"SELECT {column}, coalesce({name}, ''),"  # noqa: S608  (ours)
        " coalesce(sum(requests) FILTER (WHERE api = 'assistant'), 0),"
        " coalesce(sum(requests) FILTER (WHERE api = 'agent'), 0)"
        " FROM usage_days WHERE organization_id = ? AND day BETWEEN ? AND ?"
        f" GROUP BY {column} ORDER BY sum(requests) DESC, {column} LIMIT ?",
        (organization_id, first.isoformat(), last.isoformat(), MAX_NAMED),
    )
    return tuple(UsageOfView(*row) for row in rows)
