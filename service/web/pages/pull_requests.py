"""The embedded code host's pages: a pull request to read, discuss, merge or close. All of it works without a script; a
member's page has one that shows changes as they come.

Anyone who has the address may read: its token is the capability. An editor of the project's organization who is signed
in may act; by a setting everyone with the address may merge and close. A form that another site posts is refused.

The compared files were written by others, so they are read, and rendered as HTML, in child processes with limits; each
project has a share of these. Long files have pages of their own, which a browser loads when they are opened:
frames with ``loading=lazy`` in closed ``details``, so that the page stays without a script.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from service.commands.audit import record_page_read
from service.commands.jobs.pull_requests import Verb
from service.commands.jobs.reviews import comment_on_page
from service.domain.access.names import is_only_here
from service.domain.errors import Conflict, Invalid, NotFound, Unavailable
from service.domain.jobs.comments import CommentSource
from service.domain.jobs.decider import MAX_PROMPT_CHARACTERS
from service.ports.code_host import PullRequestPage
from service.queries.jobs.job_transcript import comments_of
from service.queries.jobs.jobs import jobs_of_pull_request
from service.runtime.processes import OUT_OF_MEMORY, TIMED_OUT, run_in_child
from service.runtime.system import new_id, now
from service.views.jobs.job_steps import JobSteps
from service.views.jobs.job_transcript import PageComment
from service.views.jobs.jobs import FoundByChecks
from service.web.http.access.hosts import service_address
from service.web.http.access.people import known_person, metadata
from service.web.http.app_keys import COUNT_BOUND, STORE, VIEWS
from service.web.http.connections.limits import metered_for_person
from service.web.http.forms import read_form
from service.web.http.hosted import (
    HOSTED,
    MAKING_BYTES,
    MAKING_SECONDS,
    PAGE_TURNS,
    PULL_REQUEST_CHANGING,
    PullRequestAddress,
    act_on_pull_request,
)
from service.web.pages.html import (
    SCRIPTED_HEADERS,
    SECURITY_HEADERS,
    asset,
    html_page,
    html_response,
    message_page,
    way_up,
)
from service.web.pages.pull_request_rights import actor_of, rights_of
from service.web.pages.pull_request_views import Made, Place, Rights, Talk, make_file, make_page, make_rendered

log = structlog.get_logger()

T = TypeVar("T")

PULL_REQUEST_CHECKS: web.AppKey[Callable[[str, int], Awaitable[FoundByChecks]]] = web.AppKey("PULL_REQUEST_CHECKS")
"""Returns what the checks see in a project's pull request, by its number."""

PULL_REQUEST_STEPS: web.AppKey[Callable[[str, int], Awaitable[JobSteps | None]]] = web.AppKey("PULL_REQUEST_STEPS")
"""The steps of the job behind a pull request of a project, by its number; None when no job made it."""

MAX_PATH = 1_000
LINE = r"[1-9][0-9]{0,6}"


FILES_WITHIN = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": SECURITY_HEADERS["Content-Security-Policy"] + "; frame-src 'self'",
}
LIVE_FILES_WITHIN = {
    **SCRIPTED_HEADERS,
    "Content-Security-Policy": SCRIPTED_HEADERS["Content-Security-Policy"] + "; frame-src 'self'",
}
"""For members, whose page loads scripts of ours: one keeps it up to date, one sends a form once."""
WITHIN_THE_PAGE = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": SECURITY_HEADERS["Content-Security-Policy"]
    .replace("form-action 'self'", "form-action 'none'")
    .replace("frame-ancestors 'none'", "frame-ancestors 'self'"),
    "X-Frame-Options": "SAMEORIGIN",
}
"""A file's page may be framed in the pull request's."""

PATH = r"/hosted/{project_id}/pulls/{number:\d{1,9}}-{token}"

routes = web.RouteTableDef()
routes.get("/assets/{name}")(asset)


@routes.get(PATH)
async def show(request: web.Request) -> web.Response:
    first = request.query.get("file", "1")
    number = int(first) if first.isascii() and first.isdigit() and len(first) < 7 else 1

    async def answer() -> web.Response:
        return await _shown(request, await request.app[HOSTED].page(*_address(request), first_file=max(number, 1)))

    return await _in_turn(request, answer)


ONE_FILE = r"{place:\d{1,6}}-{version:[0-9a-f]{0,40}-[0-9a-f]{1,40}}"


@routes.get(f"{PATH}/files/{ONE_FILE}")
async def show_file(request: web.Request) -> web.Response:
    """One file, on a page that stands within the pull request's."""

    async def answer() -> web.Response:
        place, version = int(request.match_info["place"]), request.match_info["version"]
        shown = await request.app[HOSTED].file(*_address(request), place=place, version=version)
        if shown.file.is_cut:
            request.app[COUNT_BOUND]("diff_lines")
        values = (shown, place, _place(request, "../../"), "alone" in request.query)
        return await _made(request, make_file, *values, headers=WITHIN_THE_PAGE)

    return await _within(request, answer)


@routes.get(f"{PATH}/rendered/{ONE_FILE}")
async def show_rendered(request: web.Request) -> web.Response:
    """One page of the documentation as its readers see it, before and after."""

    async def answer() -> web.Response:
        place, version = int(request.match_info["place"]), request.match_info["version"]
        shown = await request.app[HOSTED].texts(*_address(request), place=place, version=version)
        values = (shown, _place(request, "../../"), "alone" in request.query)
        return await _made(request, make_rendered, *values, headers=WITHIN_THE_PAGE)

    return await _within(request, answer)


@routes.get(PATH + "/job")
async def show_job(request: web.Request) -> web.Response:
    """The steps of the job that made it: names, times, tools and paths; no word of instructions, replies or files."""

    async def answer() -> web.Response:
        project_id, number, token = _address(request)
        job = await request.app[PULL_REQUEST_STEPS](project_id, number)
        if job is None:
            raise NotFound("The pull request has no job.")
        return html_page(request, "pull_request_job.html", job=job, number=number, name=f"{number}-{token}")

    return await _in_turn(request, answer)


async def _within(request: web.Request, answer: Callable[[], Awaitable[web.Response]]) -> web.Response:
    """Answer with a page that stands within the pull request's."""

    async def current() -> web.Response:
        try:
            return await answer()
        except Conflict:
            text = "The pull request has other commits by now. Load its page again."
            return message_page(request, status=409, title="It has changed", text=text, headers=WITHIN_THE_PAGE)

    return await _in_turn(request, current, headers=WITHIN_THE_PAGE)


@routes.post(PATH + "/merge")
async def merge(request: web.Request) -> web.Response:
    return await _decided(request, "merge")


@routes.post(PATH + "/comment")
async def comment(request: web.Request) -> web.Response:
    """Send a message to the job of the pull request, about one of its files or all of it."""
    refusal = await _admitted(request, partial(_comment_refusal, request))
    if refusal is not None:
        return refusal
    form = await read_form(request)
    line = form.get("line", "")
    path = form.get("path", "")[:MAX_PATH]
    if not form.get("text") or len(form["text"]) > MAX_PROMPT_CHARACTERS or (line and not re.fullmatch(LINE, line)):
        return message_page(
            request,
            status=400,
            title="Not sent",
            text=f"A comment has 1 to {MAX_PROMPT_CHARACTERS:,} characters, and its line is a number. Go back and"
            " correct it.",
        )
    where = (path, int(line)) if path and line else (path, None)
    return await _in_turn(request, partial(_commented, request, form["text"], form.get("form", ""), where))


@routes.post(PATH + "/resolve")
async def resolve(request: web.Request) -> web.Response:
    """Have the job merge the documentation's branch, or correct what the checks found."""
    refusal = await _admitted(request, partial(_comment_refusal, request))
    if refusal is not None:
        return refusal
    form = await read_form(request)

    async def answer() -> web.Response:
        page = await request.app[HOSTED].page(*_address(request))
        text = "Correct the errors that the checks found." if form.get("what") == "errors" else None
        return await _commented(request, text or f"Merge {page.pull_request.base}", form.get("form", ""), ("", None))

    return await _in_turn(request, answer)


async def _comment_refusal(request: web.Request) -> web.Response | None:
    """Return the answer to a reader who may not comment; looked at before the form is read."""
    rights = await rights_of(request, _address(request).project_id)
    return None if rights.may_comment else _not_allowed(request, rights)


async def _commented(request: web.Request, text: str, form: str, where: tuple[str, int | None]) -> web.Response:
    address = _address(request)
    rights = await rights_of(request, address.project_id)
    if not rights.may_comment:
        return _not_allowed(request, rights)
    sent = sha256(f"{form or new_id()}\n{where}\n{text}".encode()).hexdigest()[:32]
    path, line = where
    source = CommentSource(
        f"page-{sent}", now().isoformat(), rights.name, path=path, first_line=line, last_line=line,
        number=address.number,
    )  # fmt: skip
    store = metered_for_person(request, rights.organization_id, address.project_id)
    views, by = request.app[VIEWS], actor_of(request, rights)
    try:
        await comment_on_page(store, views, address.project_id, source, text, by)
    except Conflict as refusal:
        page = await request.app[HOSTED].page(*address)
        return await _shown(request, page, status=409, refusal=str(refusal))
    raise web.HTTPSeeOther(f"../{address.number}-{address.token}#comments", headers={"Cache-Control": "no-store"})


def _not_allowed(request: web.Request, rights: Rights) -> web.Response:
    text = "Your role in the organization of this project is too low: it takes an editor. Ask an owner."
    if not rights.is_signed_in:
        text = "This takes an editor of the organization who is signed in. Sign in, then open the pull request again."
    return message_page(request, status=403, title="Not allowed", text=text)


@routes.post(PATH + "/close")
async def close(request: web.Request) -> web.Response:
    return await _decided(request, "close")


async def _in_turn(
    request: web.Request,
    answer: Callable[[], Awaitable[web.Response]],
    *,
    headers: Mapping[str, str] = SECURITY_HEADERS,
) -> web.Response:
    """Answer a request with the capability when it is the project's turn; else with a page that says why not."""

    async def in_turn() -> web.Response:
        async with request.app[PAGE_TURNS].slot(_address(request).project_id):
            return await answer()

    return await _admitted(request, in_turn, headers=headers)


async def _admitted(
    request: web.Request, answer: Callable[[], Awaitable[T]], *, headers: Mapping[str, str] = SECURITY_HEADERS
) -> T | web.Response:
    """Answer a request with the capability that our own page sent; else with a page that says why not."""
    if request.method == "POST" and not _from_our_own_page(request):
        return message_page(
            request,
            status=403,
            title="Not from here",
            text="This was asked for by another site. Open the pull request itself and press the button there.",
        )
    try:
        await request.app[HOSTED].admit(*_address(request))
        return await answer()
    except NotFound:
        return message_page(
            request,
            status=404,
            title="Nothing here",
            text="There is no pull request at this address. Check that the link is whole, down to its last character.",
            headers=headers,
        )
    except (Unavailable, Invalid) as error:
        log.info("pull request page refused", code=error.code, reason=str(error))
        if error.code in (TIMED_OUT, OUT_OF_MEMORY):
            request.app[COUNT_BOUND]("page_work")
        return message_page(
            request,
            status=503,
            title="Not now",
            text="This takes too long, or too many requests are under way. Try again, or look at the branch with git.",
            headers={**headers, "Retry-After": "5"},
        )


async def _decided(request: web.Request, verb: Verb) -> web.Response:
    """The form is read before the project's turn: it may be long in coming."""
    refusal = await _admitted(request, partial(_decision_refusal, request))
    if refusal is not None:
        return refusal
    version = (await read_form(request)).get("version", "") if request.body_exists else ""
    return await _in_turn(request, partial(_act, request, verb, version))


async def _decision_refusal(request: web.Request) -> web.Response | None:
    """Return the answer to a reader who may not merge or close."""
    rights = await rights_of(request, _address(request).project_id)
    return None if rights.may_decide else _not_allowed(request, rights)


async def _act(request: web.Request, verb: Verb, version: str) -> web.Response:
    address = _address(request)
    rights = await rights_of(request, address.project_id)
    if not rights.may_decide:
        return _not_allowed(request, rights)
    try:
        await act_on_pull_request(request, address, verb, actor_of(request, rights), version=version)
    except Conflict as refusal:
        page = await request.app[HOSTED].page(*address)
        return await _shown(request, page, status=409, refusal=str(refusal))
    raise web.HTTPSeeOther(f"../{address.number}-{address.token}", headers={"Cache-Control": "no-store"})


def _address(request: web.Request) -> PullRequestAddress:
    parts = request.match_info
    return PullRequestAddress(parts["project_id"], int(parts["number"]), parts["token"])


def _from_our_own_page(request: web.Request) -> bool:
    """Browsers say where a form came from: in Sec-Fetch-Site over HTTPS and on localhost, else in Origin.

    The scheme is not compared: behind a proxy we do not know the outer one. A caller that sends neither is no browser,
    and has the token; it counts as one where it sends a session.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return known_person(request) is None if origin is None else urlsplit(origin).netloc == request.host


async def _shown(request: web.Request, page: PullRequestPage, *, status: int = 200, refusal: str = "") -> web.Response:
    if page.truncated:
        request.app[COUNT_BOUND]("diff_files")
    place = _place(request, "" if request.method in ("GET", "HEAD") else "../")
    project_id, number, token = _address(request)
    found = await request.app[PULL_REQUEST_CHECKS](project_id, number)
    rights = await rights_of(request, project_id)
    comments: list[PageComment] = []
    jobs: list[str] = []
    live, headers = "", FILES_WITHIN
    changing = await request.app[PULL_REQUEST_CHANGING](project_id, number)
    if rights.organization_id:
        live, headers = f"dashboard/{rights.organization_id}/pulls/{project_id}/{number}/live", LIVE_FILES_WITHIN
        await _record_read(request, rights, number)
        comments = await comments_of(request.app[STORE], request.app[VIEWS], project_id, number)
        jobs = await jobs_of_pull_request(request.app[VIEWS], project_id, number)
    path, job_id = f"/hosted/{project_id}/pulls/{number}-{token}", changing or (jobs[-1] if jobs else "")
    talk = Talk(rights, comments, new_id(), job_id, path, changing is not None, live)
    return await _made(request, make_page, page, place, refusal, found, talk, status=status, headers=headers)


async def _record_read(request: web.Request, rights: Rights, number: int) -> None:
    """Record that a member reads what others wrote to the job."""
    person = known_person(request)
    filters = {"organization": rights.organization_id, "project": _address(request).project_id, "number": str(number)}
    if person is not None:
        await record_page_read(request.app[STORE], person.session_id, "pull request", filters, metadata(request))


def _place(request: web.Request, actions: str) -> Place:
    parts = request.match_info
    name = f"{int(parts['number'])}-{parts['token']}"
    return Place(way_up(request), actions, name, is_only_here(service_address(request)))


async def _made(
    request: web.Request, make: Callable[..., Made], *values: object, headers: Mapping[str, str], status: int = 200
) -> web.Response:
    """Return the page that ``make`` renders from the values in a child process."""
    made = await run_in_child(make, *values, timeout_seconds=MAKING_SECONDS, memory_bytes=MAKING_BYTES)
    if made.unmarked:
        request.app[COUNT_BOUND]("diff_words", made.unmarked)
    return html_response(made.html, status=status, headers=headers)
