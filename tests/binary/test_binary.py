"""The single binary, as somebody has it who has nothing else. scripts/build-binary makes it."""

import hashlib
import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

BINARY = os.environ.get("DOCSMITH_BINARY", "")
pytestmark = pytest.mark.skipif(
    not BINARY, reason="scripts/build-binary makes it; DOCSMITH_BINARY=dist/docsmith names it"
)

MAX_BYTES = 60_000_000


@pytest.fixture
def binary(tmp_path):
    """A copy that anybody may run, and its own folder for temporary files."""
    folder = Path("/tmp") / f"docsmith-binary-{os.getpid()}-{tmp_path.name}"
    folder.mkdir(mode=0o755)
    shutil.copy(Path(BINARY).resolve(), folder / "docsmith")
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o777)
    yield folder / "docsmith"
    shutil.rmtree(folder, ignore_errors=True)


def run(binary, *arguments, environment=None, **how):
    done = subprocess.run(
        [str(binary), *arguments], env={"TMPDIR": str(binary.parent / "tmp"), **(environment or {})},
        capture_output=True, text=True, timeout=120, check=False, cwd="/", **how,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def serve(binary, data):
    process = subprocess.Popen(
        [str(binary), "serve", "--port", "0", "--data", str(data)], env={"TMPDIR": str(binary.parent / "tmp")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip
    line = process.stdout.readline()
    assert line.startswith("listening on "), process.communicate()[1]
    return process, line.removeprefix("listening on ").strip()


def test_it_is_small_and_its_sum_and_contents_are_beside_it():
    file = Path(BINARY)
    assert file.stat().st_size <= MAX_BYTES
    sums = dict(reversed(line.split()) for line in (file.parent / "SHA256SUMS").read_text().splitlines())
    assert sums["docsmith"] == hashlib.sha256(file.read_bytes()).hexdigest()
    bill = json.loads((file.parent / "docsmith.cdx.json").read_text())
    names = {component["name"] for component in bill["components"]}
    assert {"aiohttp", "litellm", "dulwich", "msgspec"} <= names
    assert not {"pytest", "mypy", "pyinstaller"} & names


def test_it_runs_with_an_empty_environment_from_anywhere(binary):
    assert run(binary, "version") == (0, run(binary, "version")[1], "")
    code, document, _ = run(binary, "openapi")
    assert code == 0
    assert json.loads(document)["openapi"].startswith("3.1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run it as somebody else")
def test_it_does_the_whole_job_for_another_user_whose_home_cannot_be_written(binary, tmp_path):
    nobody = pwd.getpwnam("nobody")
    data = binary.parent / "data"
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    code, said, failed = run(
        binary, "demo", "--exit", "--port", "0", "--data", str(data / "demo"),
        environment={"HOME": "/nonexistent"}, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
    )  # fmt: skip
    assert code == 0, said + failed
    assert "/pulls/1-" in said
    assert "Sources" in said or "sources" in said
    assert list((binary.parent / "tmp").iterdir()) == []


def test_what_a_killed_one_leaves_is_gone_after_the_next_start(binary, tmp_path):
    process, url = serve(binary, tmp_path / "data")
    assert urllib.request.urlopen(url + "/healthz").status == 200
    (program,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    end = os.pidfd_open(int(program))
    process.kill()
    process.communicate()
    assert select.select([end], [], [], 15)[0], "the program goes on without the process that started it"
    os.close(end)
    assert len(list((binary.parent / "tmp").glob("_MEI*"))) == 1
    process, url = serve(binary, tmp_path / "data")
    assert len(list((binary.parent / "tmp").glob("_MEI*"))) == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=15) == 0
    process.communicate()
    assert list((binary.parent / "tmp").iterdir()) == []
