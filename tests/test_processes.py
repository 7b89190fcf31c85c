"""Work in a child process: its result, errors, limits and end."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.domain.errors import Conflict, Invalid, RateLimited, Unavailable
from service.runtime.processes import RemoteTraceback, run_in_child, watch_memory

LIMIT = 512 * 1024 * 1024


class Unpicklable(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(one)


def add(one, other):
    return one + other


def fail(kind):
    if kind == "conflict":
        raise Conflict("Taken.", code="branch_moved")
    if kind == "invalid":
        raise Invalid("Wrong.", problems=(("$.a", "missing"),))
    if kind == "limited":
        raise RateLimited("Slowly.", retry_after_seconds=7)
    if kind == "key":
        raise KeyError("k")
    raise Unpicklable("one", "other")


def fill_memory():
    return len(bytearray(4 * LIMIT))


def fill_watched_memory():
    watch_memory(LIMIT // 2)
    filled = []
    while len(filled) < 1024:
        filled.append(b"x" * (1 << 20))
    signal.pause()


def wrapped_memory_error():
    try:
        bytearray(4 * LIMIT)
    except MemoryError as error:
        raise ValueError("damaged") from error


def die(number):
    os.kill(os.getpid(), number)


def chance_to_be_killed():
    return int(Path("/proc/self/oom_score_adj").read_text())


def leave():
    sys.exit(3)


def wait_forever(file):
    Path(file).write_text(str(os.getpid()))
    signal.pause()


def send_interrupt_to_self():
    os.kill(os.getpid(), signal.SIGINT)
    return "still here"


def count(to, report):
    for number in range(to):
        report(number)
    return to


def large():
    return b"x" * 20_000_000


def not_picklable():
    return lambda: None


def parent_of_waiting(file):
    asyncio.run(run_in_child(wait_forever, file, timeout_seconds=60))


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def started(file):
    """The process that writes its id into the pipe ``file``."""
    async with asyncio.timeout(120):
        return int(await asyncio.to_thread(file.read_text))


async def ended(descriptor):
    """The process of a descriptor that was opened while it ran: its id may be nobody's by now."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        async with asyncio.timeout(120):
            await done.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_the_result_comes_back():
    assert await run_in_child(add, [1], [2], timeout_seconds=120) == [1, 2]
    assert len(await run_in_child(large, timeout_seconds=120)) == 20_000_000


async def test_an_error_comes_back_as_it_was():
    with pytest.raises(Conflict, match="Taken") as conflict:
        await run_in_child(fail, "conflict", timeout_seconds=120)
    assert conflict.value.code == "branch_moved"
    with pytest.raises(Invalid) as invalid:
        await run_in_child(fail, "invalid", timeout_seconds=120)
    assert invalid.value.problems == (("$.a", "missing"),)
    with pytest.raises(RateLimited) as limited:
        await run_in_child(fail, "limited", timeout_seconds=120)
    assert limited.value.retry_after_seconds == 7
    with pytest.raises(KeyError) as key:
        await run_in_child(fail, "key", timeout_seconds=120)
    assert isinstance(key.value.__cause__, RemoteTraceback)
    assert 'raise KeyError("k")' in str(key.value.__cause__)


async def test_unpicklable_value_becomes_an_error_that_can_be_pickled():
    with pytest.raises(RuntimeError, match="Unpicklable: one"):
        await run_in_child(fail, "other", timeout_seconds=120)
    with pytest.raises((AttributeError, RuntimeError)):
        await run_in_child(not_picklable, timeout_seconds=120)
    with pytest.raises((AttributeError, TypeError)):
        await run_in_child(lambda: None, timeout_seconds=120)


async def test_progress_arrives_in_order_before_the_result():
    seen = []
    assert await run_in_child(count, 500, timeout_seconds=120, on_progress=seen.append) == 500
    assert seen == list(range(500))


async def test_more_memory_than_allowed_is_refused():
    for function in (fill_memory, wrapped_memory_error):
        with pytest.raises(Invalid) as refused:
            await run_in_child(function, timeout_seconds=120, memory_bytes=LIMIT)
        assert refused.value.code == "out_of_memory"


async def test_a_child_that_dies_is_unavailable():
    with pytest.raises(Unavailable, match="-15") as died:
        await run_in_child(die, signal.SIGTERM, timeout_seconds=120)
    assert died.value.code == "process_died"
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await run_in_child(leave, timeout_seconds=120)


async def test_child_that_watches_its_memory_ends_above_the_limit():
    with pytest.raises(Invalid) as refused:
        await run_in_child(fill_watched_memory, timeout_seconds=60, memory_bytes=8 * LIMIT)
    assert refused.value.code == "out_of_memory"


async def test_child_killed_by_the_system_is_out_of_memory():
    with pytest.raises(Unavailable, match="out of memory") as killed:
        await run_in_child(die, signal.SIGKILL, timeout_seconds=120)
    assert killed.value.code == "out_of_memory"


@pytest.mark.skipif(sys.platform != "linux", reason="another system chooses otherwise")
async def test_child_with_a_memory_limit_dies_before_the_service():
    assert await run_in_child(chance_to_be_killed, timeout_seconds=120, memory_bytes=LIMIT) == 1000
    assert await run_in_child(chance_to_be_killed, timeout_seconds=120) < 1000


async def test_a_timeout_kills_it(tmp_path):
    with pytest.raises(Unavailable, match="longer than") as late:
        await run_in_child(wait_forever, str(tmp_path / "pid"), timeout_seconds=1)
    assert late.value.code == "timed_out"
    written = (tmp_path / "pid").read_text() if (tmp_path / "pid").is_file() else ""
    assert not written or not is_running(int(written))  # on a busy machine it may not have come so far


async def test_cancellation_kills_the_child_before_the_caller_goes_on(tmp_path):
    file = tmp_path / "pid"
    os.mkfifo(file)
    task = asyncio.create_task(run_in_child(wait_forever, str(file), timeout_seconds=60))
    pid = await started(file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(pid)


async def test_cancellation_at_once_leaves_nothing_behind(tmp_path):
    task = asyncio.create_task(run_in_child(wait_forever, str(tmp_path / "pid"), timeout_seconds=60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_ctrl_c_is_the_parents_business():
    assert await run_in_child(send_interrupt_to_self, timeout_seconds=120) == "still here"


async def test_child_dies_with_its_parent(tmp_path):
    file = tmp_path / "pid"
    os.mkfifo(file)
    code = f"from tests.test_processes import *\nif __name__ == '__main__':\n    parent_of_waiting({str(file)!r})"
    script = tmp_path / "parent.py"
    script.write_text(code)
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    parent = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    pid = await started(file)
    descriptor = os.pidfd_open(pid)
    parent.kill()
    await parent.wait()
    await ended(descriptor)


async def test_event_loop_runs_on_meanwhile():
    loop, worst = asyncio.get_running_loop(), 0.0
    begun = loop.time()
    task = asyncio.create_task(run_in_child(large, timeout_seconds=120))
    while not task.done():
        before = loop.time()
        await asyncio.sleep(0)
        worst = max(worst, loop.time() - before)
    await task
    # Bounds for a noisy machine. To start the first process takes longer than that, and most of the time, if it blocks.
    assert worst < max(0.25, (loop.time() - begun) / 2)


@pytest.mark.slow
async def test_many_run_side_by_side():
    before = time.monotonic()
    assert await asyncio.gather(*(run_in_child(add, n, 1, timeout_seconds=60) for n in range(8))) == list(range(1, 9))
    assert time.monotonic() - before < 60


# Limits that the system sets.

FORBID_LIMITS = """
import ctypes, platform, struct
number = {"x86_64": 302, "aarch64": 261}[platform.machine()]  # prlimit64, which setrlimit(3) is made of
refuse = 0x00050000 | 1  # SECCOMP_RET_ERRNO, EPERM
lines = [(0x20, 0, 0, 0), (0x15, 0, 4, number), (0x20, 0, 0, 32), (0x15, 0, 1, 0), (0x06, 0, 0, 0x7FFF0000),
         (0x06, 0, 0, refuse), (0x06, 0, 0, 0x7FFF0000)]  # only with a new limit: to read them is allowed
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
libc = ctypes.CDLL(None, use_errno=True)
refused = libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filter), 0, 0)
if refused:
    raise SystemExit(77)
"""
"""PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP: as systemd's SystemCallFilter does it, for this process and its children."""

CHILD = """
import asyncio
from service.domain.errors import ServiceError
from service.runtime.processes import run_in_child
try:
    print(asyncio.run(run_in_child(len, "three", timeout_seconds=60, memory_bytes={memory_bytes})))
except ServiceError as error:
    print(error.code, error)
"""


def program(*lines, hard_limit=None):
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({hard_limit},) * 2)" if hard_limit else ""
    script = "\n".join([limit, *lines])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 77:
        pytest.skip("filters system calls, which is not allowed here")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_stricter_limit_of_the_system_stays():
    assert program(CHILD.format(memory_bytes=2 * LIMIT * 4), hard_limit=LIMIT * 4) == "5\n"


def test_without_memory_limits_nothing_runs_and_it_says_why():
    told = program(FORBID_LIMITS, CHILD.format(memory_bytes=LIMIT))
    assert told.startswith("not_limited This system does not let the service limit the memory")
    assert "Operation not permitted" in told or "not allowed" in told
    assert program(FORBID_LIMITS, CHILD.format(memory_bytes=None)) == "5\n"


def test_fewer_open_files_allow_fewer_connections():
    fewer = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (600, 1200))"
    asked = (
        "from service.main.process.listening import room_for; "
        "print(room_for(5000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    assert program(fewer, asked).split()[-2:] == ["944", "1200"]
    assert program(fewer, FORBID_LIMITS, asked).split()[-2:] == ["344", "600"]
