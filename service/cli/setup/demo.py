"""``docsmith demo``: the whole service at work in one command, on the manual or on documentation of your own.

It does nothing that its reader could not do: organization, project and keys are made by the commands, the rest goes
over HTTP with the keys it prints. What it asks for on the manual is in ``service/manual/demo.json``.
"""

import asyncio
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self, TypeVar

import aiohttp
import click
import msgspec
from msgspec import Struct

from service.cli.output import DONE, Output
from service.cli.parsing import FILE, PLACE, PORT, Options, command
from service.cli.setup.demo_api import Api, ask, models_of, run_job, show, show_api, show_ways_in
from service.domain.access.people import LINK_MINUTES
from service.domain.errors import ServiceError, Unavailable
from service.domain.model import is_builtin
from service.domain.projects.values import domain_from
from service.markup.pages import MARKDOWN_SUFFIXES
from service.runtime.data_folder import make_data_folder
from service.runtime.sample import MANUAL, sample_folder
from service.views.projects import ProjectView
from service.views.search import SearchResult

MANUAL_NAME = "Docsmith"

DEFAULT_DATA = Path(".docsmith-demo")
DEFAULT_PORT = 8080
START_SECONDS = 60
STOP_SECONDS = 15
"""The service stops within 10; after this it is killed."""
STEP_WIDTH = 14
WELL_FILLED = 300
"""Characters of a section."""
PAGES_TRIED = 4
SLOW_SECONDS = 2
"""Seconds after which a step on a terminal shows that it is still running."""
EXIT_NOTE = """
The demo stops here, and nothing answers at these addresses any more. To serve this folder again, and to get the link
that signs you in to the dashboard:

  {program} serve --data {data}
  {program} login --data {data}"""
BUILTIN_NOTE = """\
The builtin models need no key: they quote the documentation and carry out simple instructions. For a language model,
set its key (ANTHROPIC_API_KEY, for one) and run this again, or add one: docsmith model add NAME
"""

T = TypeVar("T")


class Projects(Struct, frozen=True):
    projects: list[ProjectView]


class LinkMade(Struct, frozen=True):
    link: str


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


class Found(Struct, frozen=True):
    results: list[SearchResult]


class Script(Struct, frozen=True, rename="camel"):
    """The instruction and the questions of a demo."""

    questions: Sequence[str]
    instruction: str
    next_instruction: str
    """The instruction that the reader is invited to try."""


@dataclass(frozen=True)
class Docs:
    """The documentation that the demo shows."""

    folder: str
    """A path, or a URL."""
    is_manual: bool

    @property
    def name(self) -> str:
        return MANUAL_NAME if self.is_manual else Path(self.folder.rstrip("/")).stem or "docs"


def _new_pages(beside: str) -> Iterator[str]:
    """Yield instructions for a new page in the folder of another; the last one always changes something."""
    unlike_others = f"hello-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for name in ("hello-from-docsmith.md", f"{unlike_others}.md"):
        yield (
            f'Create page {_quoted(PurePosixPath(beside).parent / name)} with title "Hello from Docsmith" and text'
            ' "Docsmith wrote this page to show a pull request. Close it, or merge it and ask the assistant who wrote'
            ' the hello page."'
        )


def _quoted(path: PurePosixPath) -> str:
    if '"' in str(path):
        return path.name
    return str(path) if re.fullmatch(r"[\w./-]+", str(path)) else f'"{path}"'


@command(
    "demo",
    more="It works on a copy, and keeps serving until Ctrl-C. To start from the beginning, remove the data folder.",
    examples=["demo", "demo --docs ../guide", "demo --exit"],
    works_alone=True,
    common=(),
)
@click.option(
    "--docs",
    type=PLACE,
    metavar="FOLDER",
    help="documentation of your own: a folder or a git repository (default: the manual)",
)
@click.option("--exit", is_flag=True, help="stop when everything has been shown")
@click.option(
    "--data", type=FILE, default=DEFAULT_DATA, metavar="DIR", help=f"the data folder (default: {DEFAULT_DATA})"
)
@click.option("--port", type=PORT, help=f"the port to listen on (default: {DEFAULT_PORT}, or a free one)")
async def run_demo(options: Options, _output: Output) -> int:
    """Run the demo; a stop while it serves is a success."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(one, task.cancel)
    if isinstance(sys.stdout.encoding, str):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # not every terminal shows all characters
    make_data_folder(options.data)
    try:
        await demo(_docs(options.docs, options.data), options.data, _port(options.port), then_exit=options.exit)
    except asyncio.CancelledError:
        show("\nStopped.")
        return 130
    except aiohttp.ClientError as error:
        raise Unavailable(
            f"The service did not answer as it should ({type(error).__name__}); its log: {options.data / 'demo.log'}"
        ) from None
    return DONE


async def demo(docs: Docs, data: Path, port: int, *, then_exit: bool) -> None:
    begun = time.monotonic()
    show(f"Docsmith demo, data in {data}\n")
    organization = await _organization(data)
    project = await _project(docs, data, organization)
    with Step("index") as step:
        indexed = await _command(data, Indexed, "index", project.domain)
        step.says(f"{indexed.pages:,} pages, {indexed.sections:,} sections")
    if not indexed.pages:
        raise ServiceError(
            f"There is no page of documentation in {docs.folder}; pages end in {', '.join(MARKDOWN_SUFFIXES)}."
        )
    script, page = (_script_of_manual(), "") if docs.is_manual else await _script(docs, data, project)
    with Step("keys") as step:
        admin, assistant = await asyncio.gather(
            _command(data, KeyMade, *_key("admin"), "--organization", project.organization_id),
            _command(data, KeyMade, *_key("assistant"), "--domain", project.domain),
        )
        step.says("one for the agent, one for the assistant")
    async with _service(data, port) as (server, url), aiohttp.ClientSession() as http:
        models = await models_of(http, url)
        show(f"  {'models':<{STEP_WIDTH}}{', '.join(f'{work}: {model}' for work, model in models.items())}")
        api = Api(http, url, project, admin.token, assistant.token)
        for instruction in dict.fromkeys((script.instruction, *_new_pages(page))):
            job = await run_job(api, instruction)
            if job.pr_link:
                break
        else:
            raise ServiceError("The job changed nothing, so there is no pull request to show.")
        for question in script.questions:
            await ask(api, question)
        show(f"\nAll of it in {time.monotonic() - begun:.1f} s.\n")
        show_ways_in(api, job, "" if then_exit else await _sign_in_link(data))
        if then_exit:
            show(EXIT_NOTE.format(program=_own_name(), data=shlex.quote(str(data))))
        else:
            show(f"\nThe link to the dashboard signs you in, once, within {LINK_MINUTES} minutes. For another one:\n")
            show(f"  {_own_name()} login --data {shlex.quote(str(data))}")
        show_api(api, job, script.next_instruction, script.questions[0])
        if any(map(is_builtin, models.values())):
            show(BUILTIN_NOTE)
        if not then_exit:
            await _keep_serving(server, data)


async def _sign_in_link(data: Path) -> str:
    """Return a link for the operator; empty where it is not clear who that is, as with several of them."""
    with suppress(ServiceError):
        return (await _command(data, LinkMade, "login")).link
    return ""


def _own_name() -> str:
    """Return the command by which people start this program here."""
    if shutil.which("docsmith") is not None:
        return "docsmith"
    own = Path(sys.argv[0])
    return shlex.quote(str(own)) if own.name == "docsmith" else "docsmith"


async def _keep_serving(server: Process, data: Path) -> None:
    show("Serving until Ctrl-C.")
    try:
        code = await server.wait()
    except asyncio.CancelledError:
        show("\nStopping.")
        return
    raise Unavailable(f"The service ended by itself with exit code {code}; its log: {data / 'demo.log'}")


# Preparing, by the commands


def _docs(named: str | None, data: Path) -> Docs:
    if named is None:
        return Docs(str(sample_folder(data).resolve()), is_manual=True)
    if "://" in named:
        return Docs(named, is_manual=False)
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise ServiceError(f"{named} is not a folder; give --docs the folder of your documentation.")
    return Docs(str(folder.resolve()), is_manual=False)


def _script_of_manual() -> Script:
    return msgspec.json.decode((MANUAL / "demo.json").read_bytes(), type=Script)


async def _organization(data: Path) -> str:
    with Step("organization") as step:
        if (data / "events.db").exists():
            there = (await _command(data, Organizations, "organization", "list")).organizations
            if there:
                step.says("the one that is there")
                return there[0].id
        made = await _command(data, Identified, "organization", "create", "--name", "Demo")
        step.says("Demo")
        return made.id


async def _project(docs: Docs, data: Path, organization: str) -> ProjectView:
    """Return the project of this documentation: the last demo's, else a new one."""
    with Step("project") as step:
        there = (await _command(data, Projects, "project", "list")).projects
        for project in there:
            if project.repository == docs.folder:
                step.says(f"{project.name}, of {docs.folder}, is there already")
                return project
        taken = {project.domain for project in there}
        wanted = domain_from(docs.name)
        domain = next(name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, 1000))) if name not in taken)
        project = await _command(
            data, ProjectView,
            "project", "create", "--name", docs.name, "--repository", docs.folder, "--domain", domain,
            "--organization", organization,
        )  # fmt: skip
        step.says(f"{project.name}, from {docs.folder}")
        return project


def _key(kind: str) -> tuple[str, ...]:
    return ("key", "create", "--kind", kind, "--name", "demo")


async def _script(docs: Docs, data: Path, project: ProjectView) -> tuple[Script, str]:
    """Return the script for documentation of one's own, and a page in whose folder a new one may be created."""
    title, path = await _page_to_ask_about(docs, data, project)
    return Script([f'What is in "{title}"?'], next(_new_pages(path)), "Fix broken links"), path


async def _page_to_ask_about(docs: Docs, data: Path, project: ProjectView) -> tuple[str, str]:
    """Return title and path of a page that a search for its title finds first; the documentation's name without one."""
    for query in (docs.name, _page_names(docs.folder)):
        found = (await _command(data, Found, "search", project.domain, query, "--limit", "30")).results
        filled = [(one.metadata.title, one.metadata.file) for one in found if len(one.content) >= WELL_FILLED]
        for title, path in islice(dict.fromkeys(filled), PAGES_TRIED):
            best = (await _command(data, Found, "search", project.domain, title, "--limit", "1")).results
            if best and best[0].metadata.file == path:
                return title, path
    return docs.name, found[0].metadata.file if found else ""


def _page_names(folder: str) -> str:
    """Return a query that finds pages of any documentation: the names of some files."""
    names = (path.stem for path in islice(Path(folder).rglob("*.md*"), 20))
    return " ".join(re.findall(r"\w+", " ".join(names))) or folder


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
    """Return the document of ``docsmith ARGUMENTS --json``. Raise ServiceError with its message when it fails."""
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
    """Return the command that runs this program. ``-P`` ignores a folder named ``service`` in the current one."""
    return (sys.executable,) if getattr(sys, "frozen", False) else (sys.executable, "-P", "-m", "service")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("docsmith: ") if lines else ""


@asynccontextmanager
async def _service(data: Path, port: int) -> AsyncIterator[tuple[Process, str]]:
    """Yield the running service and its address; stop it at the end."""
    log = data / "demo.log"
    with _begun(log) as errors:
        process = await asyncio.create_subprocess_exec(
            *_program(), "serve", "--data", str(data), "--port", str(port),
            stdin=DEVNULL, stdout=PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for us; we stop it in our own time
        )  # fmt: skip
        try:
            with Step("service") as step:
                url = await _listening(process, log)
                step.says(f"listening on {url}")
            yield process, url
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
            await process.wait()
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


class Step:
    """A line on the terminal: the name of a step, then its result and the time that it took."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._result = ""
        self._begun = time.monotonic()
        self._ticking = asyncio.create_task(self._tick()) if sys.stdout.isatty() else None

    def says(self, result: str) -> None:
        self._result = result

    def __enter__(self) -> Self:
        show(f"  {self._title:<{STEP_WIDTH}}", end="")
        return self

    async def _tick(self) -> None:
        """Rewrite the line in place, which only a terminal can show."""
        while True:
            await asyncio.sleep(SLOW_SECONDS)
            show(f"\r  {self._title:<{STEP_WIDTH}}{time.monotonic() - self._begun:.0f} s …", end="")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            show(f"\r  {self._title:<{STEP_WIDTH}}", end="")  # its result is longer than what is there
        if kind is None:
            show(f"{self._result}  ({time.monotonic() - self._begun:.1f} s)")
        else:
            show("stopped" if issubclass(kind, asyncio.CancelledError) else "failed")
