"""Run by tests as another process: starts writers of one log, kills each at a random instant, prints what they told.

The writers are forked, which takes a hundredth of what starting an interpreter does. Nothing runs here but this: a
process with threads, such as the test's, must not fork.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from eventstore import Views
from tests.eventstore.shapes import SHORT, noted, opened
from tests.eventstore.test_views import Texts

WRITERS = 10


async def write(folder: Path, name: str, told: int) -> None:
    """Write and project without end, and tell what was acknowledged, a line for each append."""
    async with (
        await opened(folder, bounds=SHORT) as store,
        await Views.open(folder / "views.db", store, [Texts()]) as views,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(views.run())

        async def append(writer: int) -> None:
            stream, version = f"load-{name}-{writer}", 0
            while True:
                new = [noted(version, "someone's words")] * (1 + version % 2)
                appended = await store.append(stream, new, expected_version=version)
                version = appended.stream_version
                os.write(told, json.dumps([stream, version, appended.position]).encode() + b"\n")

        for writer in range(WRITERS):
            tasks.create_task(append(writer))


def one_round(folder: Path, name: str, chance: random.Random) -> bytes:
    """Let a writer live for a while; what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        asyncio.run(write(folder, name, writing))
        os._exit(1)
    os.close(writing)
    output = b""
    # Before it is ready, or a while after the first that it told: both are instants to die at.
    dies_at = time.monotonic() + (chance.random() * 0.05 if chance.random() < 0.2 else 60)
    while (left := dies_at - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            if not output:
                dies_at = time.monotonic() + chance.random() * 0.06
            read = os.read(reading, 1 << 16)
            if not read:
                raise SystemExit("a writer died by itself")
            output += read
    os.kill(child, signal.SIGKILL)
    while read := os.read(reading, 1 << 16):  # what it had told before it died
        output += read
    os.close(reading)
    os.waitpid(child, 0)
    return output[: output.rfind(b"\n") + 1]


def main(folder: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(rounds):
        sys.stdout.buffer.write(one_round(folder, f"r{number}", chance))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
