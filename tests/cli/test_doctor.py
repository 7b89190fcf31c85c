"""``docsmith doctor``: each mistake is found, with what mends it, and a sound installation has none."""

import ast
import json
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service.cli.operate import damage, doctor, instance_findings, surroundings, wrapping_findings
from service.cli.operate.surroundings import file_system, look_at_settings
from service.runtime.settings.settings_file import load_settings
from tests.service_process import ran, service_in, write_docs

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.data.chmod(0o700)
        service.environment["DOCSMITH_SERVER__PORT"] = "0"
        yield service


def wrong(service, *options):
    found = service.cli("doctor", *options, status=1)
    return {finding["name"]: finding for finding in found["findings"] if finding["level"] == "wrong"}


def test_nothing_is_wrong_with_a_sound_installation(service):
    found = service.cli("doctor")
    assert found["wrong"] == 0
    said = service.run("doctor").stdout
    assert "Nothing is wrong." in said
    assert service.admin_key not in said
    page = ("--origin", "https://docs.example.com", "--expires-days", "7")
    service.cli("key", "create", "--kind", "assistant", "--domain", service.domain, *page)
    says = [finding["says"] for finding in service.cli("doctor")["findings"]]
    assert any("cannot ask from" in one for one in says)


def test_nothing_is_wrong_before_there_is_anything(tmp_path):
    with service_in(tmp_path) as service:
        service.environment["DOCSMITH_SERVER__PORT"] = "0"
        service.start()
        found = service.cli("doctor")
        assert found["wrong"] == 0, found
        notes = {one["name"]: one["mend"] for one in found["findings"] if one["level"] == "note"}
        assert notes["organization"] == "docsmith organization create --name NAME"
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        found = service.cli("doctor")
        assert found["wrong"] == 0, found


def test_nothing_is_wrong_after_init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ran(["init"], {}).returncode == 0
    done = ran(["doctor", "--json"], {"DOCSMITH_SERVER__PORT": "0"})
    found = json.loads(done.stdout)
    assert (done.returncode, found["wrong"]) == (0, 0)
    assert "There is no folder data here yet." in [one["says"] for one in found["findings"]]
    done = ran(["doctor", "--json", "--data", "other"], {"DOCSMITH_SERVER__PORT": "0"})
    assert (done.returncode, json.loads(done.stdout)["wrong"]) == (1, 1)


def test_doctor_never_advises_to_run_doctor():
    for module in (damage, doctor, instance_findings, surroundings, wrapping_findings):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        documented = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, DOCUMENTED)}
        said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = [one for one in said if isinstance(one, str) and one not in documented]
        assert texts
        assert not [one for one in texts if "docsmith doctor" in one]


def test_doctor_finds_a_context_that_cannot_be_read(service):
    update = ("project", "update", "kite", "--context", "code=http://127.0.0.1:9/code.git#v1")
    (shown,) = service.cli(*update)["contexts"]
    assert shown == {
        "name": "code", "repository": "http://127.0.0.1:9/code.git", "ref": "v1", "tokenEnv": "", "public": False,
        "internal": False, "tokenId": "",
    }  # fmt: skip
    says = wrong(service)["context repository code of kite"]["says"]
    assert "127.0.0.1 is not an address of the public internet." in says
    assert service.cli("project", "list")["projects"][0]["contexts"] == [shown]
    assert service.cli(*update, "--context-internal", "code", "--context-public", "code")["contexts"][0]["internal"]
    assert "cannot be reached" in wrong(service)["context repository code of kite"]["says"]
    assert "Context repository not found: x." in service.run("project", "update", "kite", "--no-context", "x").stderr


def test_doctor_finds_problems_of_the_folder_and_its_contents(service, tmp_path):
    service.cli("key", "revoke", service.cli("key", "list")["keys"][0]["id"])
    service.data.chmod(0o755)
    settings = tmp_path / "docsmith.toml"
    settings.write_text(
        '[server]\npublic_url = "http://docs.example.com"\n'
        '[models.own]\nmodel = "openai/x"\napi_key_env = "NO_SUCH_KEY"\n'
        'api_base = "https://me:secret@models.example.com"\n[agent]\nauthor = "nobody"\n'
    )
    settings.chmod(0o644)
    for file in (service.data / "index" / "kite").iterdir():
        shutil.rmtree(file)
    (service.data / "hosted" / f"{service.project_id}.git").rename(tmp_path / "moved.git")
    found = wrong(service, "--config", str(settings))
    assert found.keys() >= {
        "permissions",
        "settings file",
        "TLS",
        "author",
        "admin key",
        "model own",
        "index kite",
        "project kite",
    }
    assert found["permissions"]["mend"] == f"chmod 700 {service.data}"
    assert found["index kite"]["mend"] == "docsmith index kite"
    assert "NO_SUCH_KEY" in found["model own"]["mend"]
    assert "secret" not in found["settings file"]["mend"]


def test_litestream_for_the_log_and_the_vault_is_reported(service):
    for name in ("events.db", "keys.db"):
        (service.data / f".{name}-litestream").mkdir()
    found = [one for one in service.cli("doctor", status=1)["findings"] if one["name"] == "litestream"]
    assert [one["says"].split(":")[0] for one in found] == ["Litestream copies events.db", "Litestream copies keys.db"]
    assert all("docsmith backup FOLDER --follow" in one["mend"] for one in found)


def test_vault_older_than_its_log_is_reported(service):
    service.cli("ask", service.domain, "How do I install Kite?")
    with closing(sqlite3.connect(service.data / "keys.db")) as vault:
        lost = [subject for (subject,) in vault.execute("SELECT subject FROM keys WHERE subject LIKE 'thread-%'")]
        vault.execute("DELETE FROM keys WHERE subject LIKE 'thread-%'")
        vault.commit()
    found = [one for one in service.cli("doctor")["findings"] if one["name"] == "keys"]
    assert len(lost) == 1
    assert [(one["level"], lost[0] in one["says"]) for one in found] == [("note", True)]
    service.cli("audit", "erase", lost[0], "--yes")  # what is erased is not lost
    assert not [one for one in service.cli("doctor")["findings"] if one["name"] == "keys"]


def test_doctor_reports_what_keeps_the_data_from_opening(service, tmp_path):
    (service.data / "keys.db").unlink()
    settings = tmp_path / "docsmith.toml"
    settings.write_text("[servr]\n")
    found = wrong(service, "--config", str(settings))
    assert "docsmith restore" in found["vault"]["mend"]
    assert "servr" in found["settings"]["says"]
    service.data.rename(tmp_path / "elsewhere")
    assert "data folder" in wrong(service)


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"DOCSMITH_SERVER__HOST": "0.0.0.0"}, "TLS"),
        ({"DOCSMITH_SERVER__HOST": "0.0.0.0"}, "public address"),
        ({"DOCSMITH_SERVER__PUBLIC_URL": "https://docs.example.com"}, "proxy"),
    ],
)
def test_an_open_service_without_a_proxy(tmp_path, environment, name):
    settings = load_settings(None, {"DOCSMITH_SERVER__PORT": "0", **environment})
    assert name in {finding.name for finding in look_at_settings(tmp_path, settings) if finding.level == "wrong"}


def test_limits_that_are_off_and_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = load_settings(None, {"DOCSMITH_SERVER__PORT": port, "DOCSMITH_LIMITS__ADDRESS_DAY": "0"})
        found = {finding.name: finding for finding in look_at_settings(tmp_path, settings)}
    assert found["port"].level == "wrong"
    assert "address_day" in found["limits"].says


def test_the_file_system_is_that_of_the_nearest_mount():
    mounts = "/dev/a / ext4 rw 0 0\nhost:/x /srv nfs4 rw 0 0\n/dev/b /srv/local\\040disk xfs rw 0 0\n"
    assert file_system(Path("/srv/data"), mounts) == "nfs4"
    assert file_system(Path("/srv/local disk/data"), mounts) == "xfs"
    assert file_system(Path("/home"), mounts) == "ext4"
    assert file_system(Path("/home"), "") == ""
