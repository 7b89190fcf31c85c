"""git's own HTTP server, ``git http-backend``, behind a few lines of CGI."""

import asyncio
import base64
import shutil
import subprocess
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

GIT = shutil.which("git")
"""None: there is no git on this machine, and no such server."""


def git(*words, cwd=None):
    done = subprocess.run(
        [GIT, "-c", "user.name=Someone", "-c", "user.email=someone@example.com", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class GitServer:
    """The repositories of a folder over HTTP, with what was asked and by whom."""

    def __init__(self, root: Path, *, password: str = "") -> None:
        self.root = root
        self.password = password
        self.status = 0  # answer everything with it
        self.status_headers: dict[str, str] = {}  # of those answers
        self.redirect_to = ""
        self.renamed: dict[str, str] = {}  # repositories, from old to new
        self.requests: list[tuple[str, str, str]] = []  # method, path, Authorization
        self.server = TestServer(self._app())

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server.port}/{name}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        header = request.headers.get("Authorization", "")
        self.requests.append((request.method, request.path, header))
        if self.status:
            return web.Response(status=self.status, headers=self.status_headers)
        if self.redirect_to:
            return web.Response(status=302, headers={"Location": f"{self.redirect_to}{request.path_qs}"})
        for old, new in self.renamed.items():
            if request.path.startswith(f"/{old}/"):
                return web.Response(status=301, headers={"Location": request.path_qs.replace(old, new, 1)})
        if self.password:
            user, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            if password != self.password or user not in ("x-access-token", "oauth2"):
                return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        process = await asyncio.create_subprocess_exec(
            GIT, "http-backend",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={
                "PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "someone",
                "REQUEST_METHOD": request.method, "PATH_INFO": request.path, "QUERY_STRING": request.query_string,
                "CONTENT_TYPE": request.headers.get("Content-Type", ""),
                "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            },
        )  # fmt: skip
        output, _ = await process.communicate(await request.read())
        head, _, body = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return web.Response(status=int(headers.pop("Status", "200")[:3]), headers=headers, body=body)
