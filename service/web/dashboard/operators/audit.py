"""``/operator/audit``: the log of the installation, for operators. Each look is recorded."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import msgspec
from aiohttp import web

from eventstore import LogPlace, RecordedEvent
from service.commands.audit import record_page_read
from service.domain.errors import Conflict, Invalid, NotFound, Unavailable
from service.domain.texts.times import moment
from service.integrity.log_place import log_place
from service.queries.audit import CATEGORIES, Filter, event_at, event_page, pages
from service.queries.export_format import Line, encoded, heading
from service.runtime.system import new_id
from service.streams import JOBS
from service.web.dashboard.actors import actor_names
from service.web.dashboard.page import Live, dashboard_page, live, root_of_page, see_other
from service.web.http.access.people import SignedIn, metadata, operator
from service.web.http.app_keys import DATA, LOG_CHECK, REPRODUCER, SHARED_SECRETS, STORE
from service.web.http.forms import read_form
from service.web.http.problems import json_response
from service.web.http.query_params import bad_query, query_param, read_whole
from service.web.http.routes import VISIT
from service.web.pages.rendering import rendered
from service.workers.checkpointing import make_checkpoint
from service.workers.reproduction import Reproduced

PAGE_LENGTH = 50
FIELDS = ("stream", "category", "type", "actor", "request", "since", "until")
MAX_CHARACTERS = 300
MEDIA_TYPES = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}

routes = web.RouteTableDef()


@routes.get("/operator/audit")
async def show_events(request: web.Request) -> web.Response:
    person = await operator(request)
    fields = _fields(request)
    wanted, before = _filter(fields), _position(query_param(request, "before"))
    store = request.app[STORE]
    await _record(request, person, {name: value for name, value in fields.items() if value})
    page = await event_page(store, wanted, before=before, limit=PAGE_LENGTH)
    return dashboard_page(
        request,
        person,
        "operators/audit.html",
        page=page,
        fields=fields,
        given={name: value for name, value in fields.items() if value},
        before=before,
        categories=[("", "All"), *((name, name) for name in CATEGORIES)],
        head=await store.head(),
        name_of=await actor_names(request, None),
    )


@routes.get("/operator/audit/events/{position:[0-9]{1,18}}")
async def show_event(request: web.Request) -> web.Response:
    person = await operator(request)
    position = int(request.match_info["position"])
    await _record(request, person, {"position": str(position)})
    event = await event_at(request.app[STORE], position)
    if request.query.get("format") == "json":
        return json_response(event)
    text = msgspec.json.format(msgspec.json.encode(event), indent=2).decode()
    head = await request.app[STORE].head()
    return dashboard_page(
        request,
        person,
        "operators/audit_event.html",
        event=event,
        text=text,
        head=head,
        name_of=await actor_names(request, None),
    )


@routes.get("/operator/audit/verify")
async def show_check(request: web.Request) -> web.Response:
    person = await operator(request)
    state = request.app[LOG_CHECK].state
    return dashboard_page(request, person, "operators/audit_verify.html", check=state, form=new_id())


@routes.post("/operator/audit/verify")
async def start_check(request: web.Request) -> web.Response:
    person = await operator(request)
    head = str(await request.app[STORE].head())
    await _record(request, person, {"through": head}, page="audit verify")
    form = (await read_form(request)).get("form", "")[:MAX_CHARACTERS] if request.can_read_body else ""
    notice = "" if request.app[LOG_CHECK].start(form) else "A check had already been started. This is its result."
    return see_other(request, "operator/audit/verify", notice=notice)


@routes.get("/operator/audit/verify/live")
async def follow_check(request: web.Request) -> web.StreamResponse:
    await operator(request)
    states = request.app[LOG_CHECK].changes()
    root = root_of_page(request)
    fragments = (
        Live(rendered("operators/audit_check.html", root=root, check=state, form=new_id())) async for state in states
    )
    return await live(request, fragments)


@routes.post("/operator/audit/checkpoint")
async def download_checkpoint(request: web.Request) -> web.Response:
    """Sign the present state of the log, and send the checkpoint as a file to keep elsewhere."""
    person = await operator(request)
    head = str(await request.app[STORE].head())
    await _record(request, person, {"through": head}, page="audit checkpoint")
    made = await make_checkpoint(request.app[STORE], request.app[SHARED_SECRETS], request.app[DATA])
    if made is None:
        raise Conflict("The log is empty: there is nothing to sign.")
    name = f"docsmith-checkpoint-{made.position}.json"
    return json_response(made, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@routes.get("/operator/audit/export")
async def export(request: web.Request) -> web.StreamResponse:
    """Send the chosen events as a file, oldest first, in the lines of ``docsmith audit export``."""
    person = await operator(request)
    fields, kind = _fields(request), query_param(request, "format") or "jsonl"
    if kind not in MEDIA_TYPES:
        raise bad_query("format", "is jsonl or csv")
    wanted, personal, store = _filter(fields), query_param(request, "personal") == "true", request.app[STORE]
    through = await store.head()
    asked = {**fields, "format": kind, "personal": str(personal).lower(), "through": str(through)}
    await _record(request, person, asked, page="audit export")
    request[VISIT].is_stream = True
    name = f'attachment; filename="docsmith-events-{through}.{kind}"'
    response = web.StreamResponse(
        headers={"Content-Type": MEDIA_TYPES[kind], "Content-Disposition": name, "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    await response.write(heading(kind))
    async with aclosing(pages(store, wanted, through=through)) as found:
        async for events, _ in found:
            if events:
                log = log_place(request.app[DATA])
                await response.write(await asyncio.to_thread(_lines, log, events, kind, personal=personal))
    await response.write_eof()
    return response


def _lines(log: LogPlace, events: Sequence[RecordedEvent], kind: str, *, personal: bool) -> bytes:
    stored = log.stored_events([event.position for event in events])
    rows = zip(stored, events, strict=True)
    return b"".join(encoded(Line.of(row, event, personal=personal), kind) for row, event in rows)


@routes.get("/operator/audit/reproduce")
async def show_reproduce(request: web.Request) -> web.Response:
    return _reproduce_page(request, await operator(request), query_param(request, "job") or "")


@routes.post("/operator/audit/reproduce")
async def reproduce(request: web.Request) -> web.Response:
    person = await operator(request)
    job_id = (await read_form(request)).get("job", "").removeprefix(f"{JOBS.category}-")[:MAX_CHARACTERS]
    await _record(request, person, {"job": job_id}, page="audit reproduce")
    try:
        found = await request.app[REPRODUCER].reproduce(job_id)
    except (NotFound, Unavailable) as error:
        return _reproduce_page(request, person, job_id, error=str(error))
    return _reproduce_page(request, person, job_id, found)


def _reproduce_page(
    request: web.Request, person: SignedIn, job: str, found: Reproduced | None = None, *, error: str = ""
) -> web.Response:
    status = 400 if error else 200
    return dashboard_page(
        request, person, "operators/audit_reproduce.html", status=status, job=job, found=found, error=error
    )


async def _record(request: web.Request, person: SignedIn, filters: dict[str, str], *, page: str = "audit") -> None:
    await record_page_read(request.app[STORE], person.session_id, page, filters, metadata(request))


def _fields(request: web.Request) -> dict[str, str]:
    return {name: (query_param(request, name) or "").strip()[:MAX_CHARACTERS] for name in FIELDS}


def _filter(fields: dict[str, str]) -> Filter:
    """Return the filter of the fields. Raise Invalid for an invalid time."""
    try:
        since, until = (moment(fields[name]) if fields[name] else None for name in ("since", "until"))
    except ValueError as error:
        raise Invalid(str(error)) from None
    stream, category, kind, actor, cause = (fields[name] or None for name in FIELDS[:5])
    return Filter(stream, category, kind, actor, cause, since, until)


def _position(text: str | None) -> int | None:
    if text is None:
        return None
    position = read_whole(text, least=1, most=10**18) if text.isdigit() else None
    if position is None:
        raise bad_query("before", "is a position in the log")
    return position
