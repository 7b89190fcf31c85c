"""The log as files for other programs."""

import csv
import io
import json

import pytest

from tests.service_process import service_in, write_docs


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


def test_an_export_goes_on_where_it_ended_and_writes_no_event_twice(service, tmp_path):
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


def test_what_people_typed_is_exported_only_on_demand(service, tmp_path):
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
