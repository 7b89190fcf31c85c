"""What people run first: set-up, the demo, and what a package holds."""

import configparser
import importlib.metadata
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from dulwich.repo import Repo
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.service_process import BINARY, PROGRAM, free_port

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "scripts"
CONSTRAINTS = (SCRIPTS / "constraints.txt").read_text()
PINNED = dict(re.findall(r"^([a-z0-9_.-]+)==(\S+) \\$", CONSTRAINTS, re.MULTILINE))
EXTRAS = ("setup", "test", "binary")
"""What is pinned in addition to what Docsmith runs with."""


# Pinned packages


def test_every_pinned_package_has_hashes_and_no_place_is_named():
    lines = [line.partition(" #")[0].rstrip() for line in CONSTRAINTS.splitlines()]
    blocks = re.split(r"\n(?=\S)", "\n".join(line for line in lines if line and not line.lstrip().startswith("#")))
    assert len(blocks) == len(PINNED)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert not re.search(r"://|--(?!hash=)|\s/\w", CONSTRAINTS)


def test_pinned_versions_fit_the_bounds_of_setup():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    for requirement in " ".join([setup["options"]["install_requires"], *(extras[e] for e in EXTRAS)]).split():
        name, kind, bound = re.fullmatch(r"([\w.-]+)(>=|~=|==)([\d.]+)", requirement).groups()
        pinned, bound = numbers(PINNED[name.lower()]), numbers(bound)
        assert pinned >= bound, requirement
        assert kind == ">=" or pinned[: len(bound) - 1] == bound[:-1], requirement
        assert kind != "==" or pinned == bound, requirement


def test_first_part_of_the_pinned_packages_is_what_runs():
    parts = re.split("^# Only tests.*\n", CONSTRAINTS, flags=re.MULTILINE)
    runs, tests = (set(re.findall(r"^([a-z0-9_.-]+)==", part, re.MULTILINE)) for part in parts)
    assert runs >= requirements_of("docsmith") | {"setuptools", "uv"}
    assert tests >= {"hypothesis", "mypy", "playwright", "pyinstaller", "pytest", "ruff"}
    assert not runs & tests


def requirements_of(name):
    """Return what an installed package needs to run, and what that needs, without what only extras need."""
    found, todo = set(), [name]
    while todo:
        for requirement in map(Requirement, importlib.metadata.requires(todo.pop()) or ()):
            needed = canonicalize_name(requirement.name)
            if needed not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
                found.add(needed)
                todo.append(needed)
    return found


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


# Set-up, with a Python and a uv that only pretend

FAKE_PYTHON = """\
#!/bin/sh
case "$*" in
    "-c import ensurepip, venv") test ! -e no-ensurepip ;;
    -c*) exit 0 ;;
    -V) echo Python 3.11.99 ;;
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo venv >>calls ;;
    "-m pip --version") exit 0 ;;
    "-m pip --disable-pip-version-check --no-input config list") cat pip-config ;;
    "-m pip"*)
        echo "pip $*" >>calls
        for file; do :; done
        if [ -f "$file" ]; then cat "$file" >packages; fi
        if [ -e no-network ]; then echo "no network"; exit 1; fi
        case "$*" in *installer)
            if [ -e no-uv ]; then exit 1; fi
            cp "$(dirname "$0")/../../fake-uv" .venv/bin/uv ;;
        esac ;;
esac
"""
FAKE_UV = """\
#!/bin/sh
echo "uv $*" >>calls
for file; do :; done
if [ -f "$file" ]; then cat "$file" >packages; fi
printf '%s' "${UV_DEFAULT_INDEX:-}" >index
test ! -e uv-fails
"""
TOOLS = (
    "sh",
    "cat",
    "cksum",
    "cp",
    "date",
    "dirname",
    "flock",
    "grep",
    "mkdir",
    "mktemp",
    "rm",
    "sed",
    "tail",
    "touch",
)


@pytest.fixture
def checkout(tmp_path):
    """A copy of what set-up reads, in a folder with a space, and a PATH with the usual tools and the fake Python."""
    folder = tmp_path / "a check out"
    (folder / "scripts").mkdir(parents=True)
    for name in ("setup", "constraints.txt"):
        shutil.copy2(SCRIPTS / name, folder / "scripts")
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder)
    (folder / "pip-config").write_text("global.cert='/etc/cert.pem'\n")
    (folder / "fake-uv").write_text(FAKE_UV)
    (folder / "fake-uv").chmod(0o755)
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    python = tools / "python3.11"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    return folder


def set_up(checkout, *options):
    """Exit code, what it said, and what it did."""
    (checkout / "calls").unlink(missing_ok=True)
    path = str(next(checkout.parent.glob("bin")))
    done = subprocess.run(
        [checkout / "scripts" / "setup", *options], env={"PATH": path}, cwd="/", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == ""
    calls = checkout / "calls"
    return done.returncode, done.stderr, calls.read_text().splitlines() if calls.exists() else []


def tools_of(calls):
    return [call.split()[0] for call in calls]


def installed(checkout):
    """Return the names of the packages that were installed last."""
    return set(re.findall(r"^([a-z0-9_.-]+)==", (checkout / "packages").read_text(), re.MULTILINE))


def test_setup_installs_packages_by_hash_then_the_project(checkout):
    code, said, (venv, installer, packages, project) = set_up(checkout)
    assert code == 0
    assert venv == "venv"
    assert installer.startswith("pip ")
    assert "--require-hashes" in installer
    assert packages.startswith("uv ")
    assert "--require-hashes" in packages
    assert "--no-index" in project
    assert re.fullmatch(r"(setup: [^\n]+ … \d+ s\n){4}", said)


def test_the_second_set_up_does_nothing(checkout):
    set_up(checkout)
    assert set_up(checkout) == (0, "setup: up to date\n", [])


def test_setup_leaves_out_what_only_tests_need(checkout):
    set_up(checkout)
    assert "aiohttp" in installed(checkout)
    assert "pytest" not in installed(checkout)
    code, _, calls = set_up(checkout, "--tests")
    assert (code, tools_of(calls)) == (0, ["pip", "uv"])
    assert installed(checkout) == PINNED.keys()
    for options in ([], ["--tests"]):
        assert set_up(checkout, *options) == (0, "setup: up to date\n", [])


def test_setup_for_tests_from_nothing_serves_both(checkout):
    code, _, calls = set_up(checkout, "--tests")
    assert (code, tools_of(calls)) == (0, ["venv", "pip", "uv", "uv"])
    assert set_up(checkout) == (0, "setup: up to date\n", [])


def test_unknown_option_of_setup_is_reported(checkout):
    assert set_up(checkout, "--test") == (1, "setup: --test is not an option; the only one is --tests.\n", [])


@pytest.mark.parametrize("obstacle", ["no-uv", "uv-fails"])
def test_pip_installs_where_uv_cannot(checkout, obstacle):
    (checkout / obstacle).touch()
    code, said, calls = set_up(checkout)
    assert code == 0
    packages, project = (call for call in calls[2:] if call.startswith("pip "))
    assert "--require-hashes" in packages
    assert "aiohttp" in installed(checkout)
    assert "--editable ." in project
    assert re.fullmatch(r"(setup: [^\n]+ … \d+ s\n){4}", said)


def test_index_that_pip_is_set_to_is_used(checkout):
    with (checkout / "pip-config").open("a") as config:
        config.write("global.extra-index-url='https://b.example/simple'\nglobal.index-url='https://a.example/simple'\n")
    code, _, _ = set_up(checkout)
    assert (code, (checkout / "index").read_text()) == (0, "https://a.example/simple")


def test_changed_pins_install_again_into_the_same_environment(checkout):
    set_up(checkout, "--tests")
    with (checkout / "scripts" / "constraints.txt").open("a") as constraints:
        constraints.write("# changed\n")
    code, _, calls = set_up(checkout)
    assert (code, tools_of(calls)) == (0, ["pip", "uv", "uv"])
    code, _, calls = set_up(checkout, "--tests")
    assert (code, tools_of(calls)) == (0, ["pip", "uv"])


def test_a_failed_or_interrupted_set_up_is_repaired_by_the_next(checkout):
    (checkout / "no-network").touch()
    (checkout / "uv-fails").touch()
    code, said, _ = set_up(checkout)
    assert code == 1
    assert "no network" in said
    (checkout / "no-network").unlink()
    code, _, calls = set_up(checkout)
    assert (code, calls[0]) == (0, "venv")


def test_environment_that_was_moved_is_rebuilt(checkout):
    set_up(checkout)
    moved = checkout.rename(checkout.parent / "moved")
    code, _, calls = set_up(moved)
    assert (code, calls[0]) == (0, "venv")


def test_missing_python_is_reported_in_one_line_with_the_remedy(checkout):
    (checkout.parent / "bin" / "python3.11").unlink()
    code, said, _ = set_up(checkout)
    assert code == 1
    assert said.count("\n") == 1
    assert "Python 3.11 or newer" in said
    assert "apt-get install" in said


def test_python_without_venv_is_reported_in_a_line_with_remedy(checkout):
    (checkout / "no-ensurepip").touch()
    (checkout.parent / "bin" / "no-ensurepip").touch()
    code, said, _ = set_up(checkout)
    assert code == 1
    assert said.count("\n") == 1
    assert "python3-venv" in said


@pytest.mark.parametrize(
    "script", ["setup", "demo", "test", "check", "lock", "pictures", "build-wheel", "first-hour", "small-model"]
)
def test_scripts_can_be_run(script):
    assert os.access(SCRIPTS / script, os.X_OK)
    subprocess.run(["sh", "-n", SCRIPTS / script], check=True)


# The package


@pytest.mark.slow
def test_wheel_from_the_source_archive_is_complete(tmp_path):
    source = tmp_path / "source"
    (source / "scripts").mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("service", "eventstore"):
        shutil.copytree(ROOT / name, source / name)
    shutil.copy(SCRIPTS / "build-wheel", source / "scripts")
    (source / "scripts" / "setup").write_text("#!/bin/sh\n")
    (source / "scripts" / "setup").chmod(0o755)
    (source / ".venv").symlink_to(sys.prefix)
    done = subprocess.run([source / "scripts" / "build-wheel"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (source / "dist").glob("*.whl")
    assert len(list((source / "dist").glob("*.tar.gz"))) == 1
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (file for name in ("service", "eventstore") for file in (ROOT / name).rglob("*") if file.is_file())
    assert packed == {file.relative_to(ROOT).as_posix() for file in files if "__pycache__" not in file.parts}
    assert not list(source.glob("*.egg-info"))


# The README


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_install_and_first_five_minutes_work_as_in_the_readme(tmp_path):
    (install,), (serve,) = commands_of("Install and start")
    commands = "".join(line for block in commands_of("Five minutes in a terminal") for line in block)
    port = str(free_port())
    source = tmp_path / "source"
    shutil.copytree(ROOT / "service", source / "service", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "eventstore", source / "eventstore", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    environment = {
        "PATH": f"{empty_environment(tmp_path / 'installed')}:{os.environ['PATH']}", "HOME": str(tmp_path), "PS1": "",
        "DOCSMITH_SERVER__PORT": port, "URL": f"http://127.0.0.1:{port}",
        # The packages that it needs are there, so that the line works without the network.
        "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip
    wait = "trap 'kill $!' EXIT\nuntil curl -s $URL/readyz; do kill -0 $! || exit 1; done\n"
    begun = re.search(r"^docsmith serve &.*\n", commands, re.MULTILINE)[0]
    scripts = [
        install,
        serve.replace("\n", f" --data first &\n{wait}curl -sf $URL/ >page\n"),
        commands.replace(begun, begun + wait),
    ]
    for script in scripts:
        done = subprocess.run(
            ["sh", "-e"], input=script, cwd=source, env=environment, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "<html" in (source / "page").read_text()
    before, listening, after = done.stdout.partition(f"listening on http://localhost:{port}")
    assert "docsmith restore /backups" in before
    assert listening
    assert re.search(r"pull-request-opened  http://\S+/hosted/", after)
    assert "- Renamed secure.md to security.md." in after
    assert re.search(r"^\w{8}  .*completed  ", after, re.MULTILINE)
    assert "\ndocsmith_dsc_" in after
    assert (source / "data" / "events.db").is_file()


def commands_of(heading):
    """Return the lines of each block of commands below a heading of the README."""
    section = (ROOT / "README.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [block.splitlines(keepends=True) for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)]


def empty_environment(folder):
    """Make a virtual environment that sees the packages of this one; return the folder of its programs."""
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for old in packages.glob("setuptools*"):  # Python 3.11 brings one that makes no wheels
        shutil.rmtree(old)
    (packages / "seen.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    return folder / "bin"


def test_readme_is_short_and_its_pictures_are_small():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    pictures = re.findall(r'<img src="([^"]+)"', text)
    assert len(pictures) == 4
    assert all((ROOT / picture).stat().st_size < 100_000 for picture in pictures)
    links = re.findall(r"\]\(((?!http)[^)#]+)", text)
    assert [link for link in links if not (ROOT / link).is_file()] == []


# The demo


@pytest.fixture
def program(tmp_path):
    """Runs docsmith as a newcomer: an empty home, no settings, a folder of their own that is named as our package."""
    home = tmp_path / "a new home"
    (home / "service").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C"}

    def start(*arguments):
        command = [*(PROGRAM if BINARY else [Path(sys.executable).parent / "docsmith"]), *arguments]
        return subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    return start


def finished(process):
    out, _ = process.communicate(timeout=600)
    return process.returncode, out


def pull_requests(out):
    return set(re.findall(r"http://localhost:\d+/hosted/\S+/pulls/(\d+)-", out))


@pytest.mark.slow
def test_demo_changes_and_quotes_the_manual_again_and_again(program):
    code, out = finished(program("demo", "--exit", "--port", "0"))
    assert code == 0, out
    assert "Renamed secure.md to security.md." in out
    assert re.search(r"Fixed the links to it: \d+ in \d+ pages\.", out)
    assert "docsmith restore /backups/2026-01-31.tar" in out
    assert "/operate#restore-it" in out
    assert "--repository https://github.com/acme/guide" in out
    assert pull_requests(out) == {"1"}
    assert "The builtin models need no key" in out
    assert "serve --data .docsmith-demo" in out
    assert "sign-in#" not in out
    code, out = finished(program("demo", "--exit", "--port", "0"))
    assert code == 0, out
    assert "is there already" in out
    assert pull_requests(out) == {"2"}


@pytest.mark.slow
def test_the_demo_shows_documentation_of_ones_own(program, tmp_path):
    docs = tmp_path / "Our docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Welcome\n\nStart with the [anvil](anvil.md).\n")
    (docs / "anvil.md").write_text("# Anvil\n\n" + "An anvil is a block of iron on which a smith forges metal. " * 8)
    code, out = finished(program("demo", "--exit", "--port", "0", "--docs", str(docs)))
    assert code == 0, out
    assert 'What is in "Anvil"?' in out
    assert "block of iron" in out
    assert pull_requests(out) == {"1"}


@pytest.mark.slow
def test_a_repository_whose_branch_is_not_main_is_shown_too(program, tmp_path):
    docs = tmp_path / "guide"
    with Repo.init(docs, mkdir=True, default_branch=b"master") as repository:
        (docs / "index.md").write_text(
            "# Anvils\n\n" + "An anvil is a block of iron on which a smith forges metal. " * 8
        )
        worktree = repository.get_worktree()
        worktree.stage([b"index.md"])
        worktree.commit(message=b"Begin", author=b"A <a@example.com>", committer=b"A <a@example.com>")
    code, out = finished(program("demo", "--exit", "--port", "0", "--docs", str(docs)))
    assert code == 0, out
    assert pull_requests(out) == {"1"}


@pytest.mark.slow
def test_the_demo_keeps_serving_and_its_commands_can_be_pasted(program):
    process = program("demo", "--port", "0")
    out = ""
    for line in process.stdout:
        out += line
        if line.startswith("Serving until Ctrl-C"):
            break
    commands = re.findall(r"^curl (?:.*\\\n)*.*", out, re.MULTILINE)
    try:
        assert len(commands) == 3, out
        ways = ("Dashboard:", "Ask page:", "Pull request:", "The API, for programs:", "Admin key:", "curl -sS")
        assert sorted(ways, key=out.index) == list(ways)
        link = re.search(r"Dashboard: +(http://localhost:\d+)/sign-in#(\S+)", out)
        sign_in = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Sec-Fetch-Site: same-origin"]
        signed_in = subprocess.run(
            [*sign_in, "--data-urlencode", f"link={link[2]}", f"{link[1]}/sign-in"], capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert signed_in.stdout == "303"
        answers = [subprocess.run(["sh", "-c", one], capture_output=True, text=True, check=True) for one in commands]
    finally:
        process.send_signal(signal.SIGINT)
        code, rest = finished(process)
    assert '"status":"active"' in answers[0].stdout
    assert "event: pull-request-opened" in answers[1].stdout
    assert "docsmith restore" in "".join(re.findall(r'"delta":"([^"]*)"', answers[2].stdout))
    assert (code, rest.strip()) == (0, "Stopping.")


@pytest.mark.slow
def test_demo_asks_for_text_of_a_page(program, tmp_path):
    docs = tmp_path / "forge"
    docs.mkdir()
    (docs / "index.md").write_text("# Anvil\n\n" + "An anvil is a block of iron on which a smith forges metal. " * 8)
    (docs / "at home").mkdir()
    (docs / "at home" / "set-up.md").write_text(
        "# Set up your forge\n\n" + "Put the forge where the wind is, with an elm stump beside it. " * 8
    )
    code, out = finished(program("demo", "--exit", "--port", "0", "--docs", str(docs)))
    assert code == 0, out
    assert 'The assistant is asked: What is in "Set up your forge"?' in out
    assert "elm stump" in out
    assert 'The agent is asked: Create page "at home/hello-from-docsmith.md"' in out


@pytest.mark.slow
def test_a_folder_without_a_page_ends_the_demo(program, tmp_path):
    docs = tmp_path / "code"
    docs.mkdir()
    (docs / "main.c").write_text("int main;")
    code, out = finished(program("demo", "--exit", "--port", "0", "--docs", str(docs)))
    assert code == 1
    assert "no page of documentation in" in out.splitlines()[-1]


@pytest.mark.slow
def test_a_port_that_is_taken_ends_the_demo(program):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        code, out = finished(program("demo", "--exit", "--port", str(other.getsockname()[1])))
    assert code == 1
    *_, step, last = out.splitlines()
    assert re.fullmatch(r"  service +failed", step)
    assert "Address already in use; choose another with --port" in last


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--docs", "nowhere"], "nowhere is not a folder"),
        (["--port", "1", "--data", "/proc/docsmith"], "/proc/docsmith"),
    ],
)
def test_error_that_stops_the_demo_is_one_line(program, arguments, sentence):
    code, out = finished(program("demo", "--exit", *arguments))
    assert code == 1
    assert out.splitlines()[-1].startswith("docsmith: ")
    assert sentence in out.splitlines()[-1]
    assert "Traceback" not in out
