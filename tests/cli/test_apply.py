"""``docsmith apply``, with the files that the manual shows."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from service.commands.apply.entries import read_declared
from tests.service_process import Service, begun, write_docs

PAGE = Path(__file__).parent.parent.parent / "service" / "manual" / "apply.md"
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_of_the_manual_is_right(tmp_path, example):
    (tmp_path / "entries.toml").write_text(example)
    assert read_declared(tmp_path / "entries.toml")


def test_file_of_the_manual_is_applied_and_taken_back(tmp_path):
    service, file = Service(tmp_path / "data"), tmp_path / "entries.toml"
    write_docs(tmp_path / "guide")
    file.write_text(EXAMPLES[0])
    plan = service.cli("apply", str(file), "--dry-run")
    assert (plan["dryRun"], len(plan["changes"]), plan["unchanged"]) == (True, 7, 0)
    assert not service.data.exists()
    said = service.run("apply", str(file))
    assert said.returncode == 0, said.stderr
    token = (tmp_path / "ci.key").read_text().strip()
    assert "created       key           CI  secret in" in said.stdout
    assert "docsmith login --person" in said.stderr
    assert token not in said.stdout + said.stderr
    assert service.cli("apply", str(file)) == {"dryRun": False, "changes": [], "unchanged": 7}
    file.write_text('[[person]]\nemail = "bob@example.com"\nrole = "owner"\n' + EXAMPLES[-1])
    assert [one["action"] for one in service.cli("apply", str(file))["changes"]] == ["create", *["remove"] * 3]
    assert service.cli("apply", str(file)) == {"dryRun": False, "changes": [], "unchanged": 4}


def test_mistake_is_one_line_and_makes_no_folder(tmp_path):
    (tmp_path / "entries.toml").write_text('[[key]]\nnam = "CI"\n')
    done = Service(tmp_path / "data").run("apply", str(tmp_path / "entries.toml"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "[[key]] 1: unknown name 'nam'; did you mean 'name'?" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


KEY = '[[key]]\nname = "{}"\nkind = "admin"\ntoken_file = "{}"\n'


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (("a.key", "./a.key"), "An earlier entry writes its secret to"),
        (("a\\u0000.key",), "Not the name of a file"),
        (("a\\u001b[2J.key",), "Not the name of a file"),
        (("a" * 250,), "is too long"),
        (("~no-such-person/a.key",), "The home folder of"),
    ],
)
def test_file_that_cannot_be_written_changes_nothing(tmp_path, files, problem):
    service, file = Service(tmp_path / "data"), tmp_path / "entries.toml"
    keys = "".join(KEY.format(f"CI {number}", name) for number, name in enumerate(files))
    file.write_text(f'[[organization]]\nname = "Acme"\n{keys}')
    done = service.run("apply", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "entries.toml").write_text('[[project]]\ndomain = "a\\u001b[2J"\n')
    done = Service(tmp_path / "data").run("apply", str(tmp_path / "entries.toml"))
    assert done.returncode == 1
    assert "\x1b" not in done.stderr


def test_pipe_in_place_of_an_unfinished_file_is_passed_by(tmp_path):
    service, file = Service(tmp_path / "data"), tmp_path / "entries.toml"
    file.write_text(f'[[organization]]\nname = "Acme"\n{KEY.format("CI", "a.key")}')
    service.cli("apply", str(file))
    os.mkfifo(tmp_path / ".a.key.unfinished")
    assert service.cli("apply", str(file))["unchanged"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("lines", range(0, 40, 3))
def test_killed_run_is_gone_on_with(tmp_path, lines):
    service, file = Service(tmp_path / "data"), tmp_path / "entries.toml"
    keys = "".join(f'[[key]]\nname = "{n}"\nkind = "admin"\ntoken_file = "{n}.key"\n' for n in range(40))
    file.write_text(f'[[organization]]\nname = "Acme"\n{keys}')
    words = ["apply", str(file), "--data", str(service.data)]
    with (tmp_path / "errors").open("w") as errors:
        process = begun(words, environment=service._environment(), stdout=subprocess.PIPE, stderr=errors)
    with process.stdout as stdout:
        for _ in range(lines + 1):
            stdout.readline()
        process.send_signal(signal.SIGKILL)
    process.wait()
    service.cli("apply", str(file))
    assert service.cli("apply", str(file))["unchanged"] == 41
    ends = {key["name"]: key["lastFour"] for key in service.cli("key", "list")["keys"]}
    assert len(service.cli("key", "list")["keys"]) == 40
    assert {n: (tmp_path / f"{n}.key").read_text()[-5:-1] for n in ends} == ends
    assert not list(tmp_path.glob(".*.unfinished"))
