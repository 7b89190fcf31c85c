"""The single binary, as somebody has it who has nothing else. scripts/build-binary makes it."""

import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import stat
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path

import aiohttp
import pytest

from tests.end_to_end.scripted import asking, next_asked
from tests.end_to_end.talk import create_job, get_job, job_events, question, text_of
from tests.fakes.provider import ScriptedProvider
from tests.service_process import BINARY, Service, write_docs

pytestmark = pytest.mark.skipif(
    not BINARY, reason="scripts/build-binary makes it; DOCSMITH_BINARY=dist/docsmith names it"
)

MAX_BYTES = 60_000_000
MAX_IDLE_BYTES = 80_000_000
MAX_START_SECONDS = 1.0
MAX_FIRST_REQUEST_SECONDS = 0.05
STARTS = int(os.environ.get("TEST_BINARY_STARTS", "0"))
"""How many starts to measure; on a machine with something else to do the figures mean little."""

DOCS = {
    "index.rst": "Kite\n====\n\n.. note::\n\n   The kestrel hovers.\n",
    "page.html": "<title>Page</title><main><h1>Page</h1><p>The wallaby jumps.</p></main>",
    "notebook.ipynb": json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Notes\n\nThe ocelot sleeps."}],
        }
    ),
    "openapi.yaml": (
        "openapi: 3.1.0\ninfo: {title: Zoo, version: '1'}\npaths:\n  /animals:\n    get:\n"
        "      summary: List animals\n      description: Gives every pangolin.\n"
        "      responses: {'200': {description: Done}}\n"
    ),
    "install.md": "# Install\n\nThe installer needs 20 MB of disk. Read [more](/nowhere).\n",
}
"""A page of every format, each with a word of its own."""
WORDS = {"kestrel": "index.rst", "wallaby": "page.html", "ocelot": "notebook.ipynb", "pangolin": "openapi.yaml"}


@pytest.fixture
def place(tmp_path):
    """A folder that anybody may look into, with the program in it, a home and a folder for temporary files."""
    folder = Path("/tmp") / f"docsmith-binary-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir(mode=0o755)
    shutil.copy(BINARY or os.devnull, folder / "docsmith")
    for name in ("home", "tmp", "data"):
        (folder / name).mkdir()
    (folder / "tmp").chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(place, *arguments, environment=None, **how):
    if environment is None:
        environment = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    done = subprocess.run(
        [place / "docsmith", *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False,
        **{"cwd": "/", **how},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_binary_is_small_and_has_its_checksum_and_contents():
    file = Path(BINARY)
    assert file.stat().st_size <= MAX_BYTES
    sums = dict(reversed(line.split()) for line in (file.parent / "SHA256SUMS").read_text().splitlines())
    assert sums["docsmith"] == hashlib.sha256(file.read_bytes()).hexdigest()
    bill = json.loads((file.parent / "docsmith.cdx.json").read_text())
    names = {component["name"] for component in bill["components"]}
    assert {"aiohttp", "docutils", "dulwich", "htmx.org", "litellm", "lxml", "msgspec", "tantivy"} <= names
    assert not {"pytest", "mypy", "pyinstaller"} & names


def test_binary_runs_anywhere_without_variables_unpacked_once(place):
    there = set(Path("/tmp").iterdir())
    code, said, failed = run(place, "--version", environment={})
    assert (code, failed) == (0, "")
    assert re.fullmatch(r"docsmith \d+\.\d+\.\d+\n", said)
    assert not {path for path in set(Path("/tmp").iterdir()) - there if re.fullmatch("docsmith-.{6}", path.name)}

    code, document, _ = run(place, "openapi", cwd=place / "data")
    assert (code, json.loads(document)["openapi"][:3]) == (0, "3.1")
    (kept,) = (place / "home" / ".cache" / "docsmith").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o755
    assert not list(kept.rglob("direct_url.json"))  # it would name the folder of the builder, and no two be the same
    before = {path: path.stat().st_ino for path in kept.rglob("*")}
    unit = run(place, "init", "--systemd")[1]
    assert f"\nExecStart={place / 'docsmith'} serve " in unit
    assert {path: path.stat().st_ino for path in kept.rglob("*")} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run it as somebody else")
@pytest.mark.parametrize("home", ["/nonexistent", "read-only"])
def test_whole_job_works_for_a_user_with_a_read_only_home(place, home):
    """Without a Python, a git or anything else in the path. What it unpacks is gone afterwards."""
    nobody = pwd.getpwnam("nobody")
    os.chown(place / "data", nobody.pw_uid, nobody.pw_gid)
    home = str(place / "home") if home == "read-only" else home
    code, said, failed = run(
        place, "demo", "--exit", "--port", "0", "--data", str(place / "data" / "demo"),
        environment={"HOME": home, "TMPDIR": str(place / "tmp"), "PATH": "/nonexistent"},
        user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
    )  # fmt: skip
    assert code == 0, said + failed
    assert re.search(r"/pulls/1-[\w-]+", said)
    assert "](/operate#restore-it)" in said
    manual = place / "data" / "demo" / "manual"
    assert f"from {manual}  " in said
    assert (manual / "start.md").exists()
    assert list((place / "tmp").iterdir()) == []
    assert list((place / "home").iterdir()) == []


# A day with it


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    folder = tmp_path_factory.mktemp("day")
    service = Service(folder / "data", {"SCRIPTED_KEY": "sk-scripted"})
    (folder / "data").mkdir(mode=0o700)
    write_docs(folder / "docs", DOCS)
    yield service
    service.kill()


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as session:
        yield session


async def test_a_day_of_an_operator(day, http, tmp_path):
    """From the first start over a kill to a restored copy, each command beside the running service."""
    async with ScriptedProvider() as provider:
        settings = {"MODEL": "openai/gpt-5.2", "API_BASE": provider.openai_base, "API_KEY_ENV": "SCRIPTED_KEY"}
        day.environment |= {f"DOCSMITH_MODELS__SCRIPTED__{name}": value for name, value in settings.items()}
        day.environment |= {"DOCSMITH_ASSISTANT__MODEL": "scripted", "DOCSMITH_AGENT__MODEL": "builtin"}
        day.environment |= {"DOCSMITH_ASSISTANT__PLANNER": "off"}  # it would take the reply in the script
        day.start()
        first = day.url
        second = Service(day.data)
        told = second.run("serve", "--port", "0")
        assert (told.returncode, str(day.process.pid) in told.stderr) == (1, True), told.stderr

        day.set_up(day.data.parent / "docs")
        for word, path in WORDS.items():
            assert [one["metadata"]["file"] for one in day.cli("search", day.domain, word)["results"]][:1] == [path]

        provider.will_reply("It needs 20 MB [1].")
        async with asking(http, day, question("How much disk does the installer need?")) as reading:
            assert "It needs 20 MB" in text_of(await reading.rest())
        assert (await next_asked(provider)).body["model"] == "gpt-5.2"  # by way of litellm

        job = await create_job(http, day, 'Replace "20 MB" with "25 MB" in install.md')
        await job_events(http, day, job["id"])
        assert (await get_job(http, day, job["id"]))["prLink"].startswith(f"{day.url}/hosted/")

        day.kill()
        day.start()
        assert day.cli("job", "show", job["id"])["status"] == "completed"
        position = day.cli("audit", "verify")["events"]
        assert day.cli("audit", "replay")["same"] is True
        assert day.run("audit", "reproduce", job["id"]).returncode == 0
        assert day.run("audit", "export", "--output", str(tmp_path / "export")).returncode == 0
        assert day.run("doctor").returncode == 0
        backup, vault = tmp_path / "backup.tar", tmp_path / "vault.tar"
        assert day.cli("backup", str(backup), "--vault", str(vault))["position"] >= position
        assert day.stop() == 0
        assert f"Docsmith serves {first}, with its data in the folder {day.data} (agent builtin/editor" in day.log()
        assert day.log().count("There is no documentation yet") == 1

        other = Service(tmp_path / "restored", day.environment)
        assert other.run("restore", str(backup), "--vault", str(vault)).returncode == 0
        assert other.cli("job", "show", job["id"])["status"] == "completed"
        assert other.cli("audit", "verify")["events"] >= position


@pytest.mark.skipif(not STARTS, reason="TEST_BINARY_STARTS=7 measures so many starts, on a machine with nothing else")
def test_binary_starts_fast_and_needs_little_memory(place):
    starts, requests, idle = [], [], []
    for number in range(STARTS + 1):
        began = time.perf_counter()
        process = subprocess.Popen(
            [place / "docsmith", "serve", "--port", "0", "--data", place / "data"], env={"HOME": str(place / "home")},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        url = process.stdout.readline().removeprefix("listening on ").strip()
        listening = time.perf_counter()
        resident = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]
        urllib.request.urlopen(url + "/healthz").read()
        answered = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        process.stdout.close()
        print(f"{listening - began:.2f} s, {answered - listening:.3f} s, {int(resident) // 1000} MB")  # noqa: T201
        if number:  # the first unpacks it
            starts.append(listening - began)
            requests.append(answered - listening)
            idle.append(int(resident) * 1024)
    assert statistics.median(starts) <= MAX_START_SECONDS
    assert statistics.median(requests) <= MAX_FIRST_REQUEST_SECONDS
    assert statistics.median(idle) <= MAX_IDLE_BYTES
