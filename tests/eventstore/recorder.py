"""Run by tests as another process: writes under load, and leaves a journal of what happened to the files.

Among what disk.py notes are ("told", stream, its version, position) once an append has returned, ("erasing",
stream) before an erasure and ("erased", stream, key) once it has returned.
"""

import asyncio
import pickle
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests.eventstore.disk import recording
from tests.eventstore.shapes import SHORT, noted, opened

WRITERS = 8
APPENDS = 60


async def main(folder: Path, synchronous: str) -> None:
    with recording() as journal:
        store = await opened(folder, synchronous=synchronous, bounds=SHORT)

        async def write(writer: int) -> None:
            for number in range(APPENDS):
                # Streams come and go, so that there are always new keys to be made.
                stream, version = f"load-{writer}-{number // 10}", number % 10
                new = [noted(number, "someone's words" * 20)] * (1 + number % 3 // 2)
                appended = await store.append(stream, new, expected_version=await store.stream_version(stream))
                journal.append(("told", stream, appended.stream_version, appended.position))
                if version == 9 and writer == 0:
                    key = key_of(folder, stream)
                    journal.append(("erasing", stream))
                    await store.erase(stream)
                    journal.append(("erased", stream, key))

        await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
        (folder / "journal").write_bytes(pickle.dumps(journal))
        await store.close()


def key_of(folder: Path, stream: str) -> bytes:
    with closing(sqlite3.connect(folder / "keys.db")) as db:
        (key,) = db.execute("SELECT key FROM keys WHERE subject = ?", (stream,)).fetchone()
        return bytes(key)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
