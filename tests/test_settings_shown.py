"""Settings as people see them."""

from pathlib import Path

from service.main.process.reloading import changes
from service.runtime.settings.settings_shown import SINCE_START, SettingsReader, ShownSettings


def shown(file: Path) -> tuple[ShownSettings, SettingsReader]:
    reader = SettingsReader(lambda: (file, {"DOCSMITH_SERVER__PORT": "9000"}))
    settings = ShownSettings(reader())
    settings.reader = reader
    return settings, reader


def line(settings: ShownSettings, name: str):
    return next(one for one in settings.read()[0] if one.name == name)


def test_setting_shows_its_origin(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text('[agent]\nauthor = "Docs <docs@example.com>"\n')
    settings, _ = shown(file)
    assert line(settings, "agent.author").origin == f"{file}:2"
    assert line(settings, "server.port").origin == "DOCSMITH_SERVER__PORT"
    assert line(settings, "server.host").is_default


def test_changed_file_shows_what_waits(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text("[limits]\n")
    settings, reader = shown(file)
    file.write_text("[agent]\nmax_steps = 7\n")
    found = line(settings, "agent.max_steps")
    assert (found.pending, found.origin) == ("7", SINCE_START)
    newest = reader()
    settings.change(newest, changes(settings.at_start, newest).after_restart)
    assert line(settings, "agent.max_steps").pending == "7"  # it takes a restart


def test_file_that_cannot_be_read_is_a_problem(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text("")
    settings, _ = shown(file)
    file.write_text("[nothing]\n")
    assert len(settings.read()[1]) == 1
    assert line(settings, "server.port").value == "9000"
