"""``docsmith job``."""

import shlex
from contextlib import aclosing
from datetime import UTC
from textwrap import indent

import click

from eventstore import Metadata
from service.cli.audit.reading import one_line
from service.cli.job_requests import requests_text
from service.cli.output import DONE, FAILED, NEEDS_INPUT, Output, failure, table
from service.cli.parsing import COUNT, Choice, Group, Options, together
from service.cli.projects import the_organization, the_project
from service.cli.runtime import Runtime
from service.commands.jobs.jobs import (
    MAX_CONTEXT_CHARACTERS,
    NewJob,
    add_message,
    archive_job,
    cancel_job,
    request_job,
    retry_job,
    unarchive_job,
)
from service.commands.jobs.pull_requests import Verb, record_closed, require_hosted, require_still
from service.domain.editor_forms import FORMS
from service.domain.errors import Invalid, NotFound
from service.domain.jobs.decider import (
    MAX_PROMPT_CHARACTERS,
    CommentAnswered,
    CommentIgnored,
    ContextsOpened,
    FileChanged,
    JobCompleted,
    JobEvent,
    JobFailed,
    JobReopened,
    JobWaiting,
    Message,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    PlanChanged,
    PullRequestOpened,
    PullRequestUpdated,
    ReplyLost,
    RoundStarted,
)
from service.queries.jobs.job_requests import read_request, read_requests
from service.queries.jobs.jobs import (
    events_of,
    find_job,
    job_changing_pull_request,
    jobs_with_id_part,
    pull_request_of_job,
    slots_of,
)
from service.queries.jobs.organization_jobs import list_all_jobs
from service.queries.projects import list_projects
from service.queries.read_models import catch_up
from service.runtime.system import cli_actor, now
from service.views.jobs.jobs import JobView
from service.wire.job_stream import public

SHOWN_ID = 8
"""Characters at the end of an id that people see; ids of jobs that were made together begin alike."""
MIN_ID_PART = 4
MAX_CANDIDATES = 10

EXIT_STATUS = (
    "the exit status is 0 when the job ends with a pull request or with nothing to change, 1 when it fails, and 4 when"
    " it needs input: answer with job message."
)
BUILTIN_FORMS = "\n".join(
    (
        "the builtin agent, which needs no key, understands:",
        *(f"  {form}" for form in FORMS),
        'Several go into one instruction, separated by new lines, semicolons, full stops or "and then".',
    )
)


job = Group("job")


organization_of_jobs = click.option(
    "--organization",
    metavar="ID",
    help="the organization of the job, where jobs of several have a part of an id",
)


_job_id = together(
    click.argument(
        "id", metavar="ID", help=f"the job's id, or {MIN_ID_PART} or more characters of it that no other job has"
    ),
    organization_of_jobs,
)


@job.command(
    "create",
    does="create a job; a running service carries it out",
    more=f"With --watch, {EXIT_STATUS}",
    examples=[
        'job create "Fix broken links" --watch',
        'job create \'Replace "sign in" with "log in"\' --project guide --draft',
        'job create "Document the change" --context "$(git diff v1 v2)"',
    ],
    notes=BUILTIN_FORMS,
)
@click.argument("prompt", metavar="INSTRUCTION", help="what to change, in quotes")
@click.option("--project", metavar="ID_OR_SITE", help="the project; needed only when there are several")
@click.option("--model", default="", metavar="ALIAS", help="a model of the settings (default: the agent's)")
@click.option("--branch", default="", help="the branch to work on (default: a new one, named after the job)")
@click.option("--draft", is_flag=True, help="open the pull request as a draft")
@click.option("--context", default="", metavar="TEXT", help="text to read beside the instruction, such as a diff")
@click.option("--watch", is_flag=True, help="follow the job to its end, as job watch does")
async def create(runtime: Runtime, options: Options, output: Output) -> int:
    project = await the_project(runtime, options.project)
    if len(options.context) > MAX_CONTEXT_CHARACTERS:
        raise Invalid(f"The context has {len(options.context):,} characters. Shorten it to {MAX_CONTEXT_CHARACTERS:,}.")
    new = NewJob((Message("user", options.prompt),), 2, options.model, options.branch, options.draft, options.context)
    created = await request_job(runtime.store, runtime.models, project, new, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    job = await _found(runtime, created.id)
    if options.watch:
        output.line(f"job {short_id(job.id)}\nbranch {job.branch}")
        return await _follow(runtime, job, output)
    output.result(job, f"job {short_id(job.id)}\nbranch {job.branch}\n{_how_to_follow(job)}")
    await _tell_when_not_served(runtime)
    return DONE


def short_id(job_id: str) -> str:
    """Return the end of a job's id, which commands accept in place of the whole id."""
    return job_id[-SHOWN_ID:]


def _how_to_follow(job: JobView) -> str:
    return f"follow it with: docsmith job watch {short_id(job.id)}"


async def _tell_when_not_served(runtime: Runtime) -> None:
    if not await runtime.is_served():
        failure(
            f"No service runs on {runtime.data}, so the job waits.",
            next_step=f"Start the service: docsmith serve --data {shlex.quote(str(runtime.data))}",
        )


@job.command(
    "show",
    does="show a job, or what its model was sent",
    more=EXIT_STATUS.capitalize(),
    examples=["job show 1a2b3c4d", "job show 1a2b3c4d --prompts", "job show 1a2b3c4d --prompts --call 3 --json"],
)
@click.option("--prompts", is_flag=True, help="each request to its model: tools and messages, as they were sent")
@click.option("--call", type=COUNT, metavar="N", help="with --prompts: only the request of this number, whole")
@_job_id
async def show(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    if options.prompts:
        output.result(*await _requests(runtime, job, options.call))
    elif options.call is not None:
        raise Invalid("--call needs --prompts.")
    else:
        output.result(job, _text(job))
    return _exit_code(job)


async def _requests(runtime: Runtime, job: JobView, number: int | None) -> tuple[object, str]:
    """Return the requests to a job's model as a document and as text. Raise NotFound."""
    if number is None:
        found = await read_requests(runtime.store, job.id)
        return {"requests": found}, requests_text(found)
    request = await read_request(runtime.store, job.id, lambda count: min(number, count))
    if request.number != number:
        raise NotFound(f"The job has made {request.count} requests.", code="not_found")
    return request, requests_text([request])


def _text(job: JobView) -> str:
    lines = [
        f"job {job.id}",
        f"status {_status(job)}",
        f"title {job.title}",
        f"branch {job.branch}",
        f"model {job.model}",
    ]
    if job.pr_link:
        lines.append(f"pull request {job.pr_link}")
    if job.waiting is not None:
        again = f", tried again at {job.waiting.next_try_at}" if job.waiting.next_try_at else ""
        lines.append(f"waiting for {job.waiting.waits_for} since {job.waiting.since}{again}: {job.waiting.reason}")
    if job.failure is not None:
        lines.append(f"failure {job.failure.code}: {job.failure.message}")
    return "\n".join([*lines, *_outcome(job)])


def _status(job: JobView) -> str:
    """Return the status for people: a job that has ended with a question is not over for them."""
    if job.waiting is not None:
        return "waiting"
    return "needs your answer" if job.outcome == "needs_input" else job.status


def _outcome(job: JobView) -> list[str]:
    """Return lines that say how the job ended, and what its checks found."""
    lines = []
    if job.outcome is not None:
        lines.append(f"outcome {job.outcome}")
        if job.message and job.failure is None:
            lines.append(indent(f"message {job.message}", "  ").strip())
    for problem in job.problems:
        place = ":".join(str(part) for part in (problem.file, problem.line) if part is not None)
        lines.append(f"{problem.severity} {f'{place}: ' if place else ''}{problem.message} ({problem.code})")
    return lines


def _exit_code(job: JobView) -> int:
    return {"failed": FAILED, "needs_input": NEEDS_INPUT}.get(job.outcome or "", DONE)


@job.command("watch", does="follow a job to its end, and print how it went", more=EXIT_STATUS.capitalize())
@_job_id
async def watch(runtime: Runtime, options: Options, output: Output) -> int:
    return await _follow(runtime, await the_job(runtime, options.id, options.organization), output)


@job.command(
    "list",
    does="list jobs of all projects, the newest first",
    examples=["job list", "job list --project guide --status failed --limit 50", "job list --archived --json"],
)
@click.option("--project", metavar="ID_OR_SITE", help="only those of this project")
@click.option("--status", type=Choice(("active", "completed", "failed")), help="only those")
@click.option("--archived", is_flag=True, help="the archived ones, too")
@click.option("--limit", type=COUNT, default=20, metavar="N", help="how many at most (default: 20)")
async def show_list(runtime: Runtime, options: Options, output: Output) -> int:
    project = await the_project(runtime, options.project) if options.project is not None else None
    found = await list_all_jobs(
        runtime.views,
        None if project is None else project.id,
        slots_of(runtime.settings.agent),
        limit=options.limit,
        status=options.status,
        archived=options.archived,
    )
    names = {one.id: one.domain for one in await list_projects(runtime.views)}
    shown = [
        (
            short_id(job.id),
            one_line(names.get(listed.project_id, listed.project_id), 40),
            _status(job),
            job.outcome or "",
            job.created_at[:16].replace("T", " "),
            one_line(job.title, 60),
            job.pr_link or "",
        )
        for listed in found.jobs
        for job in (listed.job,)
    ]
    head = ("ID", "SITE", "STATUS", "OUTCOME", "CREATED (UTC)", "TITLE", "PULL REQUEST")
    output.result(found.view, table(head, shown) if shown else "No jobs found.")
    return DONE


@job.command(
    "message",
    does="send a message to a job",
    more="It steers a job that is under way; one that has ended goes on, in the same pull request if that is open.",
    examples=['job message 0000beef "Mention it in the changelog, too"'],
)
@_job_id
@click.argument("text", metavar="MESSAGE", help="what to do, in quotes")
async def message(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    if not 0 < len(options.text) <= MAX_PROMPT_CHARACTERS:
        raise Invalid(f"A message has 1 to {MAX_PROMPT_CHARACTERS} characters.")
    await add_message(runtime.store, job.id, options.text, Metadata(actor=cli_actor()))
    what = "has the message" if job.status == "active" else "is active again"
    code = await _result(runtime, job.id, output, f"job {short_id(job.id)} {what}\n{_how_to_follow(job)}")
    await _tell_when_not_served(runtime)
    return code


@job.command(
    "cancel",
    does="stop a job",
    more="It ends as failed; its work is lost, except what it has pushed. A message continues it.",
    examples=["job cancel 0000beef"],
)
@_job_id
async def cancel(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    await cancel_job(runtime.store, job.id, Metadata(actor=cli_actor()))
    return await _result(runtime, job.id, output, f"job {short_id(job.id)} is cancelled")


@job.command(
    "retry",
    does="retry a job that failed",
    more="Its last instructions are carried out again, on the same branch. A job that waits goes on now.",
    examples=["job retry 0000beef"],
)
@_job_id
async def retry(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    await retry_job(runtime.store, job.id, Metadata(actor=cli_actor()))
    code = await _result(runtime, job.id, output, f"job {short_id(job.id)} is active\n{_how_to_follow(job)}")
    await _tell_when_not_served(runtime)
    return code


@job.command(
    "merge",
    does="merge the pull request of a job, where the service hosts it",
    more="The documentation's branch has the changes then, and is indexed again. On another code host, merge it there.",
    examples=["job merge 0000beef"],
)
@_job_id
async def merge(runtime: Runtime, options: Options, output: Output) -> int:
    return await _act(runtime, options, output, "merge", "merged")


@job.command(
    "close",
    does="close the pull request of a job without merging it, where the service hosts it",
    examples=["job close 0000beef"],
)
@_job_id
async def close(runtime: Runtime, options: Options, output: Output) -> int:
    return await _act(runtime, options, output, "close", "closed")


async def _act(runtime: Runtime, options: Options, output: Output, verb: Verb, done: str) -> int:
    job = await the_job(runtime, options.id, options.organization)
    project_id, number = await pull_request_of_job(runtime.views, job.id)
    number = require_hosted(await the_project(runtime, project_id), number)
    if verb == "merge":
        require_still(await job_changing_pull_request(runtime.views, project_id, number))
    act, at = runtime.hosted.merge if verb == "merge" else runtime.hosted.close, now()
    page = await act(project_id, number, await runtime.hosted.token(project_id, number), now=at)
    await record_closed(runtime.store, runtime.views, project_id, page, at, Metadata(actor=cli_actor()))
    return await _result(runtime, job.id, output, f"the pull request of job {short_id(job.id)} is {done}")


@job.command(
    "archive",
    does="archive a job: hide it from lists",
    more="Its status stays; lists show it only with archived jobs.",
    examples=["job archive 0000beef"],
)
@_job_id
async def archive(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    await archive_job(runtime.store, job.id, Metadata(actor=cli_actor()))
    return await _result(runtime, job.id, output, f"job {short_id(job.id)} is archived")


@job.command(
    "unarchive",
    does="unarchive a job: list it again",
    more="For a job that is not archived it does nothing.",
    examples=["job unarchive 0000beef"],
)
@_job_id
async def unarchive(runtime: Runtime, options: Options, output: Output) -> int:
    job = await the_job(runtime, options.id, options.organization)
    await unarchive_job(runtime.store, job.id, Metadata(actor=cli_actor()))
    return await _result(runtime, job.id, output, f"job {short_id(job.id)} is listed again")


async def the_job(runtime: Runtime, named: str, organization: str | None) -> JobView:
    """Return the job with this id, else the only one whose id has these characters, of an organization if named.

    Raises:
        NotFound: no job has them.
        Invalid: several jobs have them, or they are too few.
    """
    if job := await find_job(runtime.views, named, slots_of(runtime.settings.agent)):
        return job
    if len(named) < MIN_ID_PART:
        raise Invalid(f"A part of a job's id has at least {MIN_ID_PART} characters: {named!r}; see: docsmith job list")
    organization_id = None if organization is None else await the_organization(runtime, organization)
    found = await jobs_with_id_part(runtime.views, organization_id, named.lower(), limit=MAX_CANDIDATES + 1)
    if not found:
        raise NotFound(f"Job not found: {named}. See: docsmith job list")
    if len(found) > 1:
        candidates = found[:MAX_CANDIDATES] + ["…"] * (len(found) > MAX_CANDIDATES)
        raise Invalid(f"Several jobs have {named} in their id; give more of it: {', '.join(candidates)}")
    return await _found(runtime, found[0])


async def _found(runtime: Runtime, job_id: str) -> JobView:
    job = await find_job(runtime.views, job_id, slots_of(runtime.settings.agent))
    assert job is not None  # jobs stay
    return job


async def _result(runtime: Runtime, job_id: str, output: Output, text: str) -> int:
    await catch_up(runtime.views)
    output.result(await _found(runtime, job_id), text)
    return DONE


async def _follow(runtime: Runtime, created: JobView, output: Output) -> int:
    """With ``--json`` the document is printed at the job's end."""
    if created.status == "active":
        await _tell_when_not_served(runtime)
    shown = []
    async with aclosing(events_of(runtime.store, created, after=0)) as events:
        async for _, event in events:
            shown.append(public(event))
            output.line(_line(event))
    await catch_up(runtime.views)
    job = await _found(runtime, created.id)
    document = {
        "id": job.id, "status": job.status, "outcome": job.outcome, "message": job.message, "problems": job.problems,
        "prLink": job.pr_link, "events": shown,
    }  # fmt: skip
    output.result(document, "\n".join(["", *_outcome(job)]))
    return _exit_code(job)


def _line(event: JobEvent) -> str:
    return "  ".join(filter(None, (str(event.__struct_config__.tag), _work_detail(event) or _detail(event))))


def _detail(event: JobEvent) -> str:
    """Return what a line says of a job's state and of what people said; empty for other events."""
    match event:
        case JobWaiting():
            at = f"{event.next_try_at.astimezone(UTC):%H:%M:%S} UTC"
            return f"for {event.dependency}, tried again at {at}: {one_line(event.reason, 200)}"
        case MessageAdded(text=text, comment=comment):
            return one_line(f"{comment.author}: {text}" if comment else text, 100)
        case CommentIgnored(reason=reason, comment=comment):
            return f"{reason}{f'  {comment.author}  {comment.url}' if comment else ''}"
        case CommentAnswered(url=url, failure=failure):
            return failure or url
        case JobReopened(round=number) | RoundStarted(round=number):
            return f"round {number}"
        case JobCompleted(message=message):
            return one_line(message, 100)
        case JobFailed(message=message):
            return message
        case _:
            return ""


def _work_detail(event: JobEvent) -> str:
    """Return what a line says of a step of the work; empty for other events."""
    match event:
        case ModelReplied(text=text, tool_calls=calls):
            return "  ".join(filter(None, [" ".join(text.split())[:100], *(call.name for call in calls)]))
        case FileChanged(path=path, content=content):
            return f"{path}{' (deleted)' if content is None else ''}"
        case ContextsOpened(contexts=contexts):
            return ", ".join(f"@{one.name} {one.problem or f'{one.ref} at {one.commit[:12]}'}" for one in contexts)
        case PullRequestOpened(url=url) | PullRequestUpdated(url=url):
            return url
        case ModelReminded(reason=reason) | ReplyLost(reason=reason):
            return reason
        case PlanChanged(todos=todos):
            done = sum(todo.status == "completed" for todo in todos)
            return f"{done} of {len(todos)} done"
        case _:
            return ""
