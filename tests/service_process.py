"""The service as its users run it: a process of its own, set up by its own command line.

With DOCSMITH_BINARY it is the single binary that this variable names, else this tree's sources. With
DOCSMITH_TESTS_INSTANCES, a number, it is so many instances that share a log in PostgreSQL, behind a round robin.
"""

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from eventstore import LogPlace
from service.integrity.log_place import log_place
from tests.forked import Forked

BINARY = os.environ.pop("DOCSMITH_BINARY", "")  # the service would take it for a setting that it does not know
INSTANCES = int(os.environ.get("DOCSMITH_TESTS_INSTANCES") or "0")
os.environ |= {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}  # all that is asked is here
FOREIGN = re.compile(r"DOCSMITH_|OTEL_|NOTIFY_SOCKET|WATCHDOG_|.*_API_KEY$")
"""Variables of whoever runs the tests that would make the service another one."""
PROGRAM = [str(Path(BINARY).resolve())] if BINARY else [sys.executable, "-m", "service"]

AWAY = {
    "DOCSMITH_AGENT__MODEL": "builtin",
    "DOCSMITH_ASSISTANT__MODEL": "builtin",
    "DOCSMITH_MODELS__AWAY__MODEL": "openai/gpt-5.2",
    "DOCSMITH_MODELS__AWAY__API_BASE": "http://127.0.0.1:1/v1",
    "DOCSMITH_MODELS__AWAY__API_KEY_ENV": "AWAY_KEY",
    "AWAY_KEY": "sk-away",
}
"""A model whose provider is out of reach: a job that names it waits."""
DOCS = {
    "docs.json": json.dumps(
        {"name": "Kite", "navigation": {"groups": [{"group": "Start", "pages": ["index", "install", "retry"]}]}}
    ),
    "index.md": "---\ntitle: Kite\n---\n\n# Kite\n\nKite sends jobs. Read [how to install it](/instal).\n",
    "install.md": (
        "---\ntitle: Install\n---\n\n# Install\n\nTo install Kite, run the installer:\n\n"
        "```sh\ncurl -sSf kite.example/install | sh\n```\n\nThe installer needs 20 MB of disk.\n"
    ),
    "retry.md": (
        "---\ntitle: Retries\n---\n\n# Retries\n\nA failed job is tried again.\n\n## Delay\n\n"
        "Set `retryDelaySecs` to the number of seconds between two tries. The default is 30.\n"
    ),
}
"""A small documentation site with one broken link."""


def write_docs(folder: Path, docs: Mapping[str, str] = DOCS) -> Path:
    for name, text in docs.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def free_port() -> int:
    """A port of this machine where nobody listens, for a server of this process or of another.

    It stays bound to the end of the tests, so the system gives it to nobody who asks for any port. A server that names
    it may listen there all the same, since it sets ``SO_REUSEADDR``, as every server does on Unix.
    """
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    atexit.register(one.close)
    return int(one.getsockname()[1])


def begun(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    stdout: IO[str] | int,
    stderr: IO[str] | IO[bytes],
) -> "Forked | subprocess.Popen[str]":
    """The program, with these arguments, in a process of its own."""
    if not BINARY:
        return Forked(arguments, environment=environment, stdout=stdout, stderr=stderr)
    return subprocess.Popen([*PROGRAM, *arguments], env=environment, stdout=stdout, stderr=stderr, text=True)


def ran(arguments: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """The program that has ended, with its output."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        status = begun(arguments, environment=environment, stdout=stdout, stderr=stderr).wait(timeout=600)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(arguments, status, stdout.read(), stderr.read())


@dataclass
class Service:
    """One data folder, and the process that serves it while it runs."""

    data: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: "Forked | subprocess.Popen[str] | None" = None
    url: str = ""
    organization_id: str = ""
    project_id: str = ""
    domain: str = ""
    repository: Path | None = None
    """The folder of which the project was made: that of the test which was the first with this documentation."""
    admin_key: str = ""
    assistant_key: str = ""
    log_file: Path | None = None
    """What it writes to standard error; beside the data folder when None."""
    unchanged: "tuple[Path, Files] | None" = None
    """The documentation that a test must not change, since other tests' projects read it, or its own does not."""

    def cli(self, *arguments: str, status: int = 0) -> Any:
        """The JSON that a command prints."""
        done = self.run(*arguments, "--json")
        assert done.returncode == status, done.stderr + done.stdout
        return json.loads(done.stdout)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return ran([*arguments, "--data", str(self.data)], self._environment())

    def set_up(self, docs: Path, *, domain: str = "kite", index: bool = True, changes: bool = False) -> None:
        """An organization, a project for the documentation, a key of each kind, an index.

        It takes seconds, so a data folder is a copy of the first one that was made for the same documentation: its
        project reads the folder of that test. ``changes``: the test changes the documentation, so it has a project of
        its own.
        """
        if changes:
            self._make(docs, domain=domain, index=index)
            return
        files = _files(docs)
        self.unchanged = (docs, files)
        made = _FOLDERS.get((files, domain, index))
        if made is None or self.data.exists():
            self._make(docs, domain=domain, index=index)
            if made is None:
                kept = Path(tempfile.mkdtemp(prefix="docsmith-tests-"))
                atexit.register(shutil.rmtree, kept, ignore_errors=True)
                shutil.copytree(self.data, kept / "data")
                _FOLDERS[files, domain, index] = replace(self, data=kept / "data", environment={}, process=None, url="")
            return
        shutil.copytree(made.data, self.data)
        self.organization_id, self.project_id, self.domain = made.organization_id, made.project_id, made.domain
        self.repository, self.admin_key, self.assistant_key = made.repository, made.admin_key, made.assistant_key

    def _make(self, docs: Path, *, domain: str, index: bool) -> None:
        self.organization_id = self.cli("organization", "create", "--name", "Acme")["id"]
        project = self.cli("project", "create", "--name", domain, "--repository", str(docs), "--domain", domain)
        self.project_id, self.domain, self.repository = project["id"], project["domain"], docs
        if index:
            self.cli("index", domain)
        self.admin_key = self.cli("key", "create", "--kind", "admin")["token"]
        self.assistant_key = self.cli("key", "create", "--kind", "assistant", "--domain", domain)["token"]

    def move(self, stores: Mapping[str, str]) -> None:
        """Move the log into the databases that these variables name."""
        self.environment |= stores
        self.cli("store", "copy", str(self.data), "env:DOCSMITH_STORE", "--move")

    def start(self, *options: str) -> None:
        assert self.process is None
        command = ["serve", "--data", str(self.data), "--port", "0", *options]
        if not self.data.exists():
            self.data.mkdir(parents=True)
        with self._log_file.open("ab") as log:
            self.process = self._begin(command, log)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), self.log()
        self.url = line.removeprefix("listening on ").strip()

    def _begin(self, command: list[str], log: IO[bytes]) -> "Forked | subprocess.Popen[str]":
        return begun(command, environment=self._environment(), stdout=subprocess.PIPE, stderr=log)

    def kill(self) -> None:
        """kill -9: nothing is said to it, nothing is cleaned up."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.send_signal(how)
        status = process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()
        return status

    def signal(self, how: signal.Signals) -> None:
        """Send it to each process of the service, and wait for nothing."""
        for one in self.each:
            assert one.process is not None
            one.process.send_signal(how)

    @property
    def each(self) -> "list[Service]":
        """Its instances: here itself alone."""
        return [self]

    @property
    def folders(self) -> list[Path]:
        """The data folder of each instance."""
        return [one.data for one in self.each]

    def log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace")

    @property
    def _log_file(self) -> Path:
        return self.log_file or self.data.parent / "server.log"

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        return {**kept, **self.environment}

    @property
    def variables(self) -> dict[str, str]:
        """Those of a command beside it."""
        return self._environment()

    @property
    def place(self) -> LogPlace:
        """Where its log is."""
        return log_place(self.data, self._environment())

    @property
    def admin(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.admin_key}"}

    @property
    def assistant(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.assistant_key}"}


Files = tuple[tuple[str, bytes], ...]


def _files(docs: Path) -> Files:
    found = sorted(file for file in docs.rglob("*") if file.is_file())
    return tuple((str(file.relative_to(docs)), file.read_bytes()) for file in found)


_FOLDERS: dict[tuple[Files, str, bool], Service] = {}
"""Data folders as ``set_up`` made them, by what they were made from."""


@contextmanager
def service_in(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    if INSTANCES:
        from tests.instances import instances_in

        with instances_in(folder, dict(environment or {})) as several:
            yield several
        return
    service = Service(folder / "data", dict(environment or {}))
    try:
        yield service
    finally:
        service.kill()
    if service.unchanged is not None:
        docs, files = service.unchanged
        assert _files(docs) == files, "the documentation was changed: set up with changes=True"
