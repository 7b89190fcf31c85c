"""Run by tests as another process, which appends while the log's flushes fail, prints what came of it and is gone.

    python -m tests.eventstore.unflushed FOLDER FAILURES

FAILURES: how many flushes of the WAL fail, after the first append. Printed is a JSON object: the outcome of each of
some appends, and the head at the end. It ends as a kill does, with nothing closed.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from eventstore import EventStoreError, SQLiteEventStore
from tests.eventstore.disk import recording
from tests.eventstore.shapes import noted, opened


async def main(folder: Path, failures: int) -> None:
    left = 0

    def fails(file: str) -> bool:
        nonlocal left
        if file != "events.db-wal" or left == 0:
            return False
        left -= 1
        return True

    with recording(fails):
        store = await opened(folder)
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        left = failures
        told = {
            "without an id": await outcome(store, "note-1", 1, ""),
            "with an id": await outcome(store, "note-1", 1, "an-id"),
            "head": await store.head(),
        }
        sys.stdout.write(json.dumps(told))
        sys.stdout.flush()
        os._exit(0)


async def outcome(store: SQLiteEventStore, stream: str, version: int, event_id: str) -> str:
    try:
        appended = await store.append(stream, [noted(2, "more", event_id=event_id)], expected_version=version)
    except EventStoreError as error:
        return type(error).__name__
    return f"version {appended.stream_version}"


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
