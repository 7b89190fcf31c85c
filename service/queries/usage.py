"""Accepted requests, for the limits that count them."""

from datetime import UTC, datetime

from eventstore import Views
from service.domain.access.usage import RequestAccepted

PAGE = 20_000
"""Rows in one query."""


async def accepted_since(views: Views, since: int, after_version: int) -> tuple[list[RequestAccepted], int]:
    """Return the next accepted requests after a version of their stream and a time, a page of them, and the version of
    the last; none when there are no more.
    """
    rows = await views.query(
        "SELECT accepted_at, api, organization_id, project_id, key_id, address, is_reader, fp, is_public, version"
        " FROM requests WHERE version > ? AND accepted_at > ? ORDER BY version LIMIT ?",
        (after_version, since, PAGE),
    )
    found = [
        RequestAccepted(
            accepted_at=datetime.fromtimestamp(at / 1000, UTC), api=api, organization_id=organization_id,
            project_id=project_id, key_id=key_id, address=address, is_reader=bool(is_reader), fp=fp,
            is_public=bool(is_public),
        )
        for at, api, organization_id, project_id, key_id, address, is_reader, fp, is_public, _ in rows
    ]  # fmt: skip
    return found, rows[-1][-1] if rows else after_version
