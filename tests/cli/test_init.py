import asyncio
import json
import re
import shutil
import stat
import subprocess

import pytest

from eventstore import SQLiteEventStore, Views
from service.cli.grafana import ALERTS, PANELS
from service.cli.init import CONTAINER, commented_settings
from service.projections import all_projections
from service.settings import Settings, load_settings, read_settings
from service.web.metrics import Metrics
from tests.cli.test_config import docsmith


def tool(name: str, reason: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"asks {name}; {reason}")
    return found


def test_it_writes_settings_that_are_the_defaults_and_overwrites_nothing(tmp_path):
    assert docsmith(tmp_path, "init").returncode == 0
    file = tmp_path / "docsmith.toml"
    assert load_settings(file, {}) == Settings()
    assert docsmith(tmp_path, "config", "check").returncode == 0
    file.write_text("[agent]\n")
    again = docsmith(tmp_path, "init")
    assert (again.returncode, len(again.stderr.splitlines())) == (1, 1)
    assert file.read_text() == "[agent]\n"


def test_every_commented_line_is_a_setting(tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text(re.sub(r"(?m)^# (\w+ = \S.*|\[models\.\w+\])$", r"\1", commented_settings()))
    reading = read_settings(file, {})
    assert reading.problems == ()
    assert reading.settings is not None
    assert reading.settings.models["sonnet"].api_key_env == "ANTHROPIC_API_KEY"
    assert sum(value.origin.startswith(str(file)) for value in reading.values) > 40


def test_systemd_takes_the_unit_file(tmp_path):
    analyze = tool("systemd-analyze", "install systemd to run it")
    unit = tmp_path / "docsmith.service"
    program = tmp_path / "docsmith"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    text = docsmith(tmp_path, "init", "--systemd").stdout
    unit.write_text(text.replace("ExecStart=docsmith", f"ExecStart={program}"))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "docsmith" in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_container_recipe_is_well_formed_and_runs_as_nobody(tmp_path):
    printed = docsmith(tmp_path, "init", "--container").stdout
    assert printed == CONTAINER
    joined = printed.replace("\\\n", " ")
    orders = [line.split(None, 1) for line in joined.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "ENV", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert orders[0][0] == "FROM"
    assert {name for name, _ in orders} <= known
    assert [rest for name, rest in orders if name == "USER"] == ["10001"]
    assert all(isinstance(json.loads(rest), list) for name, rest in orders if name in ("ENTRYPOINT", "CMD"))


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bdocsmith_\w+", expression))


async def told(tmp_path) -> str:
    """The metrics' declarations."""
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as views,
    ):
        await views.catch_up()
        return (await Metrics(store, views, tmp_path, lambda: 0).text()).decode()


def test_the_dashboard_and_the_rules_name_what_there_is(tmp_path):
    declared = set()
    for name, kind in re.findall(r"# TYPE (\w+) (\w+)", asyncio.run(told(tmp_path))):
        declared |= {f"{name}_bucket", f"{name}_count"} if kind == "histogram" else {name}
    asked = [expression for _, _, lines in PANELS for expression, _ in lines] + [rule[1] for rule in ALERTS]
    assert set().union(*map(names_in, asked)) <= declared
    dashboard = json.loads(docsmith(tmp_path, "init", "--grafana").stdout)
    assert len(dashboard["panels"]) == len(PANELS) == len({panel["id"] for panel in dashboard["panels"]})


def test_prometheus_takes_the_rules_and_the_expressions(tmp_path):
    promtool = tool("promtool", "install Debian's package prometheus to run it")
    rules = tmp_path / "rules.yml"
    rules.write_text(docsmith(tmp_path, "init", "--alerts").stdout)
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = [expression for _, _, lines in PANELS for expression, _ in lines]
    groups = {"groups": [{"name": "panels", "rules": [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(shown)
    ]}]}  # fmt: skip
    rules.write_text(json.dumps(groups))
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_section_says_what_it_is_about():
    text = commented_settings()
    sections = re.findall(r"(?m)^(.*)\n\[(\w+)\]$", text)
    assert len(sections) > 8
    assert [name for above, name in sections if not above.startswith("# ")] == []
