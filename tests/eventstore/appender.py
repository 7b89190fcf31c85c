"""Run by tests as another process: appends, and prints what was acknowledged, one JSON list a line."""

import asyncio
import itertools
import json
import sys
from pathlib import Path

from tests.eventstore.shapes import noted, opened

WRITERS = 10


async def main(folder: Path, mode: str, name: str, total: int) -> None:
    async with await opened(folder) as store:
        each = total // WRITERS

        async def write(writer: int) -> None:
            stream = f"load-{name}{writer}"
            for version in range(each) if mode == "count" else itertools.count():
                appended = await store.append(stream, [noted(version, "someone's words")], expected_version=version)
                sys.stdout.write(json.dumps([stream, appended.stream_version, appended.position]) + "\n")
                sys.stdout.flush()

        await asyncio.gather(*(write(writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int((sys.argv[4:] or ["0"])[0])))
