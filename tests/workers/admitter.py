"""A process that asks for admissions all at once: ``python admitter.py DATA LIMIT REQUESTS``."""

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from eventstore import Append, EventStore, Metadata, NewEvent, SQLiteEventStore, Views
from service.domain.access.usage import Limits, RequestAccepted
from service.projections import all_projections
from service.runtime.system import new_id, now
from service.workers.admission.admissions import Admissions, OverLimit

REQUEST = RequestAccepted("assistant", datetime(2026, 1, 2, tzinfo=UTC), "org", "project", "key", "address")


async def admissions_of(
    data: Path, limits: Limits, store: EventStore, clock=now, turns=None, steady=None
) -> Admissions:
    async with await Views.open(data / "views.db", store, all_projections()) as views:
        await views.catch_up()
        steady = time.monotonic if clock is now else steady or (lambda: clock().timestamp())
        admissions = Admissions(store, limits, b"secret", clock, turns=turns, steady=steady)
        await admissions.load(views)
    return admissions


def something() -> Append:
    """What a request asks for: an event in a stream of its own."""
    return Append(f"asked-{new_id()}", (NewEvent("asked", b"{}"),), 0)


async def ask(admissions: Admissions, request: RequestAccepted = REQUEST) -> bool:
    try:
        await admissions.append(request, Metadata(), [something()])
    except OverLimit:
        return False
    return True


async def main(data: Path, limit: int, requests: int) -> None:
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        admissions = await admissions_of(data, Limits(limit, 0, 0, 0), store)
        print("ready", flush=True)  # noqa: T201  (its parent reads it)
        sys.stdin.readline()
        letting_in = asyncio.create_task(admissions.run())
        outcomes = await asyncio.gather(*(ask(admissions) for _ in range(requests)))
        letting_in.cancel()
        await asyncio.wait([letting_in])
    print(json.dumps({"accepted": sum(outcomes), "refused": len(outcomes) - sum(outcomes)}), flush=True)  # noqa: T201  (its parent reads it)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
