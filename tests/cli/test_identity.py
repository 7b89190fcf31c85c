"""The key that signs checkpoints is the installation's identity: the log names it, and verify says what it compared."""

import json
import shutil

import pytest

from tests.service_process import service_in, write_docs


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        if not service.place.is_local:
            pytest.skip("the files of the log are exchanged here")
        yield service


def first_line(folder):
    return json.loads((folder / "events-000001.jsonl").read_text().partition("\n")[0])


def test_new_log_names_the_key_in_its_first_event(service):
    folder = service.data.parent / "export"
    service.cli("audit", "export", "--output", str(folder))
    named = json.loads(first_line(folder)["metadata"])
    service.cli("audit", "checkpoint")
    signed = json.loads((service.data / "checkpoints.jsonl").read_text().splitlines()[-1])
    assert named["key"] == signed["publicKey"] == json.loads((folder / "manifest.json").read_text())["key"]
    assert not service.cli("audit", "show", "--type", "installation-identified")["events"]


def test_verify_says_which_key_signs_and_what_it_was_compared_with(service, tmp_path):
    told = service.cli("audit", "verify")
    assert told["key"] == told["keyInLog"]
    assert told["key"].startswith("SHA256:")
    assert told["comparedWith"] == []
    said = service.run("audit", "verify").stdout
    assert f"key {told['key']}, as event 1 of the log says" in said
    assert "compared with nothing kept elsewhere: an exchanged log would not be noticed" in said
    kept = tmp_path / "kept.json"
    service.cli("audit", "checkpoint", "--output", str(kept))
    assert service.cli("audit", "verify", "--checkpoint", str(kept))["comparedWith"] == [str(kept)]
    assert "nothing kept elsewhere" not in service.run("audit", "verify", "--checkpoint", str(kept)).stdout


def test_older_log_names_the_key_at_the_next_start_and_an_exchanged_one_again(service):
    """Without ``checkpoint.key`` another one is made, as after a restore without the vault."""
    before = service.cli("audit", "verify")["key"]
    for file in ("checkpoint.key", "checkpoint.pub"):
        (service.data / file).unlink()
    service.start()
    service.stop()
    told = service.cli("audit", "verify")
    assert told["key"] == told["keyInLog"] != before
    (event,) = service.cli("audit", "show", "--type", "installation-identified")["events"]
    assert event["data"]["previous_key"]
    service.start()
    service.stop()
    assert len(service.cli("audit", "show", "--type", "installation-identified")["events"]) == 1


def test_exchanged_log_and_key_are_found_with_what_was_kept(service, tmp_path):
    kept = tmp_path / "kept.json"
    service.cli("audit", "checkpoint", "--output", str(kept))
    with service_in(tmp_path / "other") as other:
        other.cli("organization", "create", "--name", "Another")
        for _ in range(10):
            other.cli("organization", "create", "--name", "More")
        other.cli("audit", "checkpoint")
        for name in ("events.db", "keys.db", "checkpoint.key", "checkpoint.pub", "checkpoints.jsonl", "views.db"):
            for file in service.data.glob(f"{name}*"):
                file.unlink()
            for file in other.data.glob(f"{name}*"):
                shutil.copyfile(file, service.data / file.name)
    assert service.run("audit", "verify").returncode == 0  # as it says: compared with nothing
    assert service.run("audit", "verify", "--checkpoint", str(kept)).returncode == 3


def test_doctor_reminds_to_keep_a_checkpoint(service, tmp_path):
    def reminds():
        found = json.loads(service.run("doctor", "--json").stdout)["findings"]
        return [one for one in found if "audit checkpoint --output" in (one["mend"] or "")]

    assert [one["level"] for one in reminds()] == ["note"]
    service.cli("audit", "checkpoint", "--output", str(tmp_path / "kept.json"))
    assert not reminds()
