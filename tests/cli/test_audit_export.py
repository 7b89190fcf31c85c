"""The log as files for other programs."""

import base64
import csv
import hashlib
import io
import json
import shutil
import struct

import pytest

from tests.service_process import Service, service_in, write_docs


@pytest.fixture
def service(tmp_path):
    """A log with seven events, among them what two people typed; one of them was erased."""
    with service_in(tmp_path) as service:
        service.cli("organization", "create", "--name", "Acme")
        docs = write_docs(tmp_path / "docs")
        service.cli("project", "create", "--name", "kite", "--repository", str(docs), "--domain", "kite")
        for name in ("Ermentrude", "Balthasar"):
            service.cli("job", "create", f"Ask {name} to dance")
        (first, _) = service.cli("audit", "show", "--category", "job")["events"]
        service.cli("audit", "erase", first["stream"], "--yes")
        yield service


def lines(folder):
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_export_continues_where_it_ended_and_repeats_no_event(service, tmp_path):
    folder = tmp_path / "export"
    export = ("audit", "export", "--output", str(folder), "--events-per-file", "2")
    done = service.cli(*export)
    assert (done["events"], done["files"]) == (done["through"], (done["through"] + 1) // 2)
    whole = {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
    assert [one["position"] for one in lines(folder)] == list(range(1, done["through"] + 1))
    assert service.cli("audit", "verify-export", str(folder))["complete"]

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = manifest["files"][:1]  # as one leaves it that is killed
    manifest |= {"isComplete": False, "through": manifest["files"][0]["lastPosition"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "events-000003.jsonl").unlink()
    (folder / "events-000003.jsonl.part").write_text("half a li")
    found = service.cli("audit", "verify-export", str(folder))
    assert (found["sound"], found["complete"], found["events"]) == (True, False, 2)
    done = service.cli(*export)
    assert [one["position"] for one in lines(folder)] == list(range(1, done["through"] + 1))
    assert done["allEvents"] == done["through"]
    for name in sorted(whole)[:-1]:  # the last one was not full
        assert (folder / name).read_bytes() == whole[name]
    assert not list(folder.glob("*.part"))
    assert service.run(*export, "--personal").returncode == 1  # another export

    last = sorted(folder.glob("*.jsonl"))[-1]
    last.write_bytes(last.read_bytes().replace(b"a", b"b", 1))
    found = service.cli("audit", "verify-export", str(folder), status=3)
    assert last.name in found["problem"]
    last.unlink()
    assert "missing" in service.cli("audit", "verify-export", str(folder), status=3)["problem"]
    assert service.run("audit", "verify-export", str(tmp_path)).returncode == 1


def test_personal_text_is_exported_only_on_demand(service, tmp_path):
    plain, personal, table = (str(tmp_path / name) for name in ("plain", "personal", "table"))
    service.cli("audit", "export", "--output", plain, "--type", "job-requested")
    service.cli("audit", "export", "--output", personal, "--category", "job", "--personal")
    service.cli("audit", "export", "--output", table, "--category", "job", "--personal", "--format", "csv")
    found = lines(tmp_path / "plain")
    assert [(one["personal"], one["personalData"]) for one in found] == [("erased", None), ("sealed", None)]
    assert "Balthasar" not in str(found)
    assert [one["hash"] for one in found] == [
        one["hash"] for one in service.cli("audit", "show", "--type", "job-requested")["events"]
    ]
    found = [one for one in lines(tmp_path / "personal") if one["type"] == "job-requested"]
    assert [one["personal"] for one in found] == ["erased", "sealed"]
    assert found[1]["personalData"]["title"] == "Ask Balthasar to dance"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table" / "events-000001.csv").read_text(), newline="")))
    rows = [row for row in rows if row["type"] == "job-requested"]
    assert [int(row["position"]) for row in rows] == [one["position"] for one in found]
    assert json.loads(rows[1]["personalData"]) == found[1]["personalData"]
    assert rows[0]["personalData"] == ""
    for folder in (plain, personal, table):
        assert service.cli("audit", "verify-export", folder)["sound"]
    reads = service.cli("audit", "show", "--type", "audit-read")["events"]
    assert [one["data"]["filters"] for one in reads if one["data"]["command"] == "audit export"] == [
        {"type": "job-requested", "format": "jsonl", "personal": "false"},
        {"category": "job", "format": "jsonl", "personal": "true"},
        {"category": "job", "format": "csv", "personal": "true"},
    ]


def rewritten(folder, change):
    """An export whose events were changed by somebody who also mends the manifest's sums."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for file in manifest["files"]:
        events = [json.loads(line) for line in (folder / file["name"]).read_text().splitlines()]
        content = b"".join(json.dumps(event).encode() + b"\n" for event in change(events))
        (folder / file["name"]).write_bytes(content)
        file |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        file |= {"lastHash": json.loads(content.splitlines()[-1])["hash"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def hash_of(event):
    """As service/manual/log-format.md has it."""
    texts = [event[name].encode() for name in ("stream", "id", "type", "recordedAt", "metadata", "data")]
    texts += [base64.b64decode(event["sealed"] or ""), b"eventstore-1"]
    lengths = [len(text) for text in texts]
    lengths[6] = -1 if event["sealed"] is None else lengths[6]
    numbers = (event["position"], event["streamVersion"], event["schemaVersion"], *lengths)
    header = struct.pack(">32s11q", bytes.fromhex(event["previousHash"]), *numbers)
    return hashlib.sha256(b"".join((header, *texts))).hexdigest()


def chained(events):
    for number, event in enumerate(events):
        if number:
            event["previousHash"] = events[number - 1]["hash"]
        event["hash"] = hash_of(event)
    return events


def test_an_export_that_was_written_again_is_found(service, tmp_path):
    kept, key = tmp_path / "kept.json", service.data / "checkpoint.pub"
    service.cli("audit", "checkpoint", "--output", str(kept))
    position = json.loads(kept.read_text())["position"]

    def exported(name, *options):
        service.cli("audit", "export", "--output", str(tmp_path / name), *options)
        return tmp_path / name

    def verify(folder, *options, status=0):
        return service.cli("audit", "verify-export", str(folder), *options, status=status)

    signed = ("--checkpoint", str(kept), "--public-key", str(key))
    service.cli("audit", "show")  # one more event than was signed
    folder = exported("whole")
    found = verify(folder, *signed)
    assert (found["sound"], found["proven"], found["provenThrough"]) == (True, position, position)
    assert found["events"] > position
    told = service.run("audit", "verify-export", str(folder))
    assert "add --checkpoint FILE --public-key FILE" in told.stdout
    assert all(event["hash"] == hash_of(event) for event in lines(folder))
    stored = {event["position"]: event["hash"] for event in service.cli("audit", "show", "--limit", "9000")["events"]}
    assert all(stored[event["position"]] == event["hash"] for event in lines(folder))

    def forge(events):
        events[1]["data"] = events[1]["data"].replace("kite", "evil")
        return events

    def change(field, value):
        def changed(events):
            events[2][field] = value
            return events

        return changed

    shutil.copytree(folder, tmp_path / "forged")
    rewritten(tmp_path / "forged", forge)
    assert "position 2: its hash does not fit" in verify(tmp_path / "forged", status=3)["problem"]
    rewritten(tmp_path / "forged", chained)
    assert verify(tmp_path / "forged")["proven"] == 0
    problem = verify(tmp_path / "forged", *signed, status=3)["problem"]
    assert f"position {position} is not the event of the signed checkpoint" in problem
    for number, (attack, says) in enumerate(
        {
            change("actor", "cli:somebody"): "is not that of its metadata",
            change("sealed", "AAAA"): "its hash does not fit",
            change("recordedAt", "2020-01-01T00:00:00.000000+00:00"): "its hash does not fit",
            lambda events: events[:1] + events[2:]: "position 3 follows 1",
            lambda events: [events[1], events[0], *events[2:]]: "position 2 follows 0",
            lambda events: events[: position - 1]: "other events than the manifest says",
        }.items()
    ):
        shutil.copytree(folder, tmp_path / str(number))
        rewritten(tmp_path / str(number), attack)
        assert says in verify(tmp_path / str(number), *signed, status=3)["problem"]

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"], manifest["through"] = [], 0
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "before the checkpoint" in verify(folder, *signed, status=3)["problem"]

    table = exported("table", "--format", "csv", "--personal")
    assert verify(table, *signed)["proven"] == position
    some = exported("some", "--category", "job")
    found = verify(some, *signed, status=3)  # the checkpoint signs an event that is not in it
    assert "none of its events is covered" in found["problem"]
    assert verify(some)["filters"] == {"category": "job"}
    late = exported("late", "--after", str(position - 2))
    assert verify(late, *signed)["proven"] == 2
    assert service.run("audit", "verify-export", str(late), "--public-key", str(key)).returncode == 2


def test_an_export_goes_on_only_with_the_log_that_it_is_of(service, tmp_path):
    folder = str(tmp_path / "export")
    service.cli("audit", "export", "--output", folder)
    other = Service(tmp_path / "other")
    for name in ("Bolt", "Cork"):
        other.cli("organization", "create", "--name", name)
    assert "another log" in other.cli("audit", "export", "--output", folder, status=1)["detail"]
    assert service.cli("audit", "export", "--output", folder)["events"] == 1


def test_an_export_of_another_format_is_called_that(service, tmp_path):
    folder = tmp_path / "export"
    service.cli("audit", "export", "--output", str(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    for made, says in (("docsmith-export-3", "newer docsmith"), ("docsmith-export-1", "export the log again")):
        (folder / "manifest.json").write_text(json.dumps({"format": made, "files": [], "more": manifest}))
        told = service.run("audit", "verify-export", str(folder))
        assert (told.returncode, told.stdout) == (1, "")
        assert says in told.stderr
