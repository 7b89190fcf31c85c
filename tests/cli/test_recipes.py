"""What ``docsmith init`` prints for systemd about copies does what it says, run by hand where there is no systemd."""

import shlex
import subprocess
from pathlib import Path

import pytest

from service.cli.setup.recipes import recipe
from service.domain.errors import Invalid
from tests.cli.test_config import docsmith
from tests.cli.test_following import following, stop
from tests.cli.test_init import tool
from tests.service_process import Service


def written(folder: Path, script: str) -> dict[str, str]:
    """The files that the script writes, by their names; what it asks systemctl for comes as ``asked``."""
    fake = folder / "systemctl"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n')
    fake.chmod(0o755)
    units = folder / "units"
    units.mkdir()
    text = script.replace("/etc/systemd/system", str(units))
    subprocess.run(["sh"], input=text, text=True, check=True, env={"PATH": f"{folder}:/usr/bin:/bin"}, timeout=60)
    return {file.name: file.read_text() for file in (*units.iterdir(), folder / "asked")}


def command_of(unit: str) -> list[str]:
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    return shlex.split(line.removeprefix("ExecStart="))


@pytest.mark.parametrize("data", ["", "/srv/docs and more/50%$x"])
def test_systemd_takes_them(tmp_path, data):
    analyze = tool("systemd-analyze", "install systemd to run it")
    program = tmp_path / "docsmith"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    options = ["--data", data] if data else []
    files = written(tmp_path, docsmith(tmp_path, "init", "--systemd-backup", *options).stdout)
    assert files.pop("asked").splitlines() == ["daemon-reload", "enable --now docsmith-backup.timer"]
    files["docsmith-follow.service"] = docsmith(tmp_path, "init", "--systemd-follow", *options).stdout
    for name, text in files.items():
        (tmp_path / "units" / name).write_text(text.replace("ExecStart=docsmith", f"ExecStart={program}"))
    paths = [str(file) for file in (tmp_path / "units").iterdir()]
    done = subprocess.run([analyze, "verify", *paths], capture_output=True, text=True, check=False, timeout=300)
    complaints = [line for line in done.stderr.splitlines() if "docsmith" in line]
    assert (done.returncode, complaints, len(paths)) == (0, [], 3)


def test_commands_of_the_systemd_units_make_copies(tmp_path):
    service = Service(tmp_path / "docsmith")
    service.cli("organization", "create", "--name", "Acme")
    for name in ("docsmith-backups", "docsmith-vault"):  # as systemd makes them
        (tmp_path / name).mkdir()
    backup = written(tmp_path, recipe("backup.sh", "docsmith", Path("/var/lib/docsmith")))["docsmith-backup.service"]
    program, *arguments = command_of(backup.replace("/var/lib", str(tmp_path)))
    assert (program, arguments[-2:]) == ("docsmith", ["--data", str(service.data)])
    made = service.cli(*arguments[:-2])
    other = Service(tmp_path / "other")
    assert other.cli("restore", made["file"], "--vault", made["vault"], "--dry-run")["withoutKeys"] == []

    follow = recipe("docsmith-follow.service", "docsmith", Path("/var/lib/docsmith")).replace("/var/lib", str(tmp_path))
    _, name, folder, flag, *options = command_of(follow)
    assert (name, flag) == ("backup", "--follow")
    with following(service.data, Path(folder), *options[:2]) as process:
        assert stop(process) == 0
    assert other.cli("restore", folder, "--vault", options[1], "--dry-run")["sound"]


def test_a_folder_that_no_unit_file_can_name_is_refused():
    with pytest.raises(Invalid):
        recipe("docsmith-follow.service", "docsmith", Path("/srv/a\nExecStart=/bin/false"))
    assert '--data "/srv/a b$$c%%d"' in recipe("docsmith-follow.service", "docsmith", Path("/srv/a b$c%d"))
    assert 'ReadWritePaths="/srv/a b$c%%d"' in recipe("docsmith-follow.service", "docsmith", Path("/srv/a b$c%d"))
