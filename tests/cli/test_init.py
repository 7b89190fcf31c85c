import asyncio
import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eventstore import SQLiteEventStore, Views
from service.cli.setup.init import commented_settings
from service.cli.setup.recipes import filled, out_of_reach
from service.projections import all_projections
from service.runtime.settings.settings import Settings
from service.runtime.settings.settings_file import load_settings, read_settings
from service.web.api.metrics import Metrics
from tests.cli.test_config import docsmith

ROOT = Path(__file__).parents[2]


def shown_expressions() -> list[str]:
    panels = json.loads(filled("dashboard.json"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_dashboard_sums_nothing_that_each_instance_counts_of_all():
    summed = [one for one in shown_expressions() if one.startswith("sum")]
    assert [one for one in summed if "docsmith_jobs_" in one] == []


def tool(name: str, reason: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"asks {name}; {reason}")
    return found


def test_init_writes_default_settings_and_overwrites_nothing(tmp_path):
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


def test_systemd_takes_the_unit_files(tmp_path):
    analyze = tool("systemd-analyze", "install systemd to run it")
    program = tmp_path / "docsmith"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    text = docsmith(tmp_path, "init", "--systemd").stdout
    (tmp_path / "docsmith.service").write_text(text.replace("ExecStart=docsmith", f"ExecStart={program}"))
    (tmp_path / "docsmith.socket").write_text(docsmith(tmp_path, "init", "--systemd-socket").stdout)
    done = subprocess.run(
        [analyze, "verify", str(tmp_path / "docsmith.service"), str(tmp_path / "docsmith.socket")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "docsmith" in line]
    assert (done.returncode, complaints) == (0, [])


CALLS = """
accept4 access arch_prctl bind brk chdir chmod clock_nanosleep clone clone3 close close_range connect epoll_create1
epoll_ctl epoll_wait execve exit exit_group fcntl fdatasync flock fsync ftruncate futex getcwd getdents64 geteuid getpid
getrandom getsockname getsockopt gettid getxattr ioctl link listen lseek madvise mkdir mmap mprotect mremap munmap
newfstatat openat pipe2 poll prctl pread64 prlimit64 pwrite64 read readlink recvfrom recvmsg rename renameat
restart_syscall rmdir rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity sched_yield sendmsg sendto
set_robust_list set_tid_address setitimer setsockopt socket socketpair stat statfs statx sysinfo uname unlink unlinkat
utimensat vfork wait4 write
"""
"""What the single binary was seen to ask of Linux (strace -f, x86-64) from its start to its stop, with an index, an
answer and a job in between. Left out is fchown, which SQLite asks for only as root.
"""


def test_unit_allows_each_system_call_of_the_service():
    analyze = tool("systemd-analyze", "install systemd to run it")

    def members(name: str) -> set[str]:
        shown = subprocess.run([analyze, "syscall-filter", name], capture_output=True, text=True, check=True).stdout
        words = [word for line in shown.splitlines()[1:] if (word := line.strip()) and not word.startswith("#")]
        return set().union(*(members(word) if word.startswith("@") else {word} for word in words))

    allowed = members("@default")
    for name, value in orders_of(filled("docsmith.service")):
        if name == "SystemCallFilter":
            named = set().union(*map(members, value.removeprefix("~").split()))
            allowed = allowed - (named - members("@default")) if value.startswith("~") else allowed | named
    assert "setrlimit" not in allowed  # the C library makes it of prlimit64
    assert set(CALLS.split()) - allowed == set()


def test_the_unit_names_the_program_that_printed_it(tmp_path):
    line = docsmith(tmp_path, "init", "--systemd").stdout.partition("\nExecStart=")[2].partition("\n")[0]
    beside = Path(sys.executable).with_name("docsmith")
    assert line == f"{beside if beside.exists() else 'docsmith'} serve --data /var/lib/docsmith"


def test_unit_of_a_program_that_services_cannot_read_is_warned_about(tmp_path):
    program = tmp_path / "docsmith"
    program.write_text(f"#!{sys.executable}\nfrom service.__main__ import main\nmain()\n")
    program.chmod(0o755)
    for option in ("--systemd", "--systemd-backup", "--systemd-follow"):
        done = subprocess.run(
            [program, "init", option], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
        )
        assert f"ExecStart={program}" in done.stdout
        assert re.fullmatch(rf"docsmith: warning: .* cannot read {program}\. .*/opt/docsmith.*\n", done.stderr)
    assert docsmith(tmp_path, "init", "--container").stderr == ""


@pytest.mark.parametrize("closed", ["/root/docsmith", "/home/ada/docsmith", "/run/user/1000/docsmith", "/etc/shadow"])
def test_files_that_services_cannot_read_are_found(closed):
    assert out_of_reach([Path("/bin/sh"), Path(closed)]) == Path(closed)


def test_files_of_the_system_can_be_read_by_services(tmp_path):
    assert out_of_reach([Path("/bin/sh"), Path("/usr/bin"), Path("/usr/bin/env")]) is None
    link = Path(tmp_path / "sh")
    link.symlink_to("/bin/sh")
    assert out_of_reach([link]) == link


def orders_of(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, mark, value in (line.partition("=") for line in text.splitlines()) if mark]


def test_the_unit_needs_no_file_but_the_program():
    orders = [
        (name, value)
        for name, value in orders_of(filled("docsmith.service"))
        if not name.startswith(("#", "ExecReload"))
    ]
    made = {
        f"{root}/{value}"
        for name, value in orders
        for kind, root in (("State", "/var/lib"), ("Cache", "/var/cache"), ("Configuration", "/etc"))
        if name == f"{kind}Directory"
    }
    named = {path for name, value in orders for path in re.findall(r"(?<!\S)-?/\S+", value)}
    assert {path for path in named if not path.startswith("-")} <= made
    assert "Environment" not in dict(orders)  # a settings file named there has to be there


def test_the_data_belongs_to_a_user_that_commands_can_be_run_as():
    orders = dict(orders_of(filled("docsmith.service")))
    assert (orders["User"], "DynamicUser" in orders) == ("docsmith", False)
    home = re.search(r"useradd --system --home-dir (\S+) .* docsmith$", filled("docsmith.service"), re.MULTILINE)
    assert home is not None
    # One unpacked program for both: the service would keep another one in CACHE_DIRECTORY.
    assert (home[1], orders["UnsetEnvironment"]) == (f"/var/cache/{orders['CacheDirectory']}", "CACHE_DIRECTORY")


def test_container_recipe_is_well_formed_and_runs_unprivileged(tmp_path):
    printed = docsmith(tmp_path, "init", "--container").stdout
    assert printed == filled("Containerfile")
    joined = printed.replace("\\\n", " ")
    orders = [line.split(None, 1) for line in joined.splitlines() if line and not line.startswith("#")]
    known = {
        "FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "ENV", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
        "CMD",
    }  # fmt: skip
    assert orders[0][0] == "FROM"
    assert {name for name, _ in orders} <= known
    assert [rest for name, rest in orders if name == "USER"] == ["10001"]
    assert all(isinstance(json.loads(rest), list) for name, rest in orders if name in ("ENTRYPOINT", "CMD"))
    (check,) = [rest.partition("CMD ")[2] for name, rest in orders if name == "HEALTHCHECK"]
    program, *command = json.loads(check)
    assert [program] == json.loads(dict(orders)["ENTRYPOINT"])
    assert docsmith(tmp_path, *command, "--help").returncode == 0


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


def test_dashboard_and_rules_name_existing_metrics(tmp_path):
    declared = set()
    for name, kind in re.findall(r"# TYPE (\w+) (\w+)", asyncio.run(told(tmp_path))):
        declared |= {f"{name}_bucket", f"{name}_count"} if kind == "histogram" else {name}
    asked = shown_expressions() + [rule["expr"] for rule in yaml.safe_load(filled("alerts.yml"))["groups"][0]["rules"]]
    assert set().union(*map(names_in, asked)) <= declared
    dashboard = json.loads(docsmith(tmp_path, "init", "--grafana").stdout)
    assert len(dashboard["panels"]) == len({panel["id"] for panel in dashboard["panels"]}) > 10


def test_prometheus_takes_the_rules_and_the_expressions(tmp_path):
    promtool = tool("promtool", "install Debian's package prometheus to run it")
    rules = tmp_path / "rules.yml"
    rules.write_text(docsmith(tmp_path, "init", "--alerts").stdout)
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = shown_expressions()
    groups = {"groups": [{"name": "panels", "rules": [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(shown)
    ]}]}  # fmt: skip
    rules.write_text(json.dumps(groups))
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


INSTANCE_ALERTS = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="docsmith", instance="a"}', values: '1x20'}
      - {series: 'up{job="docsmith", instance="b"}', values: '1x20'}
      - {series: 'docsmith_instances{job="docsmith", instance="a"}', values: '2x9 1x10'}
      - {series: 'docsmith_instances{job="docsmith", instance="b"}', values: '2x9 1x10'}
      - {series: 'docsmith_leads{job="docsmith", instance="a"}', values: '1x4 0x15'}
      - {series: 'docsmith_leads{job="docsmith", instance="b"}', values: '0x9 1x10'}
      - {series: 'docsmith_data_folder_trouble{job="docsmith", instance="a", reason="log_away"}', values: '0x4 1x4 0x10'}
      - {series: 'docsmith_data_folder_trouble{job="docsmith", instance="a", reason="disk_full"}', values: '0x20'}
    alert_rule_test:
      - {eval_time: 4m, alertname: DocsmithNoLeader}
      - {eval_time: 6m, alertname: DocsmithNoLeader}
      - {eval_time: 8m, alertname: DocsmithNoLeader, exp_alerts: [{exp_labels: {job: docsmith}, exp_annotations: {summary: LEADER}}]}
      - {eval_time: 11m, alertname: DocsmithNoLeader}
      - {eval_time: 8m, alertname: DocsmithLogAway, exp_alerts: [{exp_labels: {job: docsmith}, exp_annotations: {summary: AWAY}}]}
      - {eval_time: 11m, alertname: DocsmithLogAway}
      - {eval_time: 8m, alertname: DocsmithDataFolderUnwritable}
      - {eval_time: 9m, alertname: DocsmithInstancesMissing}
      - {eval_time: 16m, alertname: DocsmithInstancesMissing, exp_alerts: [{exp_labels: {job: docsmith}, exp_annotations: {summary: MISSING}}]}
"""  # noqa: E501 - a table


def test_alerts_of_several_instances_fire_when_they_should(tmp_path):
    promtool = tool("promtool", "install Debian's package prometheus to run it")
    (tmp_path / "rules.yml").write_text(filled("alerts.yml"))
    rules = {rule["alert"]: rule for rule in yaml.safe_load(filled("alerts.yml"))["groups"][0]["rules"]}
    text = INSTANCE_ALERTS
    for word, name in (("LEADER", "NoLeader"), ("AWAY", "LogAway"), ("MISSING", "InstancesMissing")):
        text = text.replace(f": {word}", f": {json.dumps(rules[f'Docsmith{name}']['annotations']['summary'])}")
    (tmp_path / "test.yml").write_text(text)
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_section_says_what_it_is_about():
    text = commented_settings()
    sections = re.findall(r"(?m)^(.*)\n\[(\w+)\]$", text)
    assert len(sections) > 8
    assert [name for above, name in sections if not above.startswith("# ")] == []
