import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli.parsing import Options
from service.cli.setup.config import sources_of
from service.domain.errors import Invalid
from service.runtime.settings.settings_file import BadSettings, load_settings, read_settings

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


NO_SONET = "there is no model 'sonet' in the settings, or among those that were added"


def docsmith(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "service", *arguments]
    path = str(Path(__file__).parent.parent.parent)
    variables = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, check=False, timeout=300)


SERVICE_LINKS = {
    "DOCSMITH_SERVICE_HOST": "10.96.0.12",
    "DOCSMITH_SERVICE_PORT": "8080",
    "DOCSMITH_SERVICE_PORT_HTTP": "8080",
    "DOCSMITH_PORT": "tcp://10.96.0.12:8080",
    "DOCSMITH_PORT_8080_TCP": "tcp://10.96.0.12:8080",
    "DOCSMITH_PORT_8080_TCP_PROTO": "tcp",
    "DOCSMITH_PORT_8080_TCP_PORT": "8080",
    "DOCSMITH_PORT_8080_TCP_ADDR": "10.96.0.12",
    "DOCSMITH_STORE_DB_SERVICE_HOST": "10.96.0.13",
    "DOCSMITH_STORE_DB_PORT": "tcp://[fd00::1]:5432",
}


def test_variables_that_kubernetes_makes_are_ignored():
    reading = read_settings(None, {**SERVICE_LINKS, "DOCSMITH_SERVER__PORT": "9090"})
    assert reading.problems == ()
    assert (reading.settings.server.port, reading.settings.server.host) == (9090, "127.0.0.1")


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
    ("variable", "says"),
    [
        ("SERVER_PORT", "did you mean DOCSMITH_SERVER__PORT?"),
        ("PORT", "did you mean DOCSMITH_SERVER__PORT?"),
        ("DAT", "did you mean DOCSMITH_DATA?"),
        ("SERVER__PUBLIC_URL", "Expected an address, such as"),
        ("SERVER__HOST", "Expected an address or a name of this machine"),
        ("SERVER__TRUSTED_PROXIES", "trusted_proxies: '!' is not an address or network"),
        ("MODELS__A__API_BASE", "[models.a]: api_base: Expected an address"),
        ("MODELS__A__API_KEY_ENV", "api_key_env: Expected the name of a variable"),
        ("METRICS__TOKEN_ENV", "token_env: Expected the name of a variable"),
        ("THREADS__REQUIRE_KEY", "Expected true or false"),
    ],
)
def test_value_without_meaning_is_reported(variable, says):
    environment = {f"DOCSMITH_{variable}": "!", "DOCSMITH_MODELS__A__MODEL": "openai/x"}
    (problem,) = read_settings(None, environment).problems
    assert problem.startswith(f"DOCSMITH_{variable}")
    assert says in problem


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("temperature = 3", "temperature: Expected float <= 2.0"),
        ('temperature = "hot"', "temperature: Expected float, got str"),
        ("top_p = 0", "top_p: Expected float > 0.0"),
        ('reasoning_effort = "lots"', "reasoning_effort: Expected one of 'none', 'minimal', 'low'"),
        ("max_output_tokens = 0", "max_output_tokens: Expected int >= 1"),
        ("extra = 5", "extra: Expected a table, such as {top_k = 40}, got int"),
        ("extra = {messages = []}", "extra: 'messages' is set by Docsmith; leave it out"),
        ("extra = {top_p = 1}", "extra: 'top_p' has a setting of its own; write it beside extra"),
        ("extra = {since = 2026-01-02}", "extra: Expected texts, numbers, true, false, lists and tables of them"),
        ("extra = {x = nan}", "extra: Expected texts, numbers"),
        ("extra = {a.b.c.d.e.f.g.h.i = 1}", "extra: Expected texts, numbers"),
    ],
)
def test_model_parameter_without_meaning_is_reported(tmp_path, line, says):
    file = tmp_path / "docsmith.toml"
    file.write_text(f'[models.a]\nmodel = "openai/x"\n{line}\n')
    (problem,) = read_settings(file, {}).problems
    assert problem.startswith(f"{file}:3 [models.a]: {says}")


def test_model_parameters_are_read_from_the_file_and_the_environment(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text('[models.a]\nmodel = "openai/x"\ntemperature = 0\nextra = {top_k = 40, api_key_id = "mine"}\n')
    environment = {
        "DOCSMITH_MODELS__A__REASONING_EFFORT": "low",
        "DOCSMITH_MODELS__A__EXTRA__OWN": '{"deep": [1]}',
        "DOCSMITH_MODELS__A__EXTRA__SEED": "7",
        "DOCSMITH_MODELS__A__EXTRA__USER": "docs",
    }
    reading = read_settings(file, environment)
    section = reading.settings.models["a"]
    assert (section.temperature, section.top_p, section.reasoning_effort) == (0.0, None, "low")
    assert section.extra == {"top_k": 40, "api_key_id": "mine", "own": {"deep": [1]}, "seed": 7, "user": "docs"}
    origins = {one.name: one.origin for one in reading.values}
    assert origins["models.a.extra.top_k"] == f"{file}:4"
    assert origins["models.a.extra.seed"] == "DOCSMITH_MODELS__A__EXTRA__SEED"


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_a_number_is_one_that_can_be_counted_to(number):
    for name in ("AUDIT__CHECKPOINT_MINUTES", "AGENT__MAX_COST_USD", "SERVER__IDLE_SECONDS", "AGENT__MAX_MINUTES"):
        assert len(read_settings(None, {f"DOCSMITH_{name}": number}).problems) == 1, name


@pytest.mark.parametrize(
    "url",
    [
        "ftp://docs.example.com",
        "https://",
        "https://u:p@docs.example.com",
        "https://a.example/?b=c",
        "//x",
        "https://[x",
    ],
)
def test_a_public_address_is_one_that_links_can_begin_with(url):
    assert read_settings(None, {"DOCSMITH_SERVER__PUBLIC_URL": url}).problems
    assert not read_settings(None, {"DOCSMITH_SERVER__PUBLIC_URL": "http://docs.example.com:8080/kite"}).problems


def test_a_file_from_another_editor_is_read(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\r\nport = 8081\r\n")
    assert load_settings(file, {}).server.port == 8081


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"#" * (1 << 20) + b"#", "longer than 1 MiB"),
        (b"x = " + b"[" * 100_000, "brackets within brackets"),
        (b"x = '\xff'", "not UTF-8 text, from byte 5 on"),
    ],
)
def test_file_that_holds_no_settings_is_reported(tmp_path, content, says):
    file = tmp_path / "docsmith.toml"
    file.write_bytes(content)
    (problem,) = read_settings(file, {}).problems
    assert problem.startswith(f"{file}: ")
    assert says in problem


def test_endless_file_is_reported():
    assert "longer than" in read_settings(Path("/dev/zero"), {}).problems[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server = 1", ":1: server is a section"),
        ("[models]\nsonnet = 'x'", "write \\[models.sonnet\\] above"),
        ("server = ", "end of document"),
        ("[server]\ntrusted_proxies = 5", ":2 \\[server\\]: trusted_proxies"),
    ],
)
def test_malformed_settings_are_reported(tmp_path, text, words):
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


def test_config_check_reports_every_problem_in_a_line(tmp_path):
    (tmp_path / "docsmith.toml").write_text(BAD)
    done = docsmith(tmp_path, "config", "check")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 5)
    (tmp_path / "docsmith.toml").write_text('[agent]\nmodel = "sonet"\n')
    done = docsmith(tmp_path, "config", "check")
    assert (done.returncode, done.stdout) == (
        1,
        f"docsmith.toml: {NO_SONET}\n",
    )
    (tmp_path / "docsmith.toml").write_text('[server]\ntrusted_proxies = ["10.0.0.0/99"]\n')
    assert docsmith(tmp_path, "config", "check").returncode == 1
    (tmp_path / "docsmith.toml").write_text('[agent]\nmodel = "builtin"\n')
    assert docsmith(tmp_path, "config", "check").returncode == 0


def test_a_folder_that_may_not_be_looked_into_has_no_settings(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "docsmith.toml").write_text("somebody else's")
    monkeypatch.chdir(tmp_path / "closed")
    (tmp_path / "closed").chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        assert sources_of(Options(config=None))[0] is None
    finally:
        os.seteuid(user)
        (tmp_path / "closed").chmod(0o700)


def test_config_show_hides_what_looks_like_a_secret(tmp_path):
    (tmp_path / "docsmith.toml").write_text(
        '[models.a]\nmodel = "openai/x"\napi_base = "https://me:geheim@models.example/v1?api-key=geheim&v=2#geheim"\n'
        'extra = {seed = 7, x_api_key = "geheim", headers = {x = "geheim"}}\n'
        '[agent]\nauthor = "sk-proj-abcdefghijklmnop <a@b.example>"\n'
    )
    done = docsmith(tmp_path, "config", "show", "--changed", "--json", DOCSMITH_SERVER__PORT="1234")
    assert "geheim" not in done.stdout + done.stderr
    assert "abcdefgh" not in done.stdout + done.stderr
    shown = {one["name"]: (one["value"], one["origin"]) for one in json.loads(done.stdout)["settings"]}
    assert shown == {
        "server.port": (1234, "DOCSMITH_SERVER__PORT"),
        "models.a.model": ("openai/x", "docsmith.toml:2"),
        "models.a.api_base": ("https://••••@models.example/v1?api-key=••••&v=••••#••••", "docsmith.toml:3"),
        "models.a.extra.seed": (7, "docsmith.toml:4"),
        "models.a.extra.x_api_key": ("••••", "docsmith.toml:4"),
        "models.a.extra.headers": ("••••", "docsmith.toml:4"),
        "agent.author": ("•••• <a@b.example>", "docsmith.toml:6"),
    }


def test_config_show_says_where_the_log_is(tmp_path):
    stores = {f"DOCSMITH_{one}": f"postgresql://me:geheim@{one}.example:5433/kite" for one in ("STORE", "VAULT")}
    done = docsmith(tmp_path, "config", "show", "--json", **stores)
    assert json.loads(done.stdout)["log"] == {
        "store": "postgresql", "log": "store.example/kite", "vault": "vault.example/kite"
    }  # fmt: skip
    written = docsmith(tmp_path, "config", "show", **stores)
    assert "in PostgreSQL at store.example/kite (DOCSMITH_STORE), its vault at vault.example/kite" in written.stdout
    assert "geheim" not in done.stdout + done.stderr + written.stdout + written.stderr
    here = docsmith(tmp_path, "config", "show", "--data", "mine")
    assert "The log is in mine/events.db, its vault in mine/keys.db." in here.stdout
    assert not (tmp_path / "mine").exists()


def test_config_show_goes_on_without_the_log_address(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store").write_text("store.example/kite\n")
    done = docsmith(tmp_path, "config", "show")
    assert (done.returncode, "set DOCSMITH_STORE and DOCSMITH_VAULT" in done.stdout) == (0, True)
