"""Memory that is free goes back to the system."""

import platform
import threading
from pathlib import Path

import pytest

from service.runtime import memory
from service.runtime.processes import run_in_child

MIB = 1 << 20
THREADS = 4

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="needs glibc: other C libraries have neither call"
)


def of_this_process(name):
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def held_before_and_after():
    """Of 60 MiB in small pieces, each tenth stays in use, so that the end of the heap does not come down by itself."""
    pieces = [bytes(2_000) for _ in range(60 * MIB // 2_000)]
    kept = pieces[::10]
    del pieces
    before = of_this_process("VmRSS")
    memory.give_back()
    return before, of_this_process("VmRSS"), len(kept)


def address_space_of_threads():
    """What threads that allocate at the same time add to it. An arena has 64 MiB, most of them never touched."""
    memory.keep_little()
    before, all_run = of_this_process("VmSize"), threading.Barrier(THREADS)
    threads = [threading.Thread(target=lambda: (all_run.wait(), bytes(2_000), all_run.wait())) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return of_this_process("VmSize") - before


def held_after_large_blocks():
    """A large block that is freed lets glibc put the next ones of its size among the small ones."""
    memory.keep_little()
    before = of_this_process("VmRSS")
    for _ in range(3):
        large = [b"x" * MIB for _ in range(60)]
        small = [b"x" * 2_000 for _ in range(2_000)]  # they come to lie behind
        del large
    return of_this_process("VmRSS") - before, len(small)


async def test_freed_memory_goes_back_to_the_system():
    before, after, _ = await run_in_child(held_before_and_after, timeout_seconds=120)
    assert before - after > 20 * MIB


async def test_threads_share_an_arena():
    assert await run_in_child(address_space_of_threads, timeout_seconds=120) < THREADS * 64 * MIB


async def test_large_blocks_go_back_at_once():
    more, _ = await run_in_child(held_after_large_blocks, timeout_seconds=120)
    assert more < 20 * MIB
