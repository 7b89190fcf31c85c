"""The command line as operators and their scripts use it."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.service_process import PROGRAM, Service, ran, service_in, write_docs


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A data folder with a project, that nobody serves."""
    folder = tmp_path_factory.mktemp("cli")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        yield service


def test_without_a_command_it_explains_itself(tmp_path):
    done = Service(tmp_path / "data").run("--help")
    assert done.returncode == 0
    assert "docsmith serve" in done.stdout


def test_version_is_printed_as_usual(tmp_path):
    asked = Service(tmp_path / "data").run
    assert asked("version").stdout == f"docsmith {version('docsmith')}\n"
    with_option = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert with_option.stdout == asked("version").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("serv",), "No such command 'serv'. Did you mean 'serve'? See: docsmith --help"),
        (("nonsense",), "No such command 'nonsense'. See: docsmith --help"),
        (("key", "crate"), "No such command 'crate'. Did you mean 'create'? See: docsmith key --help"),
        (("key", "create", "--kidn", "x"), "No such option '--kidn'. Did you mean '--kind'?"),
        (("key", "create", "--kin", "admin"), "No such option '--kin'. Did you mean '--kind'?"),
        (
            ("key", "create", "--kind", "admn"),
            "'admn' is not one of 'admin', 'assistant'. Did you mean 'admin'? See: docsmith key create",
        ),
        (("key", "create"), "Missing option '--kind'. Choose from: admin, assistant. See: docsmith key create --help"),
        (("project",), "Missing command. See: docsmith project --help"),
        (("version", "x"), "Got unexpected extra argument (x). See: docsmith version --help"),
        (("serve", "--port", "x"), "'x' is not a number from 0 to 65535"),
        (("serve", "--port", "65536"), "a number from 0 to 65535"),
        (("search", "kite", "x", "--limit", "0"), "'0' is not a number from 1 on"),
        (
            ("search", "kite", "x", "--language", "german"),
            "'german' is not the code of a language, such as de or pt-BR",
        ),
        (("search", "kite", "--limits"), "Did you mean '--limit', or the words -- --limits?"),
        (("backup", "x", "--keep", "2", "--follow"), "--keep and --follow exclude each other."),
        (("project", "create", "--name", "x"), "Missing option --repository or --website."),
        (("audit", "show", "--since", "x"), "'x' is not a time such as 2026-01-31"),
        (("--version", "key"), "--version takes no command"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_nearest_match(tmp_path, arguments, says):
    done = Service(tmp_path / "data").run(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr
    told = Service(tmp_path / "data").run(*arguments, "--json")
    assert json.loads(told.stdout) == {"code": "wrong_usage", "detail": done.stderr.strip().removeprefix("docsmith: ")}
    assert not (tmp_path / "data").exists()


def test_help_and_common_options_may_come_first(tmp_path):
    def asked(*arguments):
        return ran(arguments, os.environ)

    assert asked("help", "key", "create").stdout == asked("key", "create", "--help").stdout != ""
    assert asked("help").stdout == asked("--help").stdout
    data = str(tmp_path / "data")
    assert "id" in json.loads(asked("--json", "--data", data, "organization", "create", "--name", "Acme").stdout)
    assert len(json.loads(asked(f"--data={data}", "organization", "list", "--json").stdout)["organizations"]) == 1
    assert len(json.loads(asked("organization", "--data", data, "list", "--json").stdout)["organizations"]) == 1
    last = asked("--data", "nowhere", "organization", "--data", "elsewhere", "list", "--data", data, "--json")
    assert len(json.loads(last.stdout)["organizations"]) == 1
    assert json.loads(asked("--version", "--json").stdout) == {"version": version("docsmith")}
    assert "--data" in asked("--data").stderr


@pytest.mark.parametrize("command", [("project", "list"), ("key", "create", "--kind", "admin"), ("index", "kite")])
def test_a_folder_without_data_is_not_made_one_by_looking(tmp_path, command):
    data = tmp_path / "data"
    for _ in ("missing", "empty"):
        told = Service(data).run(*command, "--json")
        assert (told.returncode, json.loads(told.stdout)["code"]) == (1, "no_data")
        assert f"docsmith organization create --name NAME --data {data}" in told.stderr
        data.mkdir(exist_ok=True)
        assert not list(data.iterdir())


def test_with_json_a_failure_is_one_document_too(service):
    done = service.run("index", "nowhere", "--json")
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert done.stderr == f"docsmith: {json.loads(done.stdout)['detail']}\n"
    assert json.loads(done.stdout)["code"] == "not_found"


def test_ctrl_c_before_a_command_is_under_way_prints_nothing():
    """The signal comes in the midst of the imports."""
    interrupted = (
        "import builtins, os, signal, sys\n"
        "real = builtins.__import__\n"
        "def slow(name, *how):\n"
        "    if name == 'service.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *how)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "builtins.__import__ = slow\n"
        "from service.__main__ import main\n"
        "sys.argv[1:] = ['version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_ends_a_command_in_order(service):
    command = [*PROGRAM, "index", "kite", "--watch", "--data", str(service.data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said, failed = process.communicate(timeout=300)
    assert process.returncode in (0, 130)
    assert "Traceback" not in said + failed


def test_full_disk_behind_standard_output_is_reported_in_a_line(service):
    for command in (["--help"], ["version"], ["project", "list", "--data", str(service.data)]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([*PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == "docsmith: standard output cannot be written: No space left on device\n"


def test_with_json_there_is_one_document_and_nothing_else(service):
    for command in (
        ("organization", "list"),
        ("project", "list"),
        ("key", "list"),
        ("search", "kite", "install"),
        ("ask", "kite", "How do I install Kite?"),
        ("audit", "verify"),
        ("audit", "show"),
        ("version",),
    ):
        done = service.run(*command, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout), command
        assert done.stdout.count("\n") == 1, command


def test_an_answer_in_the_terminal_has_its_sources(service):
    done = service.run("ask", "kite", "How do I install Kite?")
    assert "curl -sSf kite.example/install | sh" in done.stdout
    assert "Sources:" in done.stdout
    assert "/install" in done.stdout.split("Sources:")[1]


def test_a_search_finds_the_right_page_first(service):
    (first, *_) = service.cli("search", "kite", "delay between retries")["results"]
    assert first["path"] == "retry"


@pytest.mark.parametrize(
    "arguments",
    [("--retry-delay",), ("--retry-delay", "--limit", "3"), ("-x",)],
)
def test_search_for_a_flag_needs_no_dashes_before_it(service, arguments):
    assert "results" in service.cli("search", "kite", *arguments)


def test_answer_about_a_flag_needs_no_dashes_before_it(service):
    assert service.run("ask", "kite", "--retry-delay").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("search", "nowhere", "x"), "docsmith project list"),
        (("index", "nowhere"), "docsmith project list"),
        (("ask", "nowhere", "x"), "docsmith project list"),
        (("job", "show", "nothing"), "Job not found: nothing. See: docsmith job list"),
        (("job", "create", "x", "--project", "nowhere"), "docsmith project list"),
        (("key", "create", "--kind", "assistant"), "serves at least one site"),
        (("key", "create", "--kind", "assistant", "--domain", "nowhere"), "docsmith project list"),
        (("key", "revoke", "nothing"), "docsmith key list"),
        (("project", "create", "--name", "X", "--repository", "/does/not/exist"), "/does/not/exist"),
        (("project", "create", "--name", "Two", "--repository", "DOCS", "--domain", "kite"), "another project"),
        (("organization", "create", "--name", " "), "printable"),
    ],
)
def test_a_failure_is_one_line_with_the_next_step(service, arguments, says):
    arguments = [str(service.data.parent / "docs") if one == "DOCS" else one for one in arguments]
    events = service.cli("audit", "verify")["events"]
    done = service.run(*arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert service.cli("audit", "verify")["events"] == events


@pytest.mark.parametrize(("file", "inside"), [("plain", ""), ("plain", "deeper/data")])
def test_impossible_data_folder_is_reported(tmp_path, file, inside):
    (tmp_path / file).write_text("")
    for command in (("project", "list"), ("serve", "--port", "0")):
        done = Service(tmp_path / file / inside).run(*command)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "cannot be the data folder" in done.stderr
        assert "--data" in done.stderr


def test_port_in_use_is_reported(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = Service(tmp_path / "data").run("serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another" in done.stderr


def test_invalid_address_is_named(tmp_path):
    done = Service(tmp_path / "data").run("serve", "--host", "no.such.host.invalid", "--port", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "cannot listen on no.such.host.invalid: " in done.stderr


@pytest.mark.parametrize(
    "command", ["", "serve", "project create", "key create", "job create", "search", "ask", "index"]
)
def test_help_explains_every_option(tmp_path, command):
    done = Service(tmp_path / "data").run(*command.split(), "--help")
    assert done.returncode == 0
    assert "docsmith" in done.stdout.split("\n\n")[-1], "no example"
    bare = [
        line
        for line in re.findall(r"^  (?:-|[A-Z])[^\n]*(?=\n  \S|\n\n)", done.stdout, re.MULTILINE)
        if "  " not in line
    ]
    assert not bare


def test_documentation_without_a_page_is_reported(tmp_path):
    service = Service(tmp_path / "data")
    service.cli("organization", "create", "--name", "Acme")
    code = write_docs(tmp_path / "code", {"main.c": "int main;"})
    service.cli("project", "create", "--name", "Code", "--repository", str(code))
    done = service.run("index", "code")
    assert done.returncode == 0
    assert f"no page of documentation in {code}" in done.stderr
    assert ".mdx" in done.stderr


def test_unusable_settings_are_reported(tmp_path):
    service = Service(tmp_path / "data", {"DOCSMITH_AGENT__MODLE": "x"})
    done = service.run("organization", "list")
    assert done.returncode == 1
    assert "did you mean 'model'?" in done.stderr


def test_a_job_is_known_by_a_part_of_its_id(tmp_path):
    service = Service(tmp_path / "data")
    docs = write_docs(tmp_path / "docs")
    ours, theirs = (service.cli("organization", "create", "--name", name)["id"] for name in ("Acme", "Bolt"))
    for domain, organization in (("ours", ours), ("theirs", theirs)):
        whose = ("--domain", domain, "--organization", organization)
        service.cli("project", "create", "--name", domain, "--repository", str(docs), *whose)
    first, second = (service.cli("job", "create", text, "--project", "ours")["id"] for text in ("One", "Two"))
    other = service.cli("job", "create", "Three", "--project", "theirs")["id"]

    def shown(part, *options, status=0):
        return service.cli("job", "show", part, *options, status=status)

    listed = service.run("job", "list", "--project", "ours").stdout
    assert f"\n{first[-8:]}  ours  active" in listed
    assert other[-8:] not in listed
    listed = service.run("job", "list").stdout
    assert f"\n{first[-8:]}  ours    active" in listed
    assert f"\n{other[-8:]}  theirs  active" in listed
    found = service.cli("job", "list", "--limit", "1")
    assert [job["id"] for job in found["jobs"]] == [other]
    assert found["jobs"][0]["projectId"] != service.cli("job", "list", "--project", "ours")["jobs"][0]["projectId"]
    assert found["nextCursor"] == other
    assert shown(first)["id"] == first
    assert shown(first[-8:], "--organization", ours)["id"] == first
    assert shown(other[-8:].upper(), "--organization", theirs)["id"] == other
    assert shown(first[-8:])["id"] == first
    assert shown(other[-8:], "--organization", ours, status=1)["code"] == "not_found"
    assert "at least 4 characters" in shown("0", "--organization", ours, status=1)["detail"]
    several = shown(first[:6], "--organization", ours, status=1)["detail"]
    assert first in several
    assert second in several
    assert other not in several
    assert service.cli("job", "cancel", second[-8:], "--organization", ours)["status"] == "failed"


def test_a_job_waits_in_the_log_for_a_service_to_carry_it_out(service):
    done = service.run("job", "create", 'Append "Kites rise." to index.md', "--json")
    job = json.loads(done.stdout)
    assert job["status"] == "active"
    assert "docsmith serve" in done.stderr
    service.start()
    watched = service.cli("job", "watch", job["id"])
    assert watched["status"] == "completed"
    shown = service.cli("job", "show", job["id"][-8:])
    assert shown["status"] == "completed"
    assert (shown["outcome"], shown["message"], shown["problems"]) == (
        "pull_request", '- Added "Kites rise." to index.md.', []
    )  # fmt: skip
    assert {name: watched[name] for name in ("outcome", "message", "problems", "prLink")}.items() <= shown.items()
    assert shown["prLink"].startswith(service.url)
    address = f"{service.url}/v2/agent/{service.project_id}/job/{job['id'][-8:]}"
    with pytest.raises(HTTPError, match="404"):  # over HTTP an id is whole
        urlopen(Request(address, headers=service.admin))
    twice = 'Append "Kites land." to index.md; append "Kites rest." to index.md'
    done = service.run("job", "create", twice, "--watch")
    assert done.returncode == 0
    assert "pull-request-opened  http://" in done.stdout
    added = [f'- Added "{text}" to index.md.' for text in ("Kites land.", "Kites rest.")]
    assert f"\njob-completed  {' '.join(added)}\n" in done.stdout
    assert done.stdout.endswith(f"\noutcome pull_request\nmessage {added[0]}\n  {added[1]}\n")
    assert service.stop() == 0


def test_a_log_that_was_tampered_with_is_found(tmp_path):
    service = Service(tmp_path / "data")
    service.cli("organization", "create", "--name", "Acme")
    service.cli("organization", "create", "--name", "Bolt")
    with sqlite3.connect(tmp_path / "data" / "events.db") as db:
        db.execute("UPDATE events SET data = replace(data, 'Acme', 'Evil')")
    db.close()
    found = service.cli("audit", "verify", status=3)
    assert (found["sound"], found["badPosition"]) == (False, 1)


def test_keys_are_listed_without_their_tokens(service):
    done = service.run("key", "list", "--json")
    assert service.admin_key not in done.stdout
    assert service.assistant_key not in done.stdout
    assert len(json.loads(done.stdout)["keys"]) == 2


def test_personal_text_is_not_in_the_log_in_plain_text(service):
    service.cli("ask", "kite", "Where does my grandmother Ermentrude live?")
    for file in service.data.glob("events.db*"):
        assert b"Ermentrude" not in file.read_bytes()
    events = service.cli("audit", "show", "--type", "message-posted")["events"]
    assert any("Ermentrude" in event["data"]["text"] for event in events)
