"""A PostgreSQL server of the tests' own: a folder, a socket, no network; made at its first use, gone at the end."""

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest

ADDRESS = "TESTS_POSTGRES"
"""Tells other processes of the tests where the server is."""
MISSING = "PostgreSQL is not installed: apt-get install postgresql, and run again"


class Cluster:
    """A running server, as the user ``postgres`` where the tests run as root, whom ``initdb`` refuses."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self._programs = folder, programs
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            found = pwd.getpwnam(self._user)
            os.chown(folder, found.pw_uid, found.pw_gid)

    def make(self, *, durable: bool = False, is_another: bool = False) -> None:
        """Make the folder; unless it is ``durable``, commits do not wait for the disk. All have one system identifier,
        as a server and its standbys do, but for one that ``is_another``.
        """
        if is_another:
            self.initialize()
        else:
            self._run("cp", "-a", _empty_data(self._programs), self.data)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write("listen_addresses = ''\nmax_connections = 400\nshared_buffers = 32MB\n")
            settings.write(f"fsync = {'on' if durable else 'off'}\n")
            settings.write(f"unix_socket_directories = '{self.folder}'\n")

    def initialize(self) -> None:
        """Make the folder, without settings."""
        self._run("initdb", "-D", self.data, "-U", "docsmith", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def encrypt(self, certificate: Path, key: Path, port: int) -> None:
        """Also listen on the network of this machine, where nothing but TLS is taken."""
        for path, name in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(path, self.data / name)
            if self._user is not None:
                shutil.chown(self.data / name, self._user)
        (self.data / "server.key").chmod(0o600)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"ssl = on\nlisten_addresses = '127.0.0.1'\nport = {port}\n")
        (self.data / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n", encoding="utf-8"
        )

    def start(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "start")

    def follow(self, other: "Cluster") -> None:
        """Make the folder as a standby of a server that runs, which gets its changes a moment later."""
        self._run(
            "pg_basebackup", "-D", self.data, "-R", "-c", "fast", "-h", other.folder, "-U", "docsmith", "--no-sync"
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"unix_socket_directories = '{self.folder}'\n")

    def promote(self) -> None:
        """Let a standby take over, from which time on it can be written."""
        self._run("pg_ctl", "-D", self.data, "-w", "promote")

    def kill(self) -> None:
        """End it without a checkpoint: at its next start it recovers from its write-ahead log."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        return f"postgresql://docsmith@/postgres?host={quote(str(self.folder), safe='')}"

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [shutil.which(program, path=self._programs) or program, *map(str, arguments)], check=True,
            stdout=subprocess.DEVNULL, user=self._user, cwd=self.folder,
        )  # fmt: skip


@functools.cache
def _empty_data(programs: Path) -> Path:
    """Return the data folder of a server without settings, of which each server's is a copy: initdb takes a second."""
    made = Cluster(Path(tempfile.mkdtemp(prefix="docsmith-postgres-")), programs)
    atexit.register(shutil.rmtree, made.folder, ignore_errors=True)
    made.initialize()
    return made.data


def programs() -> Path | None:
    """Return the folder of the newest server's programs; Debian puts it on no path."""
    found = [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    on_path = shutil.which("initdb")
    return found[-1] if found else Path(on_path).parent if on_path else None


def new_cluster() -> Cluster:
    """Return a server that is not made yet. Skip the test where its programs are missing."""
    folder = programs()
    if folder is None:
        pytest.skip(MISSING)
    return Cluster(Path(tempfile.mkdtemp(prefix="docsmith-postgres-")), folder)


def started_cluster() -> Cluster:
    """Return a new server that has been started. Skip the test where its programs are missing."""
    cluster = new_cluster()
    cluster.make()
    cluster.start()
    return cluster


@functools.cache
def server_address() -> str:
    """Return the address of a server, started by the first who asks. Skip the test where there is none."""
    if given := os.environ.get(ADDRESS):
        return given
    cluster = started_cluster()
    atexit.register(cluster.remove)
    os.environ[ADDRESS] = cluster.address
    return cluster.address
