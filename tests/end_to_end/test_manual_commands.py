"""Each command of the manual, run as it stands there, on a site with a job, a thread and keys of its own."""

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.service_process import Service, begun, service_in, write_docs

ROOT = Path(__file__).parent.parent.parent
MANUAL = ROOT / "service" / "manual"
PAGES = sorted(file.name for file in MANUAL.glob("*.md") if "```sh" in file.read_text("utf-8"))

QUICK = ("start.md", "troubleshooting.md")
"""Pages whose commands are run with every test run; the others' with the slow tests."""

FAILS = {
    "job cancel": {0, 1},  # the job may have ended
    "job retry": {0, 1},  # it may not have failed
    "job merge": {0, 1},  # it may be under way, or closed
    "job close": {0, 1},
    "job show": {0, 1, 4},  # as the job ended
    "webhook redeliver": {1},  # nothing was delivered
    "webhook test": {1},  # nothing is at its address
    "audit erase thread-": {0, 2},  # without --yes
    "audit erase job-": {2},  # as the line before
    "index guide --check": {0, 3},  # as its links are
    "model add": {1},  # there is no key, and nothing answers at its address
    "audit erase --fp": {1},  # this reader has no thread
    "project update guide --label": {1},  # the embedded code host has no labels
    "person remove ada@example.com": {0, 1},  # on the page of people she was added
    "person erase ada@example.com": {0, 1},
    "audit accept-loss": {1},  # nothing was lost
    "doctor": {0, 1},
    "restore --only": {1},  # the repository is sound
    "vault": {0, 1},  # here it is a file, which is not wrapped
    "project create --name Guide --domain guide --code-host github": {1},  # nothing answers there
    "project create --name Guide --website": {1},
}
"""Exit codes of commands that cannot do their work here, by how they begin."""
ELSEWHERE = ("./docsmith", "sha256sum", "pip install", "sudo", "docsmith demo", "docsmith store", "docker", "kubectl",
             "cd docsmith-", "psql", "docsmith restore --to")  # fmt: skip
"""Commands that .ci/run, tests/binary, tests/test_scripts.py, tests/cli (test_store.py, test_postgres_backup.py and
test_deployments.py) run or check."""


def commands_of(text: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


class Shell:
    """Runs commands one after the other in one folder, and serves while they ask for it."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._service, self._folder = service, folder
        self._server: Service | None = service if service.process else None
        self.values: dict[str, str] = {}
        self._environment: dict[str, str] = {}

    def run(self, line: str) -> None:
        for name, value in self.values.items():
            line = re.sub(rf"\b{re.escape(name)}\b", value, line)
        for place in ("/backups", "/elsewhere", "/other-disk"):
            line = line.replace(place, str(self._folder / place[1:]))
        line = line.replace("https://github.com", "https://127.0.0.1:9")
        if self._service.url:
            line = line.replace("http://localhost:8080", self._service.url).replace(
                "localhost:8080", self._service.url[7:]
            )
        words = shlex.split(line)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._environment[name] = value
        elif words[0] != "docsmith":
            done = subprocess.run(["sh", "-euc", line], capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stderr
            assert '"requestId"' not in done.stdout, done.stdout
        elif words[1] == "serve":
            self.stop()
            data = words[words.index("--data") + 1] if "--data" in words else "data"
            self._server = Service(self._folder / data)
            self._server.start(*[word for word in words[2:] if word == "--drill"])
            self._service.url = self._server.url
        else:
            self._docsmith(words[1:])

    def _docsmith(self, words: list[str]) -> None:
        goes_on = "--follow" in words or (words[0] == "index" and "--watch" in words)
        if words[0] == "take-over":
            self.stop()
        if ">" in words:
            words = words[: words.index(">")]
        with (self._folder / "out").open("w+") as out, (self._folder / "errors").open("w+") as errors:
            stdout = subprocess.PIPE if goes_on else out
            process = begun(
                words, environment=self._service._environment() | self._environment, stdout=stdout, stderr=errors
            )
            if goes_on:
                assert process.stdout is not None
                with process.stdout as stdout:
                    assert stdout.readline()
                    process.send_signal(signal.SIGTERM)
                    stdout.read()
            status = process.wait(timeout=600)
        said = (self._folder / "errors").read_text()
        allowed = next((codes for start, codes in FAILS.items() if shlex.join(words).startswith(start)), {0})
        assert status in allowed or (goes_on and status in (0, 130)), f"{words}: {status}\n{said}"
        assert "Traceback" not in said

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """In a folder with documentation, and for all pages but the first one with a running service that has done work."""
    monkeypatch.chdir(tmp_path)
    write_docs(tmp_path / "guide")
    (tmp_path / "entries.toml").write_text(
        (MANUAL / "apply.md").read_text("utf-8").split("```toml\n")[1].split("```")[0]
    )
    (tmp_path / "backups").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "other-disk").mkdir()
    service = Service(tmp_path / "data")
    if request.node.callspec.params["page"] == "start.md":
        shell = Shell(service, tmp_path)
    else:
        service.set_up(tmp_path / "guide", domain="guide")
        entries = (tmp_path / "entries.toml").read_text()
        (tmp_path / "entries.toml").write_text(
            entries.replace('= "guide"\n\n[[site]]', f'= "{service.repository}"\n\n[[site]]')
        )
        service.start()
        shell = Shell(service, tmp_path)
        job = service.cli("job", "create", "Fix broken links", "--watch")
        thread = service.cli("ask", "guide", "How do I install it?")
        shell.values = {
            "ADMIN_KEY": service.admin_key,
            "ASSISTANT_KEY": service.assistant_key,
            "DELIVERY_ID": "msg-none",
            "JOB_ID": job["id"],
            "KEY_ID": service.cli("key", "create", "--kind", "admin")["id"],
            "PROJECT_ID": service.project_id,
            "READER": "reader-1",
            "THREAD_ID": thread["threadId"],
            "WEBHOOK_ID": service.cli("webhook", "create", "--url", "https://example.com/docsmith")["id"],
        }
    yield shell
    shell.stop()


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("git") is None, reason="needs curl and git")
@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.slow) for page in PAGES]
)
def test_the_commands_of_a_page_run(shell, page):
    for line in commands_of((MANUAL / page).read_text("utf-8")):
        if not line.startswith(ELSEWHERE):
            shell.run(line)


# Commands within a sentence


GROUPS = (
    "project",
    "key",
    "model",
    "job",
    "gap",
    "webhook",
    "audit",
    "organization",
    "config",
    "site",
    "person",
    "store",
    "vault",
)


@cache
def help_of(*command: str) -> str:
    done = Service(Path("nowhere")).run(*command, "--help")
    assert done.returncode == 0, command
    return done.stdout


@pytest.mark.parametrize("page", ["README.md", *sorted(file.name for file in MANUAL.glob("*.md"))])
def test_the_commands_in_a_pages_sentences_have_their_options(page):
    text = (ROOT / page if page == "README.md" else MANUAL / page).read_text("utf-8")
    for words in map(str.split, re.findall(r"`(?:sudo -u docsmith |podman exec docsmith )?docsmith ([^`]+)`", text)):
        command = [word for word in words if re.fullmatch(r"[a-z-]*[a-z]", word) and not word.startswith("-")][:2]
        if command[0] not in GROUPS:
            command = command[:1]
        for option in (word for word in words if word.startswith("--")):
            assert f"{option} " in f"{help_of(*command)} ", words
        assert help_of(*command)


# Questions


def test_a_search_of_the_manual_finds_the_right_page(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(MANUAL, domain="manual")
        golden = ROOT / "tests" / "samples" / "manual.jsonl"
        found = service.cli("eval", str(golden), "--min-recall", "0.9", "--min-mrr", "0.75")
    assert found["misses"] == []
