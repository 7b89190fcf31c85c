"""The work of a job: its steps with what was said, the files that it has changed, and its pull request."""

import asyncio
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from service.commands.jobs.pull_requests import Verb
from service.domain.errors import NotFound
from service.ports.code_host import ComparedChanges
from service.queries.jobs.job_requests import read_request
from service.queries.jobs.job_transcript import read_plan, read_transcript
from service.queries.jobs.jobs import ReadJob
from service.views.jobs.job_requests import JobRequestView
from service.views.jobs.job_work import ChangesView, JobStepsView, changes_view, steps_view
from service.views.projects import ProjectView
from service.web.api.description.operations import Answer, Parameter, Routes, cursor_parameter
from service.web.api.jobs.job_bodies import JOB_ANSWER
from service.web.api.jobs.jobs import job_response
from service.web.http.access.access import project_for
from service.web.http.app_keys import JOB_CHANGES, JOB_READER, STORE, VIEWS
from service.web.http.hosted import PAGE_TURNS, act_on_job
from service.web.http.problems import json_response, metadata_of
from service.web.http.query_params import number_cursor, whole_param

MAX_VERSION = 10**15
MAX_REQUESTS = 10**6
"""Limit for the number of a request; jobs make far fewer."""
STEPS_EXAMPLE = {
    "steps": [
        {
            "position": 41,
            "at": "2026-11-21T09:30:00.000Z",
            "name": "Job requested",
            "detail": "",
            "words": "Fix broken links",
            "isTool": False,
            "isError": False,
            "isSaid": True,
        },
        {
            "position": 45,
            "at": "2026-11-21T09:30:02.000Z",
            "name": "read_file",
            "detail": "install.md",
            "words": "# Install",
            "isTool": True,
            "isError": False,
            "isSaid": False,
        },
    ],
    "plan": [{"id": "1", "content": "Correct install.md", "status": "completed", "priority": "medium"}],
    "nextCursor": None,
}
CHANGES_EXAMPLE = {
    "files": [
        {
            "path": "install.md",
            "oldPath": "install.md",
            "kind": "changed",
            "added": 1,
            "removed": 1,
            "hunks": [
                {
                    "firstOld": 1,
                    "firstNew": 1,
                    "lines": [
                        {"side": "removed", "text": "Instal", "isCut": False, "endsFileWithoutNewline": False},
                        {"side": "added", "text": "Install", "isCut": False, "endsFileWithoutNewline": False},
                    ],
                }
            ],
            "isBinary": False,
            "isCut": False,
            "isTooLarge": False,
        }
    ],
    "isCut": False,
    "isReadable": True,
}

REQUEST_EXAMPLE = {
    "number": 2,
    "count": 2,
    "at": "2026-11-21T09:30:04.000Z",
    "model": "anthropic/claude-sonnet-4-5",
    "lost": "",
    "prompts": "3f2a9c0d41b7e8855a6c7d1e2f3a4b5c",
    "isRebuilt": True,
    "maxOutputTokens": 16384,
    "linesLeftOut": 0,
    "tools": [
        {
            "name": "read",
            "description": "Read a file, whole or a range of its lines.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        }
    ],
    "messages": [
        {
            "role": "system",
            "text": "You maintain the documentation of a software project.",
            "calls": [],
            "callId": None,
            "isError": False,
            "memoryBytes": 0,
        },
        {
            "role": "assistant",
            "text": "I read the page.",
            "calls": [{"id": "a1B2c3D4e", "name": "read", "arguments": '{"path": "install.md"}'}],
            "callId": None,
            "isError": False,
            "memoryBytes": 0,
        },
    ],
}

routes = Routes()


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/job/{id}/steps",
    "listJobSteps",
    "Agent",
    "List a job's steps",
    {200: Answer("The newest steps, the oldest of them first.", JobStepsView, example=STEPS_EXAMPLE)},
    description="What people said and what the agent did, with the words of each, up to the present. As long as"
    " `nextCursor` is not null there are earlier ones: send it back as `cursor`. `followJob` sends those to come.",
    parameters=(cursor_parameter(Annotated[str, Meta(pattern="^[1-9][0-9]{0,14}$")]),),
    errors={404: ("job_not_found",)},
)
async def show_steps(request: web.Request) -> web.Response:
    _, job = await _job(request)
    transcript = await read_transcript(
        request.app[STORE], job.view.id, before=number_cursor(request, least=1, most=MAX_VERSION - 1)
    )
    return json_response(steps_view(transcript, await read_plan(request.app[VIEWS], job.view.id)))


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/job/{id}/changes",
    "getJobChanges",
    "Agent",
    "Get a job's changes",
    {200: Answer("The files that it has changed so far.", ChangesView, example=CHANGES_EXAMPLE)},
    description="All rounds together, against the documentation that the job began from, on any code host.",
    errors={400: ("invalid_request",), 404: ("job_not_found",)},
)
async def show_changes(request: web.Request) -> web.Response:
    """Compare the files in a child process, in the project's turn: others wrote them."""
    project, job = await _job(request)
    async with request.app[PAGE_TURNS].slot(project.id):
        changes = await request.app[JOB_CHANGES](project, job.view.id)
    body = await asyncio.to_thread(_encoded, changes)
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "private, no-cache"})


def _encoded(changes: ComparedChanges) -> bytes:
    return msgspec.json.encode(changes_view(changes))


@routes.operation(
    "GET",
    "/v2/agent/{projectId}/job/{id}/request",
    "getJobRequest",
    "Agent",
    "Get a request to a job's model",
    {200: Answer("The request as it was sent.", JobRequestView, example=REQUEST_EXAMPLE)},
    description="What the model was sent for one of its replies: system prompt, tools and messages, rebuilt from the"
    " job's events. Lines of context repositories that are not public are left out, and a line in their place says so."
    " After an erasure of the job it is gone.",
    parameters=(
        Parameter(
            "number",
            "The number of the request, 1 to the `count` of an answer; the last one when not given.",
            Annotated[int, Meta(ge=1, le=MAX_REQUESTS)],
            example=1,
        ),
    ),
    errors={400: ("invalid_request",), 404: ("job_not_found", "request_not_found")},
)
async def show_request(request: web.Request) -> web.Response:
    _, job = await _job(request)
    number = whole_param(request, "number", 0, least=1, most=MAX_REQUESTS)
    asked = await read_request(request.app[STORE], job.view.id, lambda count: min(number or count, count))
    if number > asked.count > 0:
        raise NotFound(f"The job has made {asked.count} requests: {number} is none of them.", code="request_not_found")
    body = await asyncio.to_thread(msgspec.json.encode, asked)
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "private, no-cache"})


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/merge",
    "mergeJob",
    "Agent",
    "Merge a job's pull request",
    JOB_ANSWER,
    description="Merges the pull request of a project that the service hosts itself into the documentation's branch,"
    " which is then indexed again. Again does nothing. On another code host, merge it there.",
    errors={
        404: ("job_not_found",),
        409: ("no_pull_request", "another_code_host", "pull_request_closed", "merge_conflict", "pull_request_changing"),
    },
)
async def post_job_merge(request: web.Request) -> web.Response:
    return await _acted(request, "merge")


@routes.operation(
    "POST",
    "/v2/agent/{projectId}/job/{id}/close",
    "closeJob",
    "Agent",
    "Close a job's pull request",
    JOB_ANSWER,
    description="Closes the pull request of a project that the service hosts itself without merging it. Again does"
    " nothing. On another code host, close it there.",
    errors={404: ("job_not_found",), 409: ("no_pull_request", "another_code_host", "pull_request_merged")},
)
async def post_job_close(request: web.Request) -> web.Response:
    return await _acted(request, "close")


async def _acted(request: web.Request, verb: Verb) -> web.Response:
    project, job = await _job(request)
    await act_on_job(request, project, job, verb, metadata_of(request))
    return job_response(request, await request.app[JOB_READER].read_changed(project.id, job.view.id))


async def _job(request: web.Request) -> tuple[ProjectView, ReadJob]:
    project = await project_for(request)
    return project, await request.app[JOB_READER].read(project.id, request.match_info["id"])
