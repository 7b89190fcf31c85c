"""Several instances of the service that share a log in PostgreSQL, behind a round robin; to a test they are one."""

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import uuid4

from eventstore.postgres.connections import Address, Connections
from service.runtime.settings.settings import Settings
from tests.eventstore.cluster import server_address
from tests.service_process import INSTANCES, Service, free_port

METRICS_PORT = "DOCSMITH_METRICS__PORT"
ROOT = Path(__file__).parent.parent
START_SECONDS = 120.0
"""For an instance that has started to fetch its indexes from the others."""


@contextmanager
def databases(address: str = "") -> Iterator[dict[str, str]]:
    """Make a database for a log and one for its vault, and give the variables that name them. Both go at the end.

    ``address``: of another server than that of all tests.
    """
    server, name = address or server_address(), f"of_{uuid4().hex[:12]}"
    with closing(Connections.open(Address(server))) as connections:
        for part in ("log", "vault"):
            connections.run_plainly(_execute(connections, f"CREATE DATABASE {name}_{part} TEMPLATE template0"))
        try:
            yield {f"DOCSMITH_{what}": _named(server, f"{name}_{part}") for what, part in PARTS}
        finally:
            for part in ("log", "vault"):
                connections.run_plainly(_execute(connections, f"DROP DATABASE {name}_{part} WITH (FORCE)"))


PARTS = (("STORE", "log"), ("VAULT", "vault"))


async def _execute(connections: Connections, sql: str) -> None:
    connection = await connections.connect()
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def _named(server: str, database: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{quote(database)}"))


@dataclass
class Instances(Service):
    """``data`` is the folder of the first one, which has the repositories of the embedded code host."""

    count: int = INSTANCES
    stores: dict[str, str] = field(default_factory=dict)
    """The variables that name the log and the vault."""
    retries: bool = False
    """The round robin passes a request on to the next instance where one is gone or answers 503."""
    port: str = ""
    """That of the round robin, which stays the same."""
    members: list[Service] = field(default_factory=list)
    proxy: "subprocess.Popen[str] | None" = None

    def set_up(self, docs: Path, *, domain: str = "kite", index: bool = True, changes: bool = False) -> None:
        """Set up a folder with a log of its own, which then moves."""
        if self.data.exists():
            self._make(docs, domain=domain, index=index)
            return
        plain = Service(self.data, dict(self.environment))
        plain.set_up(docs, domain=domain, index=index, changes=changes)
        self.organization_id, self.project_id, self.domain = plain.organization_id, plain.project_id, plain.domain
        self.repository, self.admin_key, self.assistant_key = plain.repository, plain.admin_key, plain.assistant_key
        self.cli("store", "copy", str(self.data), "env:DOCSMITH_STORE", "--move")

    def move(self, stores: Mapping[str, str]) -> None:
        shutil.rmtree(self.data / "moved")  # what the first move has put aside
        self.cli("store", "copy", "env:DOCSMITH_STORE", str(self.data), "--move")
        self.stores = dict(stores)
        self.cli("store", "copy", str(self.data), "env:DOCSMITH_STORE", "--move")

    def start(self, *options: str) -> None:
        assert self.process is None
        given = list(options)
        if "--port" in given:
            at = given.index("--port")
            self.port = given[at + 1]
            del given[at : at + 2]
        self.port = self.port or str(free_port())
        if not self.members:
            self.members = [self._member(number) for number in range(1, self.count + 1)]
        for number, member in enumerate(self.members):
            member.environment |= self._shared()
            if number and METRICS_PORT in member.environment:
                member.environment[METRICS_PORT] = str(free_port())  # the one of the settings is the first one's
        with ThreadPoolExecutor(self.count) as threads:
            list(threads.map(lambda member: member.start(*given), self.members))
            list(threads.map(_until_indexes_are_there, self.members))
        self.process = self.members[0].process
        self.begin_proxy()

    def begin_proxy(self) -> None:
        command = [sys.executable, "-m", "tests.round_robin", "--port", self.port, *["--retry"] * self.retries]
        self.proxy = subprocess.Popen(
            [*command, *(member.url for member in self.members)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self.proxy.stdout is not None
        self.url = self.proxy.stdout.readline().removeprefix("listening on ").strip()

    def _member(self, number: int) -> Service:
        folder = self.data if number == 1 else self.data.with_name(f"{self.data.name}-{number}")
        member = Service(folder, {}, log_file=self._log_file.with_name(f"{self._log_file.stem}-{number}.log"))
        if hasattr(Settings(), "instances"):
            member.environment["DOCSMITH_INSTANCES__HOME"] = "true" if number == 1 else "false"
        return member

    @property
    def each(self) -> list[Service]:
        return self.members or [self]

    def kill(self) -> None:
        self._each(Service.kill)

    def stop(self) -> int:
        """Stop all of them at once, each with SIGTERM; the highest exit status."""
        return max(self._each(Service.stop), default=0)

    def _each(self, end) -> list:
        with ThreadPoolExecutor(self.count) as threads:
            found = list(threads.map(end, self.members))
        self.process = None
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait()
            assert self.proxy.stdout is not None
            self.proxy.stdout.close()
            self.proxy = None
        return found

    def log(self) -> str:
        """Return those of its members, one after another."""
        return "".join(member.log() for member in self.members if member._log_file.exists())

    def _shared(self) -> dict[str, str]:
        """Return the variables of all instances, and of the commands beside them."""
        behind = {
            "DOCSMITH_SERVER__TRUSTED_PROXIES": "127.0.0.1",
            "DOCSMITH_SERVER__PUBLIC_URL": f"http://127.0.0.1:{self.port}",
        }
        return {**(behind if self.port else {}), **self.environment, **self.stores}

    def _environment(self) -> dict[str, str]:
        return super()._environment() | self._shared()


def _until_indexes_are_there(member: Service) -> None:
    """Wait for what a proxy waits for before it sends requests to an instance that has started; only for that."""
    until = time.monotonic() + START_SECONDS
    while "indexes" in _refusals(member):
        assert time.monotonic() < until, member.log()
        time.sleep(0.1)


def _refusals(member: Service) -> dict[str, str]:
    try:
        answer = urllib.request.urlopen(f"{member.url}/readyz/requests", timeout=START_SECONDS)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return dict(json.load(answer)["reasons"])


@contextmanager
def instances_in(
    folder: Path, environment: dict[str, str], *, count: int = INSTANCES, retries: bool = False
) -> Iterator[Instances]:
    with ExitStack() as stack:
        stores = stack.enter_context(databases())
        service = Instances(folder / "data", environment, count=count, stores=stores, retries=retries)
        stack.callback(service.kill)
        yield service
