"""Accepted requests, for the limits that count them."""

from datetime import UTC, datetime

import msgspec

from eventstore import Views
from service.domain.access.usage import RequestAccepted

PAGE = 20_000
"""Rows in one query."""
Place = tuple[int, int]
"""The time of a request in milliseconds since 1970, and its version in the stream."""
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
