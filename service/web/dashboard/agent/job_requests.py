"""The requests to a job's model, one on a page, for those who may edit."""

import asyncio
from collections.abc import Iterator, Sequence

from aiohttp import web

from service.queries.jobs.job_requests import read_requests
from service.queries.jobs.jobs import ReadJob
from service.views.jobs.job_requests import NO_REQUEST, JobRequestView, SentMessageView, same_messages
from service.web.dashboard.agent.job import JOB_PATH, find_job
from service.web.dashboard.page import dashboard_page, record_read
from service.web.http.access.people import Member, member
from service.web.http.app_keys import STORE

MAX_MESSAGE_CHARACTERS, MAX_CHARACTERS = 40_000, 1_000_000
"""Limits for the text of a message, and of all messages, that a page shows."""
MAX_DIGITS = 6

routes = web.RouteTableDef()


@routes.get(JOB_PATH + "/requests")
async def show_requests(request: web.Request) -> web.Response:
    """Show the request of the query's ``number``, else the last one; of a number that there is not, the nearest."""
    viewer = await member(request, "editor")
    _, job = await find_job(request, viewer)
    await record_read(request, viewer, "job requests", {"job": job.view.id})
    text = request.query.get("number", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None

    def choose(count: int) -> list[int]:
        chosen = count if number is None else min(max(number, 1), count)
        return [chosen - 1, chosen]

    found = await read_requests(request.app[STORE], job.view.id, choose)
    return await asyncio.to_thread(_page, request, viewer, job, found)


def _page(request: web.Request, viewer: Member, job: ReadJob, found: Sequence[JobRequestView]) -> web.Response:
    asked, before = (found[-1], found[-2] if len(found) > 1 else None) if found else (NO_REQUEST, None)
    messages = list(_shown(asked))
    return dashboard_page(
        request,
        viewer,
        "agent/job_requests.html",
        job=job.view,
        asked=asked,
        same=same_messages(asked, before) if before is not None and before.is_rebuilt else 0,
        messages=messages,
        is_cut=any(cut for _, _, cut in messages),
    )


def _shown(asked: JobRequestView) -> Iterator[tuple[SentMessageView, str, int]]:
    """Yield the messages, each with the text to show, its calls below it, and how many characters that leaves out."""
    room = MAX_CHARACTERS
    for message in asked.messages:
        calls = (f"{call.id}: {call.name} {call.arguments}" for call in message.calls)
        whole = "\n".join(filter(None, (message.text, *calls)))
        text = whole[: min(room, MAX_MESSAGE_CHARACTERS)]
        room -= len(text)
        yield message, text, len(whole) - len(text)
