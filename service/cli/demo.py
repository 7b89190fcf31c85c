"""``docsmith demo``: the whole service at work in one command, on the sample site or on documentation of your own.

It does nothing that its reader could not do: organization, project and keys are made by the commands, the rest goes
over HTTP with the keys it prints. The sample site has four links that lead nowhere, for the agent to mend.
"""

import argparse
import asyncio
import json
import re
import shlex
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from service.cli.output import DONE
from service.cli.projects import domain_from
from service.domain.errors import ServiceError, Unavailable

SAMPLE = Path(__file__).parent.parent / "sample"
SAMPLE_NAME = "Lantern"
SAMPLE_JOB = "Fix broken links"
SAMPLE_QUESTION = "How do I retry a failed job?"
SAMPLE_NEXT_JOB = 'Replace "lantern runner start" with "lantern worker start"'

DEFAULT_DATA = Path(".docsmith-demo")
DEFAULT_PORT = 8080
START_SECONDS = 60
STOP_SECONDS = 15
"""The service stops within 10; after this it is killed."""
STEP_WIDTH = 14
WELL_FILLED = 300
"""Characters of a section."""
NO_THING = re.compile(
    r"(?i)(about|overview|introduction|index|home|readme|welcome|contents?|licen[cs]e|change ?log|contribut\w*|credits|"
    r"quick ?start|get(ting)? started|release notes.*|what'?s new.*|untitled|"
    r"(how|what|why|when|where|which|who|can|do|does|is|are|\w+ing)\b.*)"
)
"""Titles that do not fit into "What is …?"."""
DATA_MARKS = re.compile(r"</?data [0-9a-f]+>")
"""Around what is not ours in the results of tools; for models, not for people."""

BUILTIN_NOTE = """\
The builtin models need no key: they quote the documentation and carry out simple instructions. For a language model,
set its key (ANTHROPIC_API_KEY, for one) and run this again.
"""

T = TypeVar("T")


class ProjectMade(Struct, frozen=True):
    id: str
    organization_id: str
    name: str
    domain: str
    repository: str
    ref: str


class Projects(Struct, frozen=True):
    projects: list[ProjectMade]


class Identified(Struct, frozen=True):
    id: str


class Organizations(Struct, frozen=True):
    organizations: list[Identified]


class KeyMade(Struct, frozen=True):
    token: str


class Indexed(Struct, frozen=True):
    pages: int
    sections: int
    seconds: float


class Section(Struct, frozen=True):
    path: str
    title: str
    text: str


class Found(Struct, frozen=True):
    results: list[Section]


class Readiness(Struct, frozen=True):
    models: dict[str, str]


class JobSeen(Struct, frozen=True, rename="camel"):
    id: str
    status: str
    model: str
    branch: str
    pr_link: str | None


@dataclass(frozen=True)
class Docs:
    """What the demo shows."""

    folder: str
    """A path, or a URL."""
    is_sample: bool

    @property
    def name(self) -> str:
        return SAMPLE_NAME if self.is_sample else Path(self.folder.rstrip("/")).stem or "docs"

    def jobs(self) -> Sequence[str]:
        """Instructions in the order to try them, until one changes something; the last one always does."""
        at = datetime.now(UTC)
        page = (
            f'Create page docsmith-demo-{at:%Y%m%d-%H%M%S}.md with title "Hello from Docsmith" and text '
            f'"This page was written by docsmith demo on {at:%Y-%m-%d} at {at:%H:%M} UTC. Close the pull request, '
            'or merge it and see how soon the assistant knows."'
        )
        return (SAMPLE_JOB, page) if self.is_sample else (page,)


@dataclass(frozen=True)
class Api:
    """The running service, as its callers see it."""

    http: aiohttp.ClientSession
    url: str
    project: ProjectMade
    admin_key: str
    assistant_key: str

    def job_address(self, job_id: str = "") -> str:
        return f"{self.url}/v2/agent/{self.project.id}/job" + (f"/{job_id}" if job_id else "")

    def question_address(self) -> str:
        return f"{self.url}/discovery/v2/assistant/{self.project.domain}/message"


def add_command(commands: Any, _common: argparse.ArgumentParser) -> None:
    one = commands.add_parser("demo", help="see the whole service at work, on a sample site or on your documentation")
    one.add_argument("--docs", metavar="FOLDER", help="documentation of your own: a folder or a git repository")
    one.add_argument("--exit", action="store_true", help="stop when everything has been shown")
    one.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the data folder (default: %(default)s)")
    one.add_argument("--port", type=int, help=f"the port to listen on (default: {DEFAULT_PORT}, or a free one)")
    one.set_defaults(command=run, json=False, config=None)


async def run(options: argparse.Namespace) -> int:
    """Ends with 0, also when it is stopped while it serves."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(one, task.cancel)
    if isinstance(sys.stdout.encoding, str):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may be of another time
    try:
        await demo(_docs(options.docs), options.data, _port(options.port), then_exit=options.exit)
    except asyncio.CancelledError:
        _print("\nStopped.")
        return 130
    except aiohttp.ClientError as error:
        raise Unavailable(
            f"The service did not answer as it should ({type(error).__name__}); its log: {options.data / 'demo.log'}"
        ) from None
    return DONE


async def demo(docs: Docs, data: Path, port: int, *, then_exit: bool) -> None:
    begun = time.monotonic()
    _print(f"Docsmith demo, data in {data}\n")
    organization = await _organization(data)
    project = await _project(docs, data, organization)
    step = Step("index")
    indexed = await _command(data, Indexed, "index", project.domain)
    step.done(f"{indexed.pages:,} pages, {indexed.sections:,} sections")
    question = SAMPLE_QUESTION if docs.is_sample else await _question(docs, data, project)
    step = Step("keys")
    admin, assistant = await asyncio.gather(
        _command(data, KeyMade, *_key("admin"), "--organization", project.organization_id),
        _command(data, KeyMade, *_key("assistant"), "--domain", project.domain),
    )
    step.done("one for the agent, one for the assistant")
    step = Step("service")
    async with _service(data, port) as (server, url), aiohttp.ClientSession() as http:
        models = await _models(http, url)
        step.done(f"listening on {url}; {', '.join(f'{work}: {model}' for work, model in models.items())}")
        api = Api(http, url, project, admin.token, assistant.token)
        for instruction in docs.jobs():
            job = await _work(api, instruction)
            if job.pr_link:
                break
        else:
            raise ServiceError("The job changed nothing, so there is no pull request to show.")
        await _ask(api, question)
        _print(f"\nAll of it in {time.monotonic() - begun:.1f} s.\n")
        _print_addresses(api, job, SAMPLE_NEXT_JOB if docs.is_sample else SAMPLE_JOB, question)
        if any(model.startswith("builtin/") for model in models.values()):
            _print(BUILTIN_NOTE)
        if not then_exit:
            await _keep_serving(server, data)


async def _keep_serving(server: Process, data: Path) -> None:
    _print("Serving until Ctrl-C.")
    try:
        code = await server.wait()
    except asyncio.CancelledError:
        _print("\nStopping.")
        return
    raise Unavailable(f"The service ended by itself with exit code {code}; its log: {data / 'demo.log'}")


# Preparing, by the commands


def _docs(named: str | None) -> Docs:
    if named is None:
        return Docs(str(SAMPLE.resolve()), is_sample=True)
    if "://" in named:
        return Docs(named, is_sample=False)
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise ServiceError(f"{named} is not a folder; give --docs the folder of your documentation.")
    return Docs(str(folder.resolve()), is_sample=False)


async def _organization(data: Path) -> str:
    step = Step("organization")
    there = (await _command(data, Organizations, "organization", "list")).organizations
    if there:
        step.done("the one that is there")
        return there[0].id
    made = await _command(data, Identified, "organization", "create", "--name", "Demo")
    step.done("Demo")
    return made.id


async def _project(docs: Docs, data: Path, organization: str) -> ProjectMade:
    """The project of these documents: the one of the last demo, else a new one."""
    step = Step("project")
    there = (await _command(data, Projects, "project", "list")).projects
    for project in there:
        if project.repository == docs.folder:
            step.done(f"{project.name}, of {docs.folder}, is there already")
            return project
    taken = {project.domain for project in there}
    wanted = domain_from(docs.name)
    domain = next(name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, 1000))) if name not in taken)
    project = await _command(
        data, ProjectMade,
        "project", "create", "--name", docs.name, "--repository", docs.folder, "--domain", domain,
        "--ref", _branch_of(docs.folder), "--organization", organization,
    )  # fmt: skip
    step.done(f"{project.name}, from {docs.folder}")
    return project


def _key(kind: str) -> tuple[str, ...]:
    return ("key", "create", "--kind", kind, "--name", "demo")


async def _question(docs: Docs, data: Path, project: ProjectMade) -> str:
    """About a page that has something to say: the best match of this very question, best with a short title."""
    found = await _command(data, Found, "search", project.domain, f"What is {docs.name}?", "--limit", "30")
    pages = [one for one in found.results if len(one.text) >= WELL_FILLED and not NO_THING.fullmatch(one.title)]
    title = min(pages, key=lambda one: len(one.title.split()) > 3).title if pages else docs.name  # the first of those
    return f"What is {title.rstrip('?')}?"


def _branch_of(folder: str) -> str:
    """The branch that a repository has checked out; ``main`` for a plain folder, a URL, or no branch at all."""
    place = Path(folder)
    git = place / ".git"
    try:
        if git.is_file():  # a work tree of its own: the file names the repository's folder
            git = place / git.read_text().removeprefix("gitdir:").strip()
        head = (git if git.is_dir() else place) / "HEAD"
        return head.read_text().strip().removeprefix("ref: refs/heads/") if head.is_file() else "main"
    except OSError:
        return "main"


def _port(wanted: int | None) -> int:
    if wanted is not None:
        return wanted
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError:
            return 0
    return DEFAULT_PORT


async def _command(data: Path, answer: type[T], *arguments: str) -> T:
    """What ``docsmith ARGUMENTS --json`` says. Raises ServiceError with its own words when it fails."""
    process = await asyncio.create_subprocess_exec(
        *_program(), *arguments, "--data", str(data), "--json", stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )  # fmt: skip
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        await _stop(process)
        raise
    if process.returncode != 0:
        raise ServiceError(_last_line(err.decode(errors="replace")) or f"docsmith {arguments[0]} failed")
    return msgspec.json.decode(out, type=answer)


def _program() -> tuple[str, ...]:
    """This program. ``-P``: a folder named ``service`` where it is started must not be taken for ours."""
    return (sys.executable,) if getattr(sys, "frozen", False) else (sys.executable, "-P", "-m", "service")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("docsmith: ") if lines else ""


@asynccontextmanager
async def _service(data: Path, port: int) -> AsyncIterator[tuple[Process, str]]:
    """The running service and its address; stopped at the end."""
    log = data / "demo.log"
    with _begun(log) as errors:
        process = await asyncio.create_subprocess_exec(
            *_program(), "serve", "--data", str(data), "--port", str(port),
            stdin=DEVNULL, stdout=PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for us; we stop it in our own time
        )  # fmt: skip
        try:
            yield process, await _listening(process, log)
        finally:
            await _stop(process)


async def _listening(process: Process, log: Path) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            async for line in process.stdout:
                words = line.decode().strip()
                if words.startswith("listening on "):
                    return words.removeprefix("listening on ")
    except TimeoutError:
        raise Unavailable(f"The service did not start within {START_SECONDS} s; its log: {log}") from None
    reason = _last_words(log)
    raise Unavailable(f"The service did not start: {reason or 'it said nothing'} (its log: {log})")


def _begun(log: Path) -> BinaryIO:
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("wb")


def _last_words(log: Path) -> str:
    return _last_line(log.read_text(errors="replace"))


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


# Showing, over HTTP


async def _models(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    async with http.get(f"{url}/readyz") as response:
        return msgspec.json.decode(await response.read(), type=Readiness).models


async def _work(api: Api, instruction: str) -> JobSeen:
    """A job, from the request to its end, event by event."""
    _print(f"\nThe agent is asked: {instruction}\n")
    headers = {"Authorization": f"Bearer {api.admin_key}"}
    begun = time.monotonic()
    async with api.http.post(api.job_address(), json={"prompt": instruction}, headers=headers) as response:
        job = await _answer(response, JobSeen)
    async with api.http.get(f"{api.job_address(job.id)}/events", headers=headers, timeout=_ENDLESS) as response:
        await _refuse_errors(response)
        async for event in _events(response):
            _print(f"  {time.monotonic() - begun:5.1f} s  {event.get('type', ''):<20} {_detail(event)}".rstrip())
    async with api.http.get(f"{api.job_address(job.id)}?wait=60", headers=headers) as response:
        job = await _answer(response, JobSeen)
    if job.status != "completed":
        raise ServiceError(f"The job did not complete: it is {job.status}; see: {api.job_address(job.id)}")
    if job.pr_link:
        _print(f"\n  Pull request: {job.pr_link}")
    return job


def _detail(event: dict[str, Any]) -> str:
    match event.get("type"):
        case "job-requested":
            return f"on {event.get('branch')}, by {event.get('model')}"
        case "workspace-opened":
            return f"at commit {str(event.get('baseCommit'))[:10]}"
        case "model-replied":
            called = ", ".join(_call(call) for call in event.get("toolCalls", []))
            return " → ".join(part for part in (_one_line(event.get("text"), 70), called) if part)
        case "tool-returned":
            return _one_line(f"{event.get('name')}: {DATA_MARKS.sub('', str(event.get('result')))}", 100)
        case "plan-changed":
            return "; ".join(f"{todo['content']} ({todo['status']})" for todo in event.get("todos", []))
        case "file-changed":
            return f"{event.get('path')}{' deleted' if event.get('deleted') else ''}"
        case "work-finished":
            return _one_line(event.get("title"), 100)
        case "checks-reported":
            problems = event.get("problems", [])
            return _one_line("; ".join(problem["message"] for problem in problems), 100) if problems else "all passed"
        case "committed":
            return f"{str(event.get('commit'))[:10]} {_one_line(str(event.get('message')).partition(chr(10))[0], 80)}"
        case "branch-pushed":
            return str(event.get("branch"))
        case "pull-request-opened":
            return str(event.get("url"))
        case "job-completed" | "job-failed":
            return _one_line(event.get("message"), 160)
        case _:
            return ""


def _call(call: dict[str, Any]) -> str:
    given = call.get("arguments", {})
    what = given.get("path") or given.get("query") or given.get("folder") or ""
    return f"{call.get('name')} {what}".strip()


def _one_line(text: object, length: int) -> str:
    words = " ".join(str(text or "").split())
    return words if len(words) <= length else words[: length - 1] + "…"


async def _ask(api: Api, question: str) -> None:
    """A question, and the answer as it is written."""
    _print(f"\nThe assistant is asked: {question}\n")
    sources: list[tuple[str, str]] = []
    printer = Printer()
    async with api.http.post(
        api.question_address(),
        json=_question_body(question),
        headers={"Authorization": f"Bearer {api.assistant_key}"},
        timeout=_ENDLESS,
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
        _print("\n  Sources:")
        for title, url in sources:
            _print(f"    {title}  {url}")


def _question_body(question: str) -> dict[str, object]:
    return {
        "fp": "anonymous",
        "messages": [{"id": "q1", "role": "user", "parts": [{"type": "text", "text": question}]}],
    }


class Printer:
    """Writes text as it comes, indented, and leaves out the block of suggestions, which is for chat clients."""

    def __init__(self) -> None:
        self._line = ""
        self._shown = 0
        self._inside = False

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
        may_be_fence = "```suggestions".startswith(self._line) or self._line.startswith("```suggestions")
        if not self._inside and not may_be_fence:
            _print(("" if self._shown else "  ") + self._line[self._shown :], end="")
            self._shown = len(self._line)

    def _end_line(self) -> None:
        line, self._line, shown, self._shown = self._line, "", self._shown, 0
        if self._inside:
            self._inside = line.strip() != "```"
        elif line.startswith("```suggestions"):
            self._inside = True
        else:
            _print(("" if shown or not line else "  ") + line[shown:])


_ENDLESS = aiohttp.ClientTimeout(total=None, sock_connect=10)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The JSON events of a live answer, one ``data:`` line each."""
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


def _print_addresses(api: Api, job: JobSeen, next_job: str, question: str) -> None:
    admin, assistant = (f"Authorization: Bearer {key}" for key in (api.admin_key, api.assistant_key))
    rows = (
        ("Pull request", job.pr_link),
        ("API description", f"{api.url}/openapi.json"),
        ("Admin key", f"{api.admin_key}  (project {api.project.id})"),
        ("Assistant key", f"{api.assistant_key}  (site {api.project.domain})"),
    )
    for title, value in rows:
        _print(f"  {title + ':':<17}{value}")
    _print("\nTo go on by hand, paste these:\n")
    _print_curl("Ask for another change", api.job_address(), admin, {"prompt": next_job})
    _print(
        f"# See how a job goes\ncurl -sSN -H {shlex.quote(admin)} {shlex.quote(api.job_address(job.id) + '/events')}\n"
    )
    _print_curl("Ask a question", api.question_address(), assistant, _question_body(question), live=True)


def _print_curl(title: str, url: str, key: str, body: dict[str, object], *, live: bool = False) -> None:
    _print(
        f"# {title}\n"
        f"curl -sS{'N' if live else ''} -H {shlex.quote(key)} -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))} \\\n"
        f"  {shlex.quote(url)}\n"
    )


class Step:
    """One line: what is being done, and once it is done, what came of it and how long it took."""

    def __init__(self, title: str) -> None:
        self._begun = time.monotonic()
        _print(f"  {title:<{STEP_WIDTH}}", end="")

    def done(self, what: str) -> None:
        _print(f"{what}  ({time.monotonic() - self._begun:.1f} s)")


def _print(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)
