"""One service, what it acknowledged, and what must hold of it after each fault."""

import http.client
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dulwich.refs import Ref
from dulwich.repo import Repo

from scripts.soak_run import RealService
from tests.service_process import DOCS, PROGRAM, write_docs

LEFTOVER = re.compile(r"\.docsmith-.*|\..*\.(tar|new|tmp|building|removed|part)|tmp_obj.*")
"""Names of files and folders that are there only while something is written."""
END_SECONDS = 180
"""For a job to end after a fault."""


class Lost(Exception):
    """Something that was acknowledged is gone, or something was done twice; the message names it."""


@dataclass
class Count:
    rounds: int = 0
    acknowledged: int = 0
    refused: int = 0

    def note(self, acknowledged: object) -> None:
        if acknowledged:
            self.acknowledged += 1
        else:
            self.refused += 1


class Site:
    """A data folder with one project, its service, and everything that it has acknowledged."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.root = root
        self.service = RealService(root / "data", {"DOCSMITH_LIMITS__PROJECT_HOUR": "0", **environment})
        self.jobs: list[str] = []
        self.threads: dict[str, str] = {}
        """By id, the text of the answer that was read to its end."""
        self._number = 0
        self.service.set_up(write_docs(root / "docs", DOCS))

    def job(self) -> str | None:
        """Ask for a job; its id, or None where it was not acknowledged."""
        self._number += 1
        name = f"page-{self._number}"
        prompt = f'create page {name}.md with title "Page {self._number}" and text "This is {name}."'
        status, body, _ = self.post(f"/v2/agent/{self.service.project_id}/job", {"prompt": prompt}, self.service.admin)
        if status != 201:
            return None
        self.jobs.append(json.loads(body)["id"])
        return self.jobs[-1]

    def question(self, text: str = "How do I install Kite?") -> str | None:
        """Ask; the id of the thread, or None where the answer did not come to its end."""
        message = {"id": "q", "role": "user", "parts": [{"type": "text", "text": text}]}
        status, body, headers = self.post(
            f"/discovery/v2/assistant/{self.service.domain}/message",
            {"fp": "anonymous", "messages": [message]},
            self.service.assistant,
        )
        if status != 200 or "[DONE]" not in body or '"type":"error"' in body:
            return None
        thread = headers["X-Thread-Id"]
        self.threads[thread] = body
        return thread

    def post(self, path: str, body: object, headers: Mapping[str, str]) -> tuple[int, str, Mapping[str, str]]:
        """Return status, body and headers; status 0 where the connection failed."""
        request = urllib.request.Request(
            self.service.url + path,
            data=json.dumps(body).encode(),
            headers={**headers, "Content-Type": "application/json"},
        )
        return self._open(request)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str, Mapping[str, str]]:
        return self._open(urllib.request.Request(self.service.url + path, headers=dict(headers or {})))

    def _open(self, request: urllib.request.Request) -> tuple[int, str, Mapping[str, str]]:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers
        except (OSError, http.client.HTTPException):  # the service was killed, or takes no more connections
            return 0, "", {}

    def restart(self) -> None:
        self.service.kill()
        self.service.start()

    def begin(self, *arguments: str, data: Path | None = None) -> "subprocess.Popen[str]":
        """Start a command in a process of its own, to be killed."""
        return subprocess.Popen(
            [*PROGRAM, *arguments, "--data", str(data or self.service.data)],
            env=self.service._environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def check(self) -> None:
        """Raise Lost unless all that was acknowledged is there, each job with one pull request, and nothing is left."""
        jobs = {job_id: self._ended(job_id) for job_id in self.jobs}
        pulls, branches = self._pull_requests(), self._branches()
        for job_id, job in jobs.items():
            if job["status"] != "completed" or not job["prLink"]:
                said = [
                    line[-400:] for line in self.service.log().splitlines() if job_id in line and "exception" in line
                ]
                raise Lost(f"job {job_id} ended as {job['status']}: {job.get('failure')} {said[-1:]}")
            if pulls.count(job["branch"]) != 1:
                raise Lost(f"job {job_id} has {pulls.count(job['branch'])} pull requests")
            if (found := [name for name in branches if name.startswith(job["branch"])]) != [job["branch"]]:
                raise Lost(f"job {job_id} has the branches {found}")
        found = self.service.cli("audit", "show", "--category", "thread", "--type", "reply-completed")
        answered = {event["stream"] for event in found["events"]}
        for thread in self.threads:
            if f"thread-{thread}" not in answered:
                raise Lost(f"the answer of thread {thread} is not in the log")
        self.service.cli("audit", "verify")
        if left := self.leftovers():
            raise Lost(f"left behind: {', '.join(left)}")

    def _ended(self, job_id: str) -> dict[str, Any]:
        until = time.monotonic() + END_SECONDS
        while True:
            path = f"/v2/agent/{self.service.project_id}/job/{job_id}?wait=30"
            status, body, _ = self.get(path, self.service.admin)
            job: dict[str, Any] = json.loads(body) if status == 200 else {"status": f"HTTP {status}", "prLink": None}
            if job["status"] not in ("active", "HTTP 0", "HTTP 503") or time.monotonic() > until:
                return job

    def _pull_requests(self) -> list[str]:
        folder = self.service.data / "hosted" / f"{self.service.project_id}.git" / "docsmith" / "pulls"
        return [json.loads(file.read_text())["head"] for file in folder.glob("*.json")]

    def _branches(self) -> list[str]:
        with Repo(str(self.service.data / "hosted" / f"{self.service.project_id}.git")) as repository:
            return [name.decode() for name in repository.refs.subkeys(Ref(b"refs/heads/"))]

    def leftovers(self) -> list[str]:
        """What is only there while something is written, in the data folder and beside it."""
        found = [path for path in self.root.rglob("*") if LEFTOVER.fullmatch(path.name)]
        return sorted(str(path.relative_to(self.root)) for path in found)


@contextmanager
def site(root: Path, environment: Mapping[str, str] | None = None, *, start: bool = True) -> Iterator[Site]:
    there = Site(root, environment or {})
    try:
        if start:
            there.service.start()
        yield there
    finally:
        there.service.kill()
