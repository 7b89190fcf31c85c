"""Requests of the demo to the running service: over HTTP, like those of any client, printed as they happen."""

import json
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from service.domain.errors import ServiceError
from service.markup.suggestions import BEGIN, END
from service.views.jobs.jobs import JobView
from service.views.projects import ProjectView

DATA_MARKS = re.compile(r"</?data [0-9a-f]+>")
"""The marks that tools set around the text of documents, for models."""

ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=10)

T = TypeVar("T")


class Readiness(Struct, frozen=True):
    models: dict[str, str]


@dataclass(frozen=True)
class Api:
    """The address and the keys of the running service."""

    http: aiohttp.ClientSession
    url: str
    project: ProjectView
    admin_key: str
    assistant_key: str

    def job_address(self, job_id: str = "") -> str:
        return f"{self.url}/v2/agent/{self.project.id}/job" + (f"/{job_id}" if job_id else "")

    def question_address(self) -> str:
        return f"{self.url}/discovery/v2/assistant/{self.project.domain}/message"


def show(text: str, end: str = "\n") -> None:
    """Print at once: people watch a demo."""
    print(text, end=end, flush=True)


async def models_of(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    async with http.get(f"{url}/readyz") as response:
        return msgspec.json.decode(await response.read(), type=Readiness).models


async def run_job(api: Api, instruction: str) -> JobView:
    """Run a job to its end and print each of its events."""
    show(f"\nThe agent is asked: {instruction}\n")
    headers = {"Authorization": f"Bearer {api.admin_key}"}
    begun = time.monotonic()
    async with api.http.post(api.job_address(), json={"prompt": instruction}, headers=headers) as response:
        job = await _answer(response, JobView)
    async with api.http.get(f"{api.job_address(job.id)}/events", headers=headers, timeout=ENDLESS) as response:
        await _refuse_errors(response)
        async for event in _events(response):
            show(f"  {time.monotonic() - begun:5.1f} s  {event.get('type', ''):<20} {_detail(event)}".rstrip())
    async with api.http.get(f"{api.job_address(job.id)}", headers=headers) as response:
        job = await _answer(response, JobView)
    if job.status != "completed":
        reason = f"{job.failure.message} ({job.failure.code})" if job.failure else f"it is {job.status}"
        raise ServiceError(f"The job did not complete: {reason}")
    return job


def _detail(event: dict[str, Any]) -> str:
    detail = _DETAILS.get(str(event.get("type")))
    return detail(event) if detail is not None else ""


def _replied(event: dict[str, Any]) -> str:
    called = ", ".join(_call(call) for call in event.get("toolCalls", []))
    return " → ".join(part for part in (_one_line(event.get("text"), 70), called) if part)


def _checked(event: dict[str, Any]) -> str:
    problems = event.get("problems", [])
    return _one_line("; ".join(problem["message"] for problem in problems), 100) if problems else "all passed"


def _committed(event: dict[str, Any]) -> str:
    return f"{str(event.get('commit'))[:10]} {_one_line(str(event.get('message')).partition(chr(10))[0], 80)}"


_DETAILS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "job-requested": lambda event: f"on {event.get('branch')}, by {event.get('model')}",
    "workspace-opened": lambda event: f"at commit {str(event.get('baseCommit'))[:10]}",
    "model-replied": _replied,
    "tool-returned": lambda event: _one_line(
        f"{event.get('name')}: {DATA_MARKS.sub('', str(event.get('result')))}", 100
    ),
    "plan-changed": lambda event: "; ".join(f"{todo['content']} ({todo['status']})" for todo in event.get("todos", [])),
    "file-changed": lambda event: f"{event.get('path')}{' deleted' if event.get('deleted') else ''}",
    "work-finished": lambda event: _one_line(event.get("title"), 100),
    "checks-reported": _checked,
    "committed": _committed,
    "branch-pushed": lambda event: str(event.get("branch")),
    "pull-request-opened": lambda event: str(event.get("url")),
    "job-completed": lambda event: _one_line(event.get("message"), 160),
    "job-failed": lambda event: _one_line(event.get("message"), 160),
}


def _call(call: dict[str, Any]) -> str:
    given = call.get("arguments", {})
    what = given.get("path") or given.get("query") or given.get("folder") or ""
    return f"{call.get('name')} {what}".strip()


def _one_line(text: object, length: int) -> str:
    words = " ".join(str(text or "").split())
    return words if len(words) <= length else words[: length - 1] + "…"


async def ask(api: Api, question: str) -> None:
    """Ask a question and print the answer while it is written."""
    show(f"\nThe assistant is asked: {question}\n")
    sources: list[tuple[str, str]] = []
    printer = Printer()
    async with api.http.post(
        api.question_address(),
        json=_question_body(question),
        headers={"Authorization": f"Bearer {api.assistant_key}"},
        timeout=ENDLESS,
    ) as response:
        await _refuse_errors(response)
        async for event in _events(response):
            match event.get("type"):
                case "text-delta":
                    printer.write(event["delta"])
                case "source-url":
                    sources.append((event.get("title") or event["url"], event["url"]))
                case "error":
                    raise ServiceError(f"The assistant could not answer: {event.get('errorText')}")
    printer.close()
    if sources:
        show("\n  Pages that were found:")
        for title, url in sources:
            show(f"    {title}  {url}")


def _question_body(question: str) -> dict[str, object]:
    return {
        "fp": "anonymous",
        "messages": [{"id": "q1", "role": "user", "parts": [{"type": "text", "text": question}]}],
    }


class Printer:
    """Print text while it arrives, indented, without the block of suggestions, which is for chat clients."""

    def __init__(self) -> None:
        self._line = ""
        self._shown = 0
        self._inside = False
        self._blank = 0

    def write(self, text: str) -> None:
        first, *more = text.split("\n")
        self._more(first)
        for line in more:
            self._end_line()
            self._more(line)

    def close(self) -> None:
        if self._line:
            self._end_line()

    def _more(self, text: str) -> None:
        self._line += text
        may_be_fence = BEGIN.startswith(self._line) or self._line.startswith(BEGIN)
        if not self._inside and not may_be_fence:
            self._put(self._line[self._shown :], end="")
            self._shown = len(self._line)

    def _end_line(self) -> None:
        line = self._line
        if self._inside:
            self._inside = line.strip() != END
        elif line.startswith(BEGIN):
            self._inside = True
        elif line:
            self._put(line[self._shown :], end="\n")
        else:
            self._blank += 1
        self._line, self._shown = "", 0

    def _put(self, text: str, end: str) -> None:
        """Print the blank lines that came before, then the text."""
        show("\n" * self._blank + ("" if self._shown else "  ") + text, end=end)
        self._blank = 0


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON events of a live answer, one ``data:`` line each."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                try:
                    yield msgspec.json.decode(line.removeprefix(b"data: "), type=dict[str, Any])
                except msgspec.DecodeError:
                    continue  # one event over several lines: none of those that are shown


async def _answer(response: aiohttp.ClientResponse, kind: type[T]) -> T:
    await _refuse_errors(response)
    return msgspec.json.decode(await response.read(), type=kind)


async def _refuse_errors(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        body = await response.text()
        raise ServiceError(f"{response.method} {response.url} answered {response.status}: {_one_line(body, 300)}")


def show_ways_in(api: Api, job: JobView, sign_in_link: str) -> None:
    """Show where a browser goes on: the dashboard by a link that signs in, the page that asks, the pull request."""
    rows = [
        ("Dashboard", sign_in_link),
        ("Ask page", f"{api.url}/ask/{api.project.domain}"),
        ("Pull request", job.pr_link or ""),
        ("Manual", f"{api.url}/manual"),
    ]
    for title, value in rows:
        if value:
            show(f"  {title + ':':<17}{value}")


def show_api(api: Api, job: JobView, next_job: str, question: str) -> None:
    admin, assistant = (f"Authorization: Bearer {key}" for key in (api.admin_key, api.assistant_key))
    rows = (
        ("Agent", f"{api.url}/v2/agent/{api.project.id}/job"),
        ("Assistant", f"{api.url}/discovery/v2/assistant/{api.project.domain}/message"),
        ("Admin key", f"{api.admin_key}  (project {api.project.id})"),
        ("Assistant key", f"{api.assistant_key}  (site {api.project.domain})"),
    )
    show("\nThe API, for programs:\n")
    for title, value in rows:
        show(f"  {title + ':':<17}{value}")
    show("\nTo go on by hand, paste these:\n")
    _curl("Ask for another change", api.job_address(), admin, {"prompt": next_job})
    show(
        f"# See how a job goes\ncurl -sSN -H {shlex.quote(admin)} {shlex.quote(api.job_address(job.id) + '/events')}\n"
    )
    _curl("Ask a question", api.question_address(), assistant, _question_body(question), live=True)


def _curl(title: str, url: str, key: str, body: dict[str, object], *, live: bool = False) -> None:
    show(
        f"# {title}\n"
        f"curl -sS{'N' if live else ''} -H {shlex.quote(key)} -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))} \\\n"
        f"  {shlex.quote(url)}\n"
    )
