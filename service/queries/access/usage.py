"""Accepted requests: for the limits that count them, and how many there were."""

from datetime import UTC, date, datetime, timedelta

import msgspec

from eventstore import Views
from service.domain.access.usage import RequestAccepted
from service.queries.projects import list_projects_of
from service.views.access.usage import SiteCostView, UsageDayView, UsageOfView

NEWEST = 100
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


async def last_accepted(views: Views) -> int | None:
    """Return the earliest time of the newest requests, in milliseconds since 1970; None when there is none. The clock
    may have been ahead for some of them.
    """
    row = await views.query_one(
        "SELECT min(accepted_at) FROM (SELECT accepted_at FROM requests ORDER BY version DESC LIMIT ?)", (NEWEST,)
    )
    return None if row is None else row[0]


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


async def questions_by_hour(views: Views, project_id: str, first: int) -> dict[int, int]:
    """Return the questions of a site's readers in each hour that had any, from an hour on; hours count from 1970."""
    rows = await views.query(
        "SELECT hour, questions FROM reader_hours WHERE project_id = ? AND hour >= ?", (project_id, first)
    )
    return {row["hour"]: row["questions"] for row in rows}


async def cost_by_site(views: Views, organization_id: str, day: date, bound: float) -> tuple[SiteCostView, ...]:
    """Return the cost of each site's replies of a day; ``bound``: that of the installation, 0 for none."""
    rows = await views.query(
        "SELECT project_id, sum(cost_usd) AS usd FROM reply_days WHERE organization_id = ? AND day = ?"
        " GROUP BY project_id",
        (organization_id, day.isoformat()),
    )
    spent = {row["project_id"]: row["usd"] for row in rows}
    projects = await list_projects_of(views, organization_id, limit=MAX_NAMED)
    return tuple(
        SiteCostView(one.id, one.domain, spent.get(one.id, 0.0), one.max_cost_usd_day, bound) for one in projects
    )


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
