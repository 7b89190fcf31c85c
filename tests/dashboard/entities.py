"""One thing of each kind in the organization of the tests, so that every page has something to show."""

import json
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from tests.service_process import Service

QUESTION = "How to rotate zygomorphic certificates?"


@dataclass
class Entities:
    values: dict[str, str]
    """By the names that the parts of paths have."""
    pull_request: str
    """The path of its page."""


def made(service: Service) -> Entities:
    """Ask a question, give a job and wait for its end, and create a webhook."""
    asked = {"fp": "anonymous", "messages": [{"role": "user", "content": QUESTION}]}
    address = f"{service.url}/discovery/v2/assistant/{service.domain}/message"
    answer = _posted(address, asked, service.assistant)
    thread_id = answer.headers["X-Thread-Id"]
    assert b"[DONE]" in answer.read()
    job_id, pull_request = opened_pull_request(service, 'Append "Kites are seen." to index.md')
    hook = _posted(f"{service.url}/v2/webhooks", {"url": "https://hooks.example/docsmith"}, service.admin)
    values = {
        "organizationId": service.organization_id,
        "domain": service.domain,
        "threadId": thread_id,
        "jobId": job_id,
        "keyId": service.cli("key", "list")["keys"][0]["id"],
        "webhookId": json.load(hook)["id"],
        "position": "1",
        "page": "secure",
        "path": "install.md",
        "operation": "listKeys",
        "code": "unauthorized",
    }
    return Entities(values, pull_request)


def opened_pull_request(service: Service, prompt: str) -> tuple[str, str]:
    """Give a job and wait for its end; return its id, and the path of its pull request's page."""
    jobs = f"{service.url}/v2/agent/{service.project_id}/job"
    job_id = json.load(_posted(jobs, {"prompt": prompt}, service.admin))["id"]
    watched = service.run("job", "watch", job_id)
    assert watched.returncode == 0, watched.stderr
    with urlopen(Request(f"{jobs}/{job_id}", headers=service.admin), timeout=60) as found:
        return job_id, urlsplit(json.load(found)["prLink"]).path


def archived_job(service: Service) -> None:
    jobs = f"{service.url}/v2/agent/{service.project_id}/job"
    job_id = json.load(_posted(jobs, {"prompt": "Look around"}, service.admin))["id"]
    _posted(f"{jobs}/{job_id}/archive", {}, service.admin)


def _posted(url: str, body: object, headers: dict[str, str]):
    sent = {**headers, "Content-Type": "application/json"}
    return urlopen(Request(url, json.dumps(body).encode(), sent), timeout=300)
