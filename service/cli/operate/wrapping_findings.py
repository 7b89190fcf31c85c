"""Findings of ``docsmith doctor`` about a wrapped vault."""

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from service.cli.operate.surroundings import Finding
from service.cli.output import named
from service.integrity.log_place import VAULT_SECRET
from service.runtime.settings.settings import VaultSection

if TYPE_CHECKING:
    from eventstore import LogPlace

OVERDUE = timedelta(days=3)
"""For a change of the wrapping key to reach all instances, after which something hinders it."""


def look_at_wrapping(place: "LogPlace", settings: VaultSection, now: datetime) -> Iterator[Finding]:
    """Yield what is to be said of the wrapping keys; nothing for a vault that is not wrapped. It blocks."""
    if place.is_local:
        return
    from eventstore.postgres.place import TablePlace

    assert isinstance(place, TablePlace)
    with closing(place.rotation(read_only=True)) as rotation:
        rows, here = rotation.rows(), rotation.keys.ids()
        plain = rotation.unwrapped() if rows else 0
        is_rewritten = not rows or rotation.is_rewritten()
    current = next((row for row in rows if row.state == "current"), None)
    if current is None:
        return
    lacking = [row.id for row in rows if row.id not in here and (row.living or row is current)]
    if lacking:
        yield Finding(
            "wrapping keys", "wrong", f"Keys of the vault are wrapped under {named(lacking)}, which is not here.",
            "docsmith vault import FILE   # or start the service beside a running instance",
        )  # fmt: skip
    if plain:
        yield Finding("wrapping keys", "wrong", f"{plain} keys of the vault are not wrapped.", "docsmith vault wrap")
    elif not is_rewritten:
        yield Finding(
            "wrapping keys", "wrong", "Files of the database may still have keys as they were before wrapping.",
            "docsmith vault wrap   # with all instances stopped",
        )  # fmt: skip
    if left := [row.id for row in rows if row.state == "destroyed" and row.id in here]:
        says = f"{named(left)} should be destroyed, and its file is still here."
        yield Finding("wrapping keys", "wrong", says, "docsmith serve   # deletes it")
    if current.copied_at is None:
        alone = len(current.holders) < 2
        says = "No other instance has the wrapping key" if alone else "Only the instances have the wrapping key"
        yield Finding(
            "wrapping keys", "wrong" if alone else "note",
            f"{says}, and there is no copy of it. Without it, what people typed can never be read again.",
            'docsmith vault export FILE   # or [vault] copies = "/mnt/safe/wrapping-keys"',
        )  # fmt: skip
    if len(current.holders) > 1 and not os.environ.get(VAULT_SECRET):
        says = f"Instances give each other no wrapping key, since {VAULT_SECRET} is not set."
        yield Finding(
            "wrapping keys", "wrong", says, f"{VAULT_SECRET}=$(openssl rand -hex 32)   # the same for all instances"
        )
    since = datetime.fromisoformat(current.created_at)
    rotate, keep = timedelta(days=settings.rotate_days), timedelta(days=settings.keep_days)
    reached = since + rotate + keep
    if now - since > rotate + OVERDUE:
        yield Finding(
            "wrapping keys", "wrong", f"The wrapping key is of {since:%Y-%m-%d}, and should have been replaced by now.",
            "docsmith vault status   # all instances must have the next one",
        )  # fmt: skip
    else:
        yield Finding(
            "wrapping keys", "ok",
            f"What is erased today cannot be read from archives of the database after {reached:%Y-%m-%d}.",
        )  # fmt: skip
