"""A real Gitea or Forgejo, from the binary that the variable ``GITEA_BIN`` names: its own process, data and port."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

BINARY = shutil.which(os.environ.get("GITEA_BIN", ""))
START_SECONDS = 60

SETTINGS = """
APP_NAME = Test
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[repository]
ROOT = {folder}/repositories
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v2
[service]
DISABLE_REGISTRATION = true
[log]
MODE = console
LEVEL = Error
[session]
PROVIDER = memory
"""


class RealGitea:
    """With the account ``octo``, and its token."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.token, self._session = url, "", session

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None, *, status: int = 0) -> Any:
        """Some person's request to the API. ``status`` 0: any success."""
        headers = {"Authorization": f"token {self.token}"}
        async with self._session.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers) as answer:
            said = await answer.text()
            assert answer.status == status or (not status and answer.status < 300), said
            return await answer.json() if said and answer.content_type == "application/json" else None

    async def make_repository(self, name: str) -> None:
        """Private, with the branches ``main``, ``docs/one`` and ``docs/two``."""
        await self.call(
            "POST", "/user/repos", {"name": name, "auto_init": True, "default_branch": "main", "private": True}
        )
        for branch in ("docs/one", "docs/two"):
            await self.call(
                "POST", f"/repos/octo/{name}/contents/{branch}.md",
                {"content": "UGFnZQo=", "message": "Write", "branch": "main", "new_branch": branch},
            )  # fmt: skip

    async def merge(self, name: str, number: int) -> None:
        """Whether it can be merged is found out in the background: asked again until it can."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                seen = await self.call("GET", f"/repos/octo/{name}/pulls/{number}")
                if seen["mergeable"]:
                    break
                await asyncio.sleep(0.1)
        await self.call("POST", f"/repos/octo/{name}/pulls/{number}/merge", {"Do": "merge"})


@asynccontextmanager
async def real_gitea(folder: Path) -> AsyncIterator[RealGitea]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "app.ini"
    config.write_text(SETTINGS.format(port=port, folder=folder))
    base = ["--config", str(config), "--work-path", str(folder)]
    environment = {**os.environ, "HOME": str(folder), "USER": os.environ.get("USER", "root")}
    await _done(environment, *base, "migrate")
    user = ("--username", "octo", "--password", "s3cret-pass-w0rd", "--email", "octo@example.com")
    await _done(environment, *base, "admin", "user", "create", *user, "--must-change-password=false")
    named = ("--username", "octo", "--token-name", "test", "--scopes", "all", "--raw")
    token = await _done(environment, *base, "admin", "user", "generate-access-token", *named)
    assert BINARY is not None
    process = await asyncio.create_subprocess_exec(
        BINARY, *base, "web", env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession() as session:
            gitea = RealGitea(f"http://127.0.0.1:{port}", session)
            gitea.token = token.split()[-1]
            await _answering(gitea, session)
            yield gitea
    finally:
        process.terminate()
        async with asyncio.timeout(START_SECONDS):
            await process.wait()


async def _answering(gitea: RealGitea, session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                async with session.get(f"{gitea.url}/api/v1/version") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)


async def _done(environment: dict[str, str], *arguments: str) -> str:
    assert BINARY is not None
    process = await asyncio.create_subprocess_exec(
        BINARY, *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()
