"""Run by tests as another process: appends, and prints what was acknowledged, one JSON list a line."""

import asyncio
import json
import sys
from pathlib import Path

from tests.eventstore.backends import BACKENDS
from tests.eventstore.shapes import noted

WRITERS = 10


async def main(backend: str, folder: Path, name: str, total: int) -> None:
    async with await BACKENDS[backend].open(folder) as store:

        async def write(writer: int) -> None:
            stream = f"load-{name}{writer}"
            for version in range(total // WRITERS):
                appended = await store.append(stream, [noted(version, "someone's words")], expected_version=version)
                sys.stdout.write(json.dumps([stream, appended.stream_version, appended.position]) + "\n")
                sys.stdout.flush()

        await asyncio.gather(*(write(writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
