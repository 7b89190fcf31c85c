"""service/manual/log-format.md is true and complete: a program written from it alone checks what Docsmith wrote."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from base64 import b64decode
from contextlib import closing
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from service.integrity.checkpoints import parse_checkpoints
from service.queries.export_format import Line
from tests import stranger
from tests.service_process import service_in, write_docs

PAGE = (resources.files("service") / "manual" / "log-format.md").read_text("utf-8")


def block(kind: str, number: int) -> str:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)[number]


def test_the_vectors_of_the_page_are_what_this_program_makes():
    *checkpoints, first, second = block("json", -1).splitlines()
    hashes = {}
    for line in (first, second):
        event = msgspec.json.decode(line, type=Line)
        assert event.stored().is_sound()
        assert event.says_what_is_stored()
        assert set(json.loads(line)) == set(Line.__struct_encode_fields__)
        hashes[event.position] = bytes.fromhex(event.hash)
    log = json.loads(json.loads(first)["metadata"])["log"]
    for line in checkpoints:
        (one,) = parse_checkpoints(line.encode(), "the page")
        assert one.is_signed_with(one.own_key())
        assert msgspec.json.decode(msgspec.json.encode(one)) == json.loads(line)
        stranger.check(json.loads(line), b64decode(one.public_key), hashes, log)
    covered = bytes.fromhex(block("text", -1).replace("\n", ""))
    assert stranger.hashlib.sha256(covered).digest() == hashes[2]


def told(*arguments: Path) -> "subprocess.CompletedProcess[str]":
    """Run the stranger's program, with nothing of ours to import."""
    command = [sys.executable, "-I", Path(stranger.__file__), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=300)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A log, its checkpoints, and an export of each kind."""
    folder = tmp_path_factory.mktemp("written")
    with service_in(folder) as service:
        service.cli("organization", "create", "--name", "Acme")
        docs = write_docs(folder / "docs")
        service.cli("project", "create", "--name", "kite", "--repository", str(docs), "--domain", "kite")
        service.cli("job", "create", 'Sag Ermentrude, daß es "schön" ist,\nund\u2028mehr')
        (job,) = service.cli("audit", "show", "--type", "job-requested")["events"]
        service.cli("audit", "checkpoint")
        service.cli("audit", "erase", job["stream"], "--yes")
        service.cli("audit", "checkpoint")
        for kind in ("jsonl", "csv"):
            export = ("audit", "export", "--output", str(folder / kind), "--format", kind, "--events-per-file", "3")
            service.cli(*export, "--personal")
        yield service.data, folder / "jsonl", folder / "csv"


def test_a_stranger_verifies_a_log_and_its_checkpoints(written, tmp_path):
    data, _, _ = written
    signed = (data / "checkpoints.jsonl", data / "checkpoint.pub")
    done = told(data / "events.db", *signed)
    assert (done.returncode, done.stdout[:7]) == (0, "sound: "), done.stderr
    for statement, says in (
        ("UPDATE events SET data = '{}' WHERE position = 3", "position 3: another hash"),
        ("UPDATE events SET sealed = x'00' WHERE type = 'job-requested'", "another hash"),
        ("DELETE FROM events WHERE position = 2", "position 3: a gap"),
        ("DELETE FROM events WHERE position > 2", "KeyError"),
        ("PRAGMA user_version = 2", "take the page of that version"),
    ):
        shutil.copyfile(data / "events.db", tmp_path / "changed.db")
        with closing(sqlite3.connect(tmp_path / "changed.db")) as db, db:
            db.execute(statement)
        done = told(tmp_path / "changed.db", *signed)
        assert (done.returncode, says in done.stderr) == (1, True), (statement, done.stderr)
    lines = (data / "checkpoints.jsonl").read_text()
    (tmp_path / "forged.jsonl").write_text(lines.replace('"time":"2', '"time":"3'))
    done = told(data / "events.db", tmp_path / "forged.jsonl", data / "checkpoint.pub")
    assert (done.returncode, "InvalidSignature" in done.stderr) == (1, True)


@pytest.mark.parametrize("kind", [1, 2], ids=["jsonl", "csv"])
def test_a_stranger_verifies_an_export(written, kind, tmp_path):
    data, folder = written[0], written[kind]
    signed = (data / "checkpoints.jsonl", data / "checkpoint.pub")
    done = told(folder, *signed)
    assert (done.returncode, done.stdout[:7]) == (0, "sound: "), done.stderr
    assert json.loads((folder / "manifest.json").read_text())["log"] in lines_of_first(folder)
    shutil.copytree(folder, tmp_path / "changed")
    file = sorted((tmp_path / "changed").glob("events-*"))[0]
    content = file.read_bytes().replace(b"Acme", b"Evil")
    manifest = tmp_path / "changed" / "manifest.json"
    sums = [stranger.hashlib.sha256(one).hexdigest() for one in (file.read_bytes(), content)]
    manifest.write_text(manifest.read_text().replace(*sums))
    file.write_bytes(content)
    done = told(tmp_path / "changed", *signed)
    assert (done.returncode, "another hash" in done.stderr) == (1, True), done.stderr


def lines_of_first(folder: Path) -> str:
    return sorted(folder.glob("events-*"))[0].read_text()
