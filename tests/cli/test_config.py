import json
import subprocess
import sys
from pathlib import Path

import pytest

from service.domain.errors import Invalid
from service.settings import BadSettings, load_settings, read_settings

BAD = """\
[server]
port = 99999
prot = 1

[agents]
model = "builtin"

[models.sonnet]
api_base = "https://models.example"

[limits]
address_day = "many"
"""


def docsmith(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "service", *arguments]
    path = str(Path(__file__).parent.parent.parent)
    variables = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, check=False, timeout=60)


def test_each_problem_has_its_line(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text(BAD)
    problems = read_settings(file, {"DOCSMITH_AGENT__MODLE": "x", "DOCSMITH_SERVER__HEAD_SECONDS": "soon"}).problems
    assert problems == (
        f"{file}:2 [server]: port: Expected int <= 65535",
        f"{file}:3 [server]: unknown name 'prot'; did you mean 'port'?",
        "DOCSMITH_SERVER__HEAD_SECONDS [server]: head_seconds: Expected float, got str",
        f"{file}:5: unknown name 'agents'; did you mean 'agent'?",
        f"{file}:8 [models.sonnet]: model is required",
        f"{file}:12 [limits]: address_day: Expected int, got str",
        "DOCSMITH_AGENT__MODLE [agent]: unknown name 'modle'; did you mean 'model'?",
    )
    with pytest.raises(BadSettings, match="and 4 more: docsmith config check"):
        load_settings(file, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server = 1", ":1: server is a section"),
        ("[models]\nsonnet = 'x'", "write \\[models.sonnet\\] above"),
        ("server = ", "end of document"),
        ("[server]\ntrusted_proxies = 5", ":2 \\[server\\]: trusted_proxies"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, text, words):
    file = tmp_path / "docsmith.toml"
    file.write_text(text)
    with pytest.raises(Invalid, match=words):
        load_settings(file, {})


def test_a_value_knows_where_it_comes_from(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text('# ours\n[agent]\nmodel = "builtin"\nmax_steps = 7\n\n[models.a]\nmodel = "x/y"\n')
    reading = read_settings(file, {"DOCSMITH_AGENT__MAX_STEPS": "9", "DOCSMITH_DATA": "/elsewhere"})
    found = {value.name: (value.value, value.origin) for value in reading.values}
    assert found["agent.model"] == ("builtin", f"{file}:3")
    assert found["agent.max_steps"] == (9, "DOCSMITH_AGENT__MAX_STEPS")
    assert found["models.a.model"] == ("x/y", f"{file}:7")
    assert found["server.port"] == (8080, "default")


def test_config_check_tells_every_problem_in_a_line(tmp_path):
    (tmp_path / "docsmith.toml").write_text(BAD)
    done = docsmith(tmp_path, "config", "check")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 5)
    (tmp_path / "docsmith.toml").write_text('[agent]\nmodel = "sonet"\n')
    done = docsmith(tmp_path, "config", "check")
    assert (done.returncode, done.stdout) == (1, "docsmith.toml: there is no model 'sonet' in the settings\n")
    (tmp_path / "docsmith.toml").write_text('[server]\ntrusted_proxies = ["10.0.0.0/99"]\n')
    assert docsmith(tmp_path, "config", "check").returncode == 1
    (tmp_path / "docsmith.toml").write_text('[agent]\nmodel = "builtin"\n')
    assert docsmith(tmp_path, "config", "check").returncode == 0


def test_config_show_hides_what_looks_like_a_secret(tmp_path):
    (tmp_path / "docsmith.toml").write_text(
        '[models.a]\nmodel = "openai/x"\napi_base = "https://me:geheim@models.example/v1"\n'
        'api_key_env = "sk-proj-abcdefghijklmnop"\n'
    )
    done = docsmith(tmp_path, "config", "show", "--changed", "--json", DOCSMITH_SERVER__PORT="1234")
    assert "geheim" not in done.stdout + done.stderr
    assert "abcdefgh" not in done.stdout + done.stderr
    shown = {one["name"]: (one["value"], one["origin"]) for one in json.loads(done.stdout)["settings"]}
    assert shown == {
        "server.port": (1234, "DOCSMITH_SERVER__PORT"),
        "models.a.model": ("openai/x", "docsmith.toml:2"),
        "models.a.api_base": ("https://••••@models.example/v1", "docsmith.toml:3"),
        "models.a.api_key_env": ("••••", "docsmith.toml:4"),
    }
