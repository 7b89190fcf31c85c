"""The first part of the single binary, with a program of its own that only tells how it was started."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.main.process import frozen

SCRIPTS = Path(__file__).parents[2] / "scripts"
PROGRAM = """\
#!/bin/sh
cat "${0%/*}/lib/words.txt"
echo "folder=${0%/*}"
echo "program=$_DOCSMITH_PROGRAM lock=$_DOCSMITH_LOCK temporary=$_DOCSMITH_TEMPORARY"
echo "arguments=$1,$2"
"""
COMPILER = shutil.which(os.environ.get("CC", "cc"))
pytestmark = pytest.mark.skipif(COMPILER is None, reason="compiles the launcher; install gcc to run it")


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    file = tmp_path_factory.mktemp("launcher") / "launcher"
    source = str(SCRIPTS / "launcher.c")
    subprocess.run(
        [COMPILER, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", file, source, "-l:libz.so.1"], check=True
    )
    return file


@pytest.fixture(scope="session")
def packed(tmp_path_factory, launcher):
    folder = tmp_path_factory.mktemp("packed")
    content = folder / "content"
    (content / "lib").mkdir(parents=True)
    (content / "docsmith").write_text(PROGRAM)
    (content / "docsmith").chmod(0o755)
    (content / "lib" / "words.txt").write_text("words\n")
    (content / "lib" / "large.bin").write_bytes(os.urandom(600_000))
    (content / "link").symlink_to("lib/words.txt")
    for name in ("docsmith", "again"):
        subprocess.run([sys.executable, SCRIPTS / "pack_binary.py", launcher, content, folder / name], check=True)
    return folder


@pytest.fixture
def binary(packed):
    """In a folder under /tmp: nobody but us may write above the cache, whatever pytest's own folder is."""
    folder = Path("/tmp") / f"docsmith-launcher-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir(mode=0o755)
    for name in ("home", "tmp"):
        (folder / name).mkdir(mode=0o755)
    yield shutil.copy(packed / "docsmith", folder / "docsmith")
    shutil.rmtree(folder)


def start(binary, *arguments, status=0, preexec_fn=None, **environment):
    folder = binary.parent
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home"), **environment}
    done = subprocess.run(
        [binary, *arguments], capture_output=True, text=True, env=env, cwd="/", check=False, preexec_fn=preexec_fn
    )
    assert done.returncode == status, done.stderr
    told = dict(pair.split("=", 1) for line in done.stdout.splitlines() for pair in line.split(" ") if "=" in pair)
    return told, done.stdout + done.stderr


def unpacked(binary, *arguments, **environment):
    """The folder that it ran from."""
    told, said = start(binary, *arguments, **environment)
    assert said.startswith("words\n")
    return Path(told["folder"]), told


def test_launcher_unpacks_once_and_passes_arguments_and_path(binary):
    folder, told = unpacked(binary, "serve", "--port")
    assert folder.parent == binary.parent / "home" / ".cache" / "docsmith"
    assert (told["arguments"], told["program"], told["temporary"]) == ("serve,--port", str(binary), "")
    before = {path: path.stat().st_ino for path in folder.rglob("*")}
    again, _ = unpacked(binary)
    assert again == folder
    assert {path: path.stat().st_ino for path in folder.rglob("*")} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert (folder / "link").readlink() == Path("lib/words.txt")


def test_closed_standard_output_never_writes_into_its_files(binary):
    """The kernel gives the number of a closed stream to the next file that is opened."""

    def close_all():
        for stream in (0, 1, 2):
            os.close(stream)

    for _ in ("unpacked", "kept"):
        assert start(binary, preexec_fn=close_all) == ({}, "")
    (kept,) = (binary.parent / "home" / ".cache" / "docsmith").iterdir()
    assert (kept / "lib" / "words.txt").read_text() == "words\n"
    assert (kept / "docsmith").read_text() == PROGRAM


def test_the_folder_is_where_systemd_or_the_user_says(binary):
    cache = binary.parent / "elsewhere"
    assert unpacked(binary, XDG_CACHE_HOME=str(cache))[0].parent == cache / "docsmith"
    assert unpacked(binary, XDG_CACHE_HOME="here")[0].parent.name == "docsmith"  # the standard: such a one is ignored
    assert unpacked(binary, CACHE_DIRECTORY=f"{cache}:/b")[0].parent == cache


def test_nothing_is_run_that_others_could_have_written(binary):
    """Else they would have us run what they like."""
    home, cache = binary.parent / "home", binary.parent / "home" / ".cache" / "docsmith"
    kept, _ = unpacked(binary)
    for folder in (cache, cache.parent, home):
        folder.chmod(0o777)
        temporary, told = unpacked(binary)
        assert (temporary.parent, told["temporary"]) == (binary.parent / "tmp", "1")
        folder.chmod(0o1777 if folder == home else 0o755)  # sticky: only a folder's owner can rename it
    assert unpacked(binary)[0] == kept
    shutil.rmtree(kept)
    kept.symlink_to(binary.parent)
    told, said = start(binary)
    assert told["folder"] != str(kept)
    assert said.startswith("words\n")
    if os.geteuid() == 0:
        kept.unlink()
        os.chown(cache, 65534, 65534)
        assert unpacked(binary)[1]["temporary"] == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run it as somebody else")
def test_folder_unpacked_by_root_is_run_by_others(binary):
    """As in a container, whose own files nobody can write."""
    cache = binary.parent / "cache"
    cache.mkdir(mode=0o755)
    kept, _ = unpacked(binary, XDG_CACHE_HOME=str(cache))
    (kept / "docsmith-checked").write_text("another boot")
    done = subprocess.run(
        [binary], env={"XDG_CACHE_HOME": str(cache), "PATH": os.environ["PATH"]}, capture_output=True, text=True,
        user=65534, group=65534, extra_groups=[], cwd="/", check=True,
    )  # fmt: skip
    assert f"folder={kept}\n" in done.stdout
    assert (kept / "docsmith-checked").read_text() == "another boot"


def test_damaged_folder_is_unpacked_again(binary):
    kept, _ = unpacked(binary)
    (kept / "lib" / "words.txt").write_text("")  # as after a power cut
    assert unpacked(binary)[0] == kept
    (kept / "lib" / "large.bin").unlink()
    assert unpacked(binary)[0] == kept
    assert (kept / "lib" / "large.bin").stat().st_size == 600_000


def test_the_first_start_after_a_boot_checks_all_of_it(binary):
    kept, _ = unpacked(binary)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    assert (kept / "docsmith-checked").read_text() == boot
    inode = kept.stat().st_ino
    (kept / "docsmith-checked").write_text("another boot")
    assert unpacked(binary)[0].stat().st_ino == inode
    assert (kept / "docsmith-checked").read_text() == boot
    (kept / "docsmith-checked").write_text("another boot")
    (kept / "lib" / "words.txt").write_text("swords"[:5] + "\n")
    assert unpacked(binary)[0].stat().st_ino != inode


def test_many_first_starts_at_once_share_one_folder(binary):
    with ThreadPoolExecutor(8) as pool:
        folders = {unpacked(binary)[0] for _ in pool.map(lambda _: unpacked(binary), range(16))}
    assert len(folders) == 1
    assert [path.name for path in next(iter(folders)).parent.iterdir()] == [next(iter(folders)).name]


def test_full_disk_leaves_nothing_behind_and_says_what_to_do(binary):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    said = start(binary, status=1, preexec_fn=limit)[1]
    assert "there is no folder to unpack the program into (/var/tmp/docsmith-" in said
    assert "File too large); set XDG_CACHE_HOME" in said
    assert list((binary.parent / "home" / ".cache" / "docsmith").iterdir()) == []
    assert list((binary.parent / "tmp").iterdir()) == []


def test_damaged_download_is_reported(binary):
    content = bytearray(binary.read_bytes())
    content[-200_000] ^= 1
    binary.write_bytes(content)
    assert "this file is damaged: download it again" in start(binary, status=1)[1]
    binary.write_bytes(content[:-10])
    assert "this file is damaged: download it again" in start(binary, status=1)[1]
    assert list((binary.parent / "home" / ".cache" / "docsmith").iterdir()) == []


def test_the_same_content_makes_the_same_file(packed):
    assert (packed / "again").read_bytes() == (packed / "docsmith").read_bytes()


# What the program does with the folders


def made(folder, *, age):
    folder.mkdir()
    (folder / "lib").mkdir()
    (folder / "lib" / "file").write_text("")
    (folder / frozen.IN_USE).write_text("")
    os.utime(folder / frozen.IN_USE, (time.time() - age,) * 2)
    return folder


def test_old_folders_are_deleted_unless_in_use_or_not_ours(tmp_path):
    own, old, fresh, used = (
        made(tmp_path / (digit * 32), age=age) for digit, age in zip("abcd", (900, 900, 5, 900), strict=True)
    )
    damaged = made(tmp_path / ("b" * 32 + "-damaged-7"), age=900)
    other, link = made(tmp_path / "other", age=900), tmp_path / ("e" * 32)
    link.symlink_to(other)
    unmarked = tmp_path / ("f" * 32)
    unmarked.mkdir()
    with (used / frozen.IN_USE).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        frozen.delete_unused(own, frozen.UNPACKED, 60)
    assert not old.exists()
    assert not damaged.exists()
    assert all(folder.exists() for folder in (own, fresh, used, other, link, unmarked))


# As the first process of a container.

ORPHAN = """\
import os, sys, time
if os.fork() == 0:
    orphan = os.fork()
    if orphan:
        os._exit(0)  # who began it has ended
    while os.getppid() != 1:
        time.sleep(0.01)
    os._exit(0)
os.wait()
"""


@pytest.fixture(scope="session")
def first(tmp_path_factory, launcher):
    """Runs a program of these lines of shell as the first process of a namespace of its own."""
    unshare = shutil.which("unshare")
    namespace = [unshare, "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if unshare is None or subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("makes a process namespace, which is not allowed here")

    def packed(lines):
        folder = tmp_path_factory.mktemp("first")
        (folder / "content").mkdir()
        (folder / "content" / "docsmith").write_text(f"#!/bin/sh\n{lines}\n")
        (folder / "content" / "docsmith").chmod(0o755)
        subprocess.run(
            [sys.executable, SCRIPTS / "pack_binary.py", launcher, folder / "content", folder / "docsmith"], check=True
        )
        return [*namespace, str(folder / "docsmith")]

    return packed


def test_first_process_of_a_container_reaps_orphans(first, tmp_path):
    orphan = tmp_path / "orphan.py"
    orphan.write_text(ORPHAN)
    wait = 'until [ -z "$(grep -ls \'^PPid:.1$\' /proc/[0-9]*/status | grep -v "/$$/")" ]; do sleep 0.02; done'
    command = first(f"{sys.executable} {orphan}\n{wait}\necho $$")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 1


def test_first_process_of_a_container_passes_signals_and_status(first):
    begun = first("trap 'exit 7' TERM\necho begun $LISTEN_PID $$\nwhile :; do sleep 0.02; done")
    with subprocess.Popen(
        begun, stdout=subprocess.PIPE, text=True, env={**os.environ, "LISTEN_PID": "1"}
    ) as process:  # fmt: skip
        assert process.stdout is not None
        _, meant, program = process.stdout.readline().split()
        assert meant == program != "1"
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(inside), signal.SIGTERM)
        assert process.wait(timeout=60) == 7
    killed = subprocess.run(first("kill -9 $$"), timeout=60, check=False)
    assert killed.returncode == 128 + signal.SIGKILL
