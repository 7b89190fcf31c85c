"""``docsmith job``."""

import argparse
import shlex
from contextlib import aclosing
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, FAILED, Output, failure
from service.cli.parsing import add_command
from service.cli.runtime import Runtime, is_served
from service.domain.errors import Invalid, NotFound
from service.domain.jobs import (
    FileChanged,
    Finished,
    Job,
    JobCompleted,
    JobEvent,
    JobFailed,
    Message,
    ModelReplied,
    PullRequestOpened,
)
from service.operations import NewJob, request_job
from service.projections.jobs import JobRow, find_job
from service.projections.projects import ProjectRow, get_project, list_projects, project_of_domain
from service.streams import JOBS, decoded
from service.system import cli_actor
from service.wire.job_stream import public


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    job = add_command(commands, "job", "give jobs to the agent and follow them")
    actions = job.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = add_command(
        actions,
        "create",
        "ask for a change; a running service carries it out",
        examples=[
            'job create "Fix broken links"',
            'job create \'Replace "sign in" with "log in"\' --project guide --draft',
        ],
        parents=[common],
    )
    one.add_argument("prompt", metavar="INSTRUCTION", help="what to change, in quotes")
    one.add_argument(
        "--project", metavar="ID_OR_DOMAIN", help="whose documentation; needed only when there are several"
    )
    one.add_argument("--model", default="", metavar="ALIAS", help="a model of the settings (default: the agent's)")
    one.add_argument("--branch", default="", help="the branch to work on (default: a new one, named after the job)")
    one.add_argument("--draft", action="store_true", help="open the pull request as a draft")
    one.set_defaults(command=create)
    one = add_command(
        actions, "show", "show how a job stands", more="Exit status 1 when it has failed.", parents=[common]
    )
    one.add_argument("id", metavar="ID", help="of the job")
    one.set_defaults(command=show)
    one = add_command(
        actions, "watch", "follow a job to its end", more="Exit status 1 when it fails.", parents=[common]
    )
    one.add_argument("id", metavar="ID", help="of the job")
    one.set_defaults(command=watch)


async def create(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    project = await the_project(runtime, options.project)
    new = NewJob((Message("user", options.prompt),), 2, options.model, options.branch, options.draft)
    created = await request_job(runtime.store, runtime.models, project, new, Metadata(actor=cli_actor()))
    await runtime.views.catch_up()
    output.result(
        await find_job(runtime.views, created.id),
        f"job {created.id}\nbranch {created.branch}\nfollow it with: docsmith job watch {created.id}",
    )
    _tell_when_not_served(runtime)
    return DONE


def _tell_when_not_served(runtime: Runtime) -> None:
    if not is_served(runtime.data):
        failure(
            f"Nobody serves {runtime.data} just now, so the job waits.",
            next_step=f"Start the service: docsmith serve --data {shlex.quote(str(runtime.data))}",
        )


async def show(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    row = await find_job(runtime.views, options.id)
    if row is None:
        raise NotFound(f"There is no job {options.id}.")
    output.result(row, _text(row))
    return FAILED if row.status == "failed" else DONE


def _text(row: JobRow) -> str:
    lines = [
        f"job {row.id}",
        f"status {row.status}",
        f"title {row.title}",
        f"branch {row.branch}",
        f"model {row.model}",
    ]
    if row.pull_request_url:
        lines.append(f"pull request {row.pull_request_url}")
    if row.failure_code:
        lines.append(f"failure {row.failure_code}: {row.failure_message}")
    return "\n".join(lines)


async def watch(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    """With ``--json`` the document is printed at the job's end."""
    row = await find_job(runtime.views, options.id)
    if row is None:
        raise NotFound(f"There is no job {options.id}.")
    if row.status == "active":
        _tell_when_not_served(runtime)
    job: Job = JOBS.initial
    shown: list[dict[str, object]] = []
    async with aclosing(runtime.store.subscribe(after=0, stream=JOBS.stream(options.id))) as events:
        async for recorded in events:
            for _, event in decoded(JOBS, [recorded]):
                job = JOBS.evolve(job, event)
                shown.append(public(event))
                output.line(_line(event))
            if isinstance(job, Finished):
                break
    assert isinstance(job, Finished)
    status = "completed" if isinstance(job.outcome, JobCompleted) else "failed"
    output.result({"id": options.id, "status": status, "events": shown}, "")
    return DONE if status == "completed" else FAILED


def _line(event: JobEvent) -> str:
    tag = str(event.__struct_config__.tag)
    match event:
        case ModelReplied(text=text, tool_calls=calls):
            return "  ".join(
                [tag, *(part for part in [" ".join(text.split())[:100], *(c.name for c in calls)] if part)]
            )
        case FileChanged(path=path, content=content):
            return f"{tag}  {path}{' (deleted)' if content is None else ''}"
        case PullRequestOpened(url=url):
            return f"{tag}  {url}"
        case JobCompleted(message=message) | JobFailed(message=message):
            return f"{tag}  {message}"
        case _:
            return tag


async def the_project(runtime: Runtime, named: str | None) -> ProjectRow:
    """The one that was named by id or domain, or the only one there is."""
    if named is not None:
        row = await get_project(runtime.views, named) or await project_of_domain(runtime.views, named)
        if row is None:
            raise NotFound(f"There is no project {named}; see: docsmith project list")
        return row
    rows = await list_projects(runtime.views)
    if not rows:
        raise NotFound("There is no project yet; make one: docsmith project create --name NAME --repository PATH")
    if len(rows) > 1:
        raise Invalid("There are several projects; say which with --project ID_OR_DOMAIN (docsmith project list).")
    return rows[0]
