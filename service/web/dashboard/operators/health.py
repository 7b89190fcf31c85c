"""``/operator/health``: whether all parts of the service work, how far they are, and the disk."""

import asyncio
import time
from collections.abc import AsyncIterator

from aiohttp import web
from msgspec import Struct

from service import __version__
from service.integrity.checkpoints import CHECKPOINTS, last_checkpoint
from service.queries.installation import measure_disk, read_progress
from service.web.dashboard.page import Live, dashboard_page, fragment_html, live
from service.web.http.app_keys import BEHIND, DATA, MODEL_NAMES, READINESS, STORE, VIEWS
from service.web.http.people import operator

LOOK_SECONDS = 2.0
"""Between two looks for an open page."""
LOW_SHARE = 0.9
"""A disk of which more is used is shown as nearly full."""
STARTED = time.monotonic()

routes = web.RouteTableDef()


class Health(Struct, frozen=True):
    """How the service does now."""

    reasons: dict[str, str]
    """The parts that are not ready, and why."""
    behind: dict[str, str]
    """Sites whose index is older than it should be, and why."""
    models: dict[str, str]
    head: int
    lag: int


@routes.get("/operator/health")
async def show_health(request: web.Request) -> web.Response:
    person = await operator(request)
    data = request.app[DATA]
    disk, checkpoint = await asyncio.gather(
        asyncio.to_thread(measure_disk, data), asyncio.to_thread(last_checkpoint, data / CHECKPOINTS)
    )
    return dashboard_page(
        request,
        person,
        "health.html",
        health=await _look(request),
        disk=disk,
        is_disk_low=disk.used_share > LOW_SHARE,
        checkpoint=checkpoint,
        version=__version__,
        data=str(data),
        uptime_seconds=time.monotonic() - STARTED,
    )


@routes.get("/operator/health/live")
async def follow_health(request: web.Request) -> web.StreamResponse:
    await operator(request)
    return await live(request, _changes(request))


async def _changes(request: web.Request) -> AsyncIterator[Live]:
    """Yield the state now, and again when it is another."""
    shown = None
    while True:
        health = await _look(request)
        if health != shown:
            shown = health
            yield Live(fragment_html(request, "health_state.html", health=health))
        await asyncio.sleep(LOOK_SECONDS)


async def _look(request: web.Request) -> Health:
    app = request.app
    progress = await read_progress(app[STORE], app[VIEWS])
    behind, models = app[BEHIND](), app[MODEL_NAMES]
    return Health(await app[READINESS](), {**behind}, {**models}, progress.head, progress.lag)
