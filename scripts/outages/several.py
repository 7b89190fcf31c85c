"""Three instances of one log in PostgreSQL, and readers who come back at any of them."""

import http.client
import itertools
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from eventstore.postgres.connections import Address, Connections
from scripts.outages.replies import Reader
from scripts.outages.site import Lost, Site
from scripts.outages.world import TOKEN, TOKEN_VARIABLE, CodeHost, Embedded, World
from tests.instances import Instances
from tests.service_process import Service

COUNT = 3
RETURN_SECONDS = float(os.environ.get("FAULTS_RETURN_SECONDS", "180"))
"""For a reader to get the rest of a reply, and for a job to end: leases and pauses included. A machine with much other
work takes longer.
"""
MODELS = {
    "asked": "openai/gpt-5.2",  # is asked for the rest of a reply, and repeats a few words
    "prefilled": "deepseek/deepseek-chat",  # is given its own text to continue
    "builtin": "",
}


class _Instances(Instances):
    """Each has a token of its own for the code host, which tells them apart by it."""

    def _member(self, number: int) -> Service:
        member = super()._member(number)
        member.environment[TOKEN_VARIABLE] = f"{TOKEN}-{number}"
        return member


class Several(Site):
    """The instances and what they work for. ``embedded``: with the embedded code host, whose home is the first one."""

    def __init__(self, root: Path, world: World, model: str, stores: Mapping[str, str], *, embedded: bool) -> None:
        self.root, self.world, self.jobs, self.threads = root, world, [], {}
        environment = {
            "DOCSMITH_LIMITS__PROJECT_HOUR": "0",
            "DOCSMITH_AGENT__MODEL": "builtin",
            "DOCSMITH_AGENT__CONCURRENT_JOBS": "8",
            "DOCSMITH_THREADS__GRACE_SECONDS": "600",
            "DOCSMITH_ASSISTANT__PLANNER": "off",
            "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
            "DOCSMITH_ASSISTANT__MODEL": "scripted" if MODELS[model] else "builtin",
            "DOCSMITH_MODELS__SCRIPTED__MODEL": MODELS[model] or MODELS["asked"],
            "DOCSMITH_MODELS__SCRIPTED__API_BASE": world.provider.openai_base,
            "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
            "SCRIPTED_KEY": "sk-scripted",
            TOKEN_VARIABLE: TOKEN,
        }
        several = _Instances(root / "data", environment, count=COUNT, stores=dict(stores))
        self.service = self.several = several
        self.code_host: CodeHost = Embedded(root, several) if embedded else world.gitea
        several.organization_id = several.cli("organization", "create", "--name", "Acme")["id"]
        options = ("--name", "Guide", "--domain", "guide", *self.code_host.project())
        project = several.cli("project", "create", *options)
        several.project_id, several.domain = project["id"], "guide"
        several.cli("index", "guide")
        several.admin_key = several.cli("key", "create", "--kind", "admin")["token"]
        several.assistant_key = several.cli("key", "create", "--kind", "assistant", "--domain", "guide")["token"]
        del several.environment[TOKEN_VARIABLE]
        several.start()
        for member in several.members:
            whole = self._answered(member)
        self.text = whole.text
        self.first_job = self.create_job(several.members[0], {"prompt": "Write page 999 please", "model": "scripted"})
        self.ended(self.first_job)
        self.steps = self.types(self.first_job)["model-replied"]
        """Calls of the model in a job of the scripted model: the checks send it back once."""

    def _answered(self, member: Service) -> "Returning":
        """Return a reader who got a whole reply there, once the site is indexed there."""
        until, number = time.monotonic() + RETURN_SECONDS, 0
        while True:
            number += 1
            whole = Returning(self, f"whole-{member.data.name}-{number}", 2, member, patience=RETURN_SECONDS)
            whole.begin(asks=True)
            whole.wait(RETURN_SECONDS)
            if whole.is_over:
                return whole
            if time.monotonic() > until:
                raise Lost(f"without a fault there is no answer: {whole.raw[-300:]!r}")

    def create_job(self, member: Service, body: Mapping[str, Any]) -> str:
        path = f"{member.url}/v2/agent/{self.service.project_id}/job"
        headers = {**self.service.admin, "Content-Type": "application/json"}
        status, text, _ = self._open(urllib.request.Request(path, json.dumps(body).encode(), headers))
        if status != 201:
            raise Lost(f"a job was answered with {status} before the fault: {text[-300:]}")
        job_id: str = json.loads(text)["id"]
        return job_id

    def ended(self, job_id: str) -> dict[str, Any]:
        """Return a job once it has ended. Raise Lost."""
        until = time.monotonic() + RETURN_SECONDS
        job: dict[str, Any] = {"status": "active"}
        while job["status"] == "active" and time.monotonic() < until:
            status, job = self.anywhere(f"/v2/agent/{self.service.project_id}/job/{job_id}?wait=10")
            if status != 200:
                raise Lost(f"job {job_id}: {status} {str(job)[:300]}")
        return job

    def types(self, job_id: str) -> Counter[str]:
        """Count the job's events in the log."""
        with closing(Connections.open(Address(self.several.stores["DOCSMITH_STORE"]), read_only=True)) as log:
            found = log.fetch("SELECT type FROM events WHERE stream = $1", f"job-{job_id}")
        return Counter(str(type_) for (type_,) in found)

    def pushed(self) -> Mapping[str, str]:
        """Return the commit of each branch, as the log has it."""
        found = self.several.cli("audit", "show", "--category", "job", "--type", "branch-pushed")["events"]
        return {event["data"]["branch"]: event["data"]["commit"] for event in found}

    def anywhere(self, path: str) -> tuple[int, Any]:
        """Return the answer of an instance that answers, and its status."""
        until, status, body = time.monotonic() + RETURN_SECONDS, 0, ""
        for member in itertools.cycle(self.several.members):
            if member.process is not None:
                status, body, _ = self._open(urllib.request.Request(f"{member.url}{path}", headers=self.service.admin))
                if status not in (0, 502, 503):
                    break
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        return status, json.loads(body) if body.startswith(("{", "[")) else body


class Returning(Reader):
    """A reader who comes back, each time at the next instance, until the reply is whole."""

    def __init__(self, there: Several, chat: str, version: int, member: Service, *, patience: float) -> None:
        super().__init__(there, chat, version)
        self._several, self.url, self._patience = there, member.url, patience
        self._next = itertools.cycle(range(COUNT))
        self.connections = 0
        self.wrong = ""
        """Texts that a connection gave and that are no beginning of the answer."""
        self.is_recorded = False
        self.begun = threading.Event()

    def begin(self, *, asks: bool) -> None:
        body = {"fp": "anonymous", "messages": [self.message()], "id": self.chat} if asks else None
        path = self._path if asks else f"{self._path}/{self.chat}/stream"
        self._thread = threading.Thread(target=self._until_whole, args=[path, body], daemon=True)
        self._thread.start()

    def _until_whole(self, path: str, body: Mapping[str, Any] | None) -> None:
        until = time.monotonic() + RETURN_SECONDS
        self._once(path, body)
        while not self.is_over and time.monotonic() < until and not self.wrong:
            if not self.thread_id:
                return  # the question was not accepted
            members = self._several.several.members
            member = members[next(self._next)]
            if member.process is None:
                continue
            time.sleep(0.3)
            self.url = member.url
            self._once(f"{self._path}/{self.chat}/stream", None)
            self.is_recorded = self.status == 204
            if self.is_recorded:
                return

    def _once(self, path: str, body: Mapping[str, Any] | None) -> None:
        self.raw, self.status, self.connections = b"", 0, self.connections + 1
        headers = {**self._there.service.assistant, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body and json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=self._patience) as answer:
                self.thread_id = answer.headers.get("X-Thread-Id") or self.thread_id
                self.status = answer.status
                self.begun.set()
                while piece := answer.read1(65_536):
                    self.raw += piece
        except urllib.error.HTTPError as error:
            with error:
                self.status = error.code
        except (OSError, http.client.HTTPException):  # the instance was killed, or is silent for too long
            pass
        text = getattr(self._several, "text", None)
        if text is not None and not text.startswith(self.text):
            self.wrong = self.text
