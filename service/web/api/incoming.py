"""Webhooks from code hosts: pushes to the branch that a project's site shows, outcomes of pull requests, comments."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from aiohttp import web

from service.commands.incoming import record_comment_report, record_push
from service.commands.jobs.jobs import close_pull_request
from service.domain.errors import NotFound
from service.domain.hooks.incoming import (
    CommentedThere,
    Ping,
    PullRequestClosedThere,
    Push,
    Told,
    is_authentic,
    read_told,
)
from service.domain.hooks.webhooks import SECRET_BYTES, make_secret
from service.domain.jobs.decider import ClosePullRequest
from service.markup.mentions import names
from service.queries.incoming import project_with_secret
from service.runtime.system import now
from service.views.projects import ProjectView
from service.web.http.app_keys import MENTION, STORE, VIEWS
from service.web.http.problems import ACTOR, json_response, metadata_of, read_bytes

routes = web.RouteTableDef()

NO_SECRET = make_secret(bytes(SECRET_BYTES))
"""What is checked for projects without one, so that they answer no sooner than others."""
LARGE_BODY_BYTES = 64 * 1024
"""From here on, checking and reading a body takes long enough to do it on a thread."""


@routes.post("/hooks/{projectId}")
async def receive(request: web.Request) -> web.Response:
    """202 when something was set off (or had been, by the same delivery), 204 when nothing was to do, 200 to a ping."""
    body = await read_bytes(request)
    project_id = request.match_info["projectId"]
    project, secret = await project_with_secret(request.app[STORE], request.app[VIEWS], project_id)
    is_form = request.content_type == "application/x-www-form-urlencoded"
    work = partial(_told, request.headers, body, secret, now(), is_form=is_form)
    told = await asyncio.to_thread(work) if len(body) > LARGE_BODY_BYTES else work()
    if project is None:
        raise _no_such_hook()
    request[ACTOR] = f"hook:{project.id}"
    return await _act(request, project, told)


def _told(headers: Mapping[str, str], body: bytes, secret: str | None, at: datetime, *, is_form: bool) -> Told:
    if not is_authentic(headers, body, secret or NO_SECRET, at) or secret is None:
        raise _no_such_hook()
    return read_told(headers, body, is_form=is_form)


def _no_such_hook() -> NotFound:
    return NotFound("Hook not found, or the request is not signed with its secret.", code="hook_not_found")


async def _act(request: web.Request, project: ProjectView, told: Told) -> web.Response:
    match told:
        case Ping():
            return json_response({"status": "pong"})
        case Push() as push if push.ref == f"refs/heads/{project.ref}":
            await record_push(request.app[STORE], project.id, project.domain, push, metadata_of(request))
            return json_response({"status": "accepted"}, status=202)
        case PullRequestClosedThere() as closed if closed.host == project.code_host:
            close = ClosePullRequest(closed.outcome, now(), closed.merge_commit)
            store, views = request.app[STORE], request.app[VIEWS]
            await close_pull_request(store, views, project.id, closed.number, close, metadata_of(request))
            return json_response({"status": "accepted"}, status=202)
        case CommentedThere() as commented if commented.host == project.code_host and _concerns(request, commented):
            await record_comment_report(request.app[STORE], project.id, commented, metadata_of(request))
            return json_response({"status": "accepted"}, status=202)
        case _:
            return web.Response(status=204)


def _concerns(request: web.Request, commented: CommentedThere) -> bool:
    """Return whether a comment may address the agent, as far as the report has its text."""
    name = request.app[MENTION]
    return bool(name) and (commented.text is None or names(commented.text, name))
