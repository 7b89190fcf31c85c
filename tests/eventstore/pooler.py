"""PgBouncer before a server of the tests' own, in transaction mode: each transaction may get another connection."""

import os
import shutil
import socket
import subprocess
from urllib.parse import quote

import pytest

from tests.eventstore.cluster import Cluster

MISSING = "PgBouncer is not installed: apt-get install pgbouncer, and run again"
PORT = 6432
"""In the name of its socket, in a folder of its own: no one listens at the port."""


class Pooler:
    def __init__(self, cluster: Cluster, program: str) -> None:
        self.folder = cluster.folder / "pooler"
        self.folder.mkdir()
        users = self.folder / "users"
        users.write_text('"docsmith" ""\n')
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={cluster.folder} user=docsmith\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\n"
            f"unix_socket_dir = {self.folder}\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = 6\nserver_round_robin = 1\nlogfile = {self.folder}/log\n"
        )
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        for path in (self.folder, users, settings):
            if user:
                shutil.chown(path, "postgres", "postgres")
        self._process = subprocess.Popen([*user, program, "-q", settings], cwd=self.folder)

    def address(self, database: str) -> str:
        """Return the address of a database behind it, without prepared statements."""
        where = f"host={quote(str(self.folder), safe='')}&port={PORT}&statement_cache_size=0"
        return f"postgresql://docsmith@/{database}?{where}"

    def answers(self) -> bool:
        """Return whether it listens: the file of its socket is there a moment before."""
        with socket.socket(socket.AF_UNIX) as asking:
            return asking.connect_ex(str(self.folder / f".s.PGSQL.{PORT}")) == 0

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)


def started_pooler(cluster: Cluster) -> Pooler:
    """Return a pooler once it answers. Skip the test where its program is missing."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip(MISSING)
    pooler = Pooler(cluster, program)
    while not pooler.answers():
        assert pooler._process.poll() is None
    return pooler
