"""The faults: each a function of a folder, the number of rounds, a source of chance, and what it counts."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.outages.instances import kill_home, kill_instance, kill_with_log_away, pause_instance
from scripts.outages.jobs import kill_jobs
from scripts.outages.replies import kill_replies
from scripts.outages.site import Count, Lost, Site, site
from tests.service_process import free_port

Fault = Callable[[Path, int, random.Random, Count], None]


@contextlib.contextmanager
def busy(there: Site, count: Count) -> Iterator[None]:
    """Ask for jobs and answers meanwhile, in a thread."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            count.note(there.job())
            count.note(there.question())
            stop.wait(0.2)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=300)


def kill_serve(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 of the service while it works on jobs and answers"""
    with site(root) as there:
        for _ in range(rounds):
            count.rounds += 1
            with busy(there, count):
                time.sleep(chance.uniform(0.05, 2.0))
                there.service.kill()
            there.service.start()
        there.check()


def _kill_command(there: Site, chance: random.Random, longest: float, *arguments: str) -> bool:
    """Kill a command after a random part of the time that it takes; whether it had ended before."""
    process = there.begin(*arguments)
    try:
        process.wait(timeout=chance.uniform(0.0, longest))
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode == 0


def _seconds(there: Site, *arguments: str, data: Path | None = None) -> float:
    """How long a command takes that is left alone."""
    began = time.monotonic()
    process = there.begin(*arguments, data=data)
    _, problem = process.communicate(timeout=600)
    if process.returncode:
        raise Lost(f"{' '.join(arguments)}: {problem.strip()}")
    return time.monotonic() - began


def kill_index(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 in the middle of indexing, with a service beside it that answers"""
    with site(root) as there:
        longest = _seconds(there, "index", "--all", there.service.domain)
        for _ in range(rounds):
            count.rounds += 1
            _kill_command(there, chance, longest, "index", "--all", there.service.domain)
            count.note(there.question())
        _seconds(there, "index", "--all", there.service.domain)
        there.restart()
        if not there.question():
            raise Lost("the site does not answer after its indexing was killed")
        there.check()


def kill_backup(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 in the middle of a backup"""
    with site(root) as there:
        for _ in range(3):
            count.note(there.job())
        there.check()
        folder, vault = root / "backups", root / "vault.tar"
        folder.mkdir()
        longest = _seconds(there, "backup", str(folder), "--vault", str(vault))
        for _ in range(rounds):
            count.rounds += 1
            _kill_command(there, chance, longest, "backup", str(folder), "--vault", str(vault))
        _seconds(there, "backup", str(folder), "--vault", str(vault))
        for file in folder.glob("*.tar"):
            _seconds(there, "restore", str(file), "--vault", str(vault), "--dry-run", data=root / "new")
        there.check()


def kill_restore(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 in the middle of restoring a backup with its vault"""
    with site(root) as there:
        for _ in range(3):
            count.note(there.job())
        there.check()
        file, vault = root / "backup.tar", root / "vault.tar"
        _seconds(there, "backup", str(file), "--vault", str(vault))
        there.service.stop()
        kept, there.service.data = there.service.data, root / "first"
        longest = _seconds(there, "restore", str(file), "--vault", str(vault))
        for number in range(rounds):
            count.rounds += 1
            there.service.data = root / f"copy-{number}"
            if not _kill_command(there, chance, longest, "restore", str(file), "--vault", str(vault)):
                if (there.service.data / "events.db").exists():  # it was in place when the command died
                    there.service.cli("audit", "verify")
                    continue
                shutil.rmtree(there.service.data, ignore_errors=True)
                _seconds(there, "restore", str(file), "--vault", str(vault))
            there.service.cli("audit", "verify")
        there.service.data = kept
        there.service.start()
        there.check()


def kill_erase(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 in the middle of erasing a thread"""
    with site(root) as there:
        threads = [thread for _ in range(rounds + 1) if (thread := there.question())]
        if not all(_has_key(there.service.data, f"thread-{thread}") for thread in threads):
            raise Lost("an answer was read whose thread has no key in the vault")
        longest = _seconds(there, "audit", "erase", f"thread-{threads[0]}", "--yes")
        for thread in threads[1:]:
            count.rounds += 1
            subject = f"thread-{thread}"
            count.note(_kill_command(there, chance, longest, "audit", "erase", subject, "--yes"))
            _repeat_erasure(there, subject)
        if left := [subject for subject in threads if _has_key(there.service.data, f"thread-{subject}")]:
            raise Lost(f"the keys of {len(left)} erased threads are still in the vault")
        there.check()


def _repeat_erasure(there: Site, subject: str) -> None:
    process = there.begin("audit", "erase", subject, "--yes")
    process.communicate(timeout=600)  # 1: it had been erased


def _has_key(data: Path, subject: str) -> bool:
    with contextlib.closing(sqlite3.connect(f"file:{data / 'keys.db'}?mode=ro", uri=True)) as db:
        (table,) = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'keys'")
        ]
        (found,) = db.execute(
            f"SELECT count(*) FROM {table} WHERE subject = ? AND key IS NOT NULL", (subject,)
        ).fetchone()
    return bool(found)


MIGRATE = """
import sys
from contextlib import closing
from pathlib import Path
from eventstore.sqlite import files
path, schema = Path(sys.argv[1]), sys.argv[2]
with closing(files.connect(path)) as db:
    files.use_wal(db, path)
    files.migrate(db, f"tests.eventstore.schemas.{schema}", 1, path, keep=True)
    if schema == "first":
        db.executemany("INSERT INTO notes VALUES (?)", [(f"note {n}",) for n in range(20_000)])
"""


def kill_migrate(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 while a file is brought to the next version"""
    first, path = root / "first.db", root / "notes.db"
    subprocess.run([sys.executable, "-c", MIGRATE, str(first), "first"], check=True)
    began = time.monotonic()
    shutil.copy(first, path)
    subprocess.run([sys.executable, "-c", MIGRATE, str(path), "second"], check=True)
    longest = time.monotonic() - began
    for _ in range(rounds):
        count.rounds += 1
        for file in root.iterdir():
            if file != first:
                file.unlink()
        shutil.copy(first, path)
        process = subprocess.Popen([sys.executable, "-c", MIGRATE, str(path), "second"])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0, longest))
        process.kill()
        process.wait()
        subprocess.run([sys.executable, "-c", MIGRATE, str(path), "second"], check=True)
        with contextlib.closing(sqlite3.connect(path)) as db:
            (rows,) = db.execute("SELECT count(*) FROM notes").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
        names = sorted(file.name for file in root.iterdir() if file.name.startswith("."))
        if (rows, version, names) != (20_000, 2, []):
            raise Lost(f"{rows} of 20,000 rows, version {version}, left {names}")
        count.note(acknowledged=True)


def rebuild_views(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 while read tables that were deleted are rebuilt at a start"""
    with site(root) as there:
        for _ in range(3):
            count.note(there.job())
        there.check()
        for _ in range(rounds):
            count.rounds += 1
            there.service.kill()
            for file in there.service.data.glob("views.db*"):
                file.unlink()
            process = there.begin("serve", "--port", "0")
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            process.communicate()
            there.service.start()
        there.check()


def disk_full(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """no file may grow, as on a full disk, for a moment"""
    with site(root) as there:
        for _ in range(rounds):
            count.rounds += 1
            with busy(there, count):
                time.sleep(chance.uniform(0.05, 1.0))
                assert there.service.process is not None
                pid = there.service.process.pid
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
                time.sleep(chance.uniform(0.1, 1.5))
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
                time.sleep(0.2)
        there.check()


def few_descriptors(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """128 file descriptors and twice the number of connections"""
    with site(root) as there:
        assert there.service.process is not None
        _, hard = resource.prlimit(there.service.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(there.service.process.pid, resource.RLIMIT_NOFILE, (128, hard))
        host, port = there.service.url.removeprefix("http://").split(":")
        for _ in range(rounds):
            count.rounds += 1
            held = []
            for _ in range(256):
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection((host, int(port)), timeout=5))
            time.sleep(chance.uniform(0.1, 0.5))
            for one in held:
                one.close()
            count.note(there.job())
            count.note(there.question())
        lines = len(there.service.log().splitlines())
        if lines > 200 + 60 * rounds:
            raise Lost(f"the log has {lines} lines")
        resource.prlimit(there.service.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        there.check()


def little_memory(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """a limit of memory that the service meets at times"""
    with site(root) as there:
        for _ in range(rounds):
            count.rounds += 1
            assert there.service.process is not None
            pid = there.service.process.pid
            _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
            status = Path(f"/proc/{pid}/status").read_text()
            held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:")) * 1024
            with busy(there, count):
                more = chance.choice((chance.randint(0, 8 << 20), chance.randint(8 << 20, 96 << 20)))
                resource.prlimit(pid, resource.RLIMIT_DATA, (held + more, hard))
                time.sleep(chance.uniform(0.5, 2.0))
                if there.service.process.poll() is None:
                    resource.prlimit(pid, resource.RLIMIT_DATA, (hard, hard))
            if there.service.process.poll() is not None:
                there.restart()  # as its supervisor does
        if not count.acknowledged:
            raise Lost("nothing was acknowledged, so nothing could be lost")
        there.check()


def clock(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """a wall clock that steps forward by 45 minutes and back again"""
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
    if library is None:
        raise Lost("sets the clock of a process: install Debian's package faketime")
    steps = root / "clock"
    steps.write_text("+0")
    settings = {
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(steps), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    with site(root, settings) as there:
        for number in range(rounds):
            count.rounds += 1
            with busy(there, count):
                time.sleep(chance.uniform(0.1, 0.5))
                steps.write_text("+0" if number % 2 else "+2700")
                time.sleep(chance.uniform(0.1, 1.0))
        there.check()


def provider_gone(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """a model provider that is not there, by address and by name; other work goes on"""
    settings = {
        "DOCSMITH_ASSISTANT__MODEL": "gone",
        "DOCSMITH_MODELS__GONE__MODEL": "openai/gone",
        "DOCSMITH_MODELS__GONE__API_BASE": f"http://127.0.0.1:{free_port()}/v1"
        if chance.random() < 0.5 else "http://provider.invalid/v1",
        "DOCSMITH_MODELS__GONE__API_KEY_ENV": "GONE_KEY",
        "GONE_KEY": "sk-gone",
        "DOCSMITH_AGENT__MODEL": "builtin",
    }  # fmt: skip
    with site(root, settings) as there:
        for _ in range(rounds):
            count.rounds += 1
            if there.question():
                raise Lost("a provider that is not there has answered")
            count.note(there.job())
        there.check()


def signals(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """storms of SIGHUP and SIGCONT, then several SIGTERM at once"""
    with site(root) as there:
        for _ in range(rounds):
            count.rounds += 1
            with busy(there, count):
                assert there.service.process is not None
                process = there.service.process
                for _ in range(100):
                    process.send_signal(chance.choice([signal.SIGHUP, signal.SIGCONT, signal.SIGWINCH]))
                time.sleep(chance.uniform(0, 0.5))
                for _ in range(5):
                    process.send_signal(signal.SIGTERM)
                status = process.wait(timeout=60)
            if status != 0:
                raise Lost(f"it ended with {status} at SIGTERM")
            there.restart()
        there.check()


def read_only(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """a data folder that cannot be written, at a start"""
    del chance
    setpriv = shutil.which("setpriv")
    with site(root, start=False) as there:
        for _ in range(rounds):
            count.rounds += 1
            places = [there.service.data, *there.service.data.glob("*.db*")]
            modes = {place: place.stat().st_mode for place in places}
            for place in places:
                place.chmod(0o500 if place.is_dir() else 0o400)
            command = [
                sys.executable,
                "-m",
                "service",
                "search",
                there.service.domain,
                "install",
                "--data",
                str(there.service.data),
            ]
            if os.getuid() == 0 and setpriv:
                command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            for place, mode in modes.items():
                place.chmod(mode)
            if done.returncode not in (0, 1) or "Traceback" in done.stderr:
                raise Lost(
                    f"search in a folder that cannot be written ended with {done.returncode}: {done.stderr[-300:]}"
                )
            count.note(done.returncode == 0)
        there.service.start()
        there.check()


FAULTS: dict[str, Fault] = {
    "kill-serve": kill_serve,
    "kill-jobs": kill_jobs,
    "kill-replies": kill_replies,
    "kill-index": kill_index,
    "kill-backup": kill_backup,
    "kill-restore": kill_restore,
    "kill-erase": kill_erase,
    "kill-migrate": kill_migrate,
    "kill-rebuild": rebuild_views,
    "disk-full": disk_full,
    "descriptors": few_descriptors,
    "memory": little_memory,
    "clock": clock,
    "provider": provider_gone,
    "signals": signals,
    "read-only": read_only,
    "kill-instance": kill_instance,
    "pause-instance": pause_instance,
    "kill-home": kill_home,
    "kill-log-away": kill_with_log_away,
}
"""By name; a docstring says what happens."""
