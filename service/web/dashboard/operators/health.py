"""``/operator/health``: whether all parts of the service work, how far they are, and the disk."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from datetime import datetime

from aiohttp import web
from msgspec import Struct

from service import __version__
from service.integrity.log_place import log_place
from service.queries.installation import Disk, measure_disk, read_progress
from service.queries.model_failures import ModelFailing, find_failing_model
from service.web.dashboard.page import Live, dashboard_page, fragment_html, live
from service.web.http.access.people import operator
from service.web.http.app_keys import (
    BEHIND,
    DATA,
    HOSTED_FOLDER,
    INSTANCE,
    INSTANCES,
    LAST_CHECKPOINT,
    MODEL_NAMES,
    MODELS,
    READINESS,
    STORE,
    VIEWS,
)

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
    failing: ModelFailing | None
    """The assistant's model while it fails."""
    head: int
    lag: int


class Condition(Struct, frozen=True):
    """The disk of an installation, when its log was last signed, and the assistant's model while it fails."""

    disk: Disk
    checkpoint_at: datetime | None
    failing: ModelFailing | None

    @property
    def is_disk_low(self) -> bool:
        return self.disk.used_share > LOW_SHARE


async def read_condition(app: web.Application) -> Condition:
    """Return the condition of the installation, without what its parts take. Raises OSError."""
    usage, checkpoint, failing = await asyncio.gather(
        asyncio.to_thread(shutil.disk_usage, app[DATA]),
        app[LAST_CHECKPOINT].find(),
        find_failing_model(app[VIEWS], app[MODELS]),
    )
    return Condition(Disk(usage.free, usage.total, ()), None if checkpoint is None else checkpoint.time, failing)


@routes.get("/operator/health")
async def show_health(request: web.Request) -> web.Response:
    person = await operator(request)
    data = request.app[DATA]
    disk, checkpoint = await asyncio.gather(
        asyncio.to_thread(measure_disk, data, request.app[HOSTED_FOLDER]),
        request.app[LAST_CHECKPOINT].find(),
    )
    place = log_place(data)
    elsewhere = None if place.is_local else (place.name, await request.app[STORE].size())
    return dashboard_page(
        request,
        person,
        "operators/health.html",
        health=await _look(request),
        disk=disk,
        log_elsewhere=elsewhere,
        is_disk_low=disk.used_share > LOW_SHARE,
        checkpoint=checkpoint,
        version=__version__,
        data=str(data),
        instance=request.app[INSTANCE],
        others=[peer for peer in request.app[INSTANCES].others() if peer.url],
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
            yield Live(fragment_html(request, "operators/health_state.html", health=health))
        await asyncio.sleep(LOOK_SECONDS)


async def _look(request: web.Request) -> Health:
    app = request.app
    progress = await read_progress(app[STORE], app[VIEWS])
    behind, models = app[BEHIND](), app[MODEL_NAMES]
    failing = await find_failing_model(app[VIEWS], app[MODELS])
    return Health(await app[READINESS](), {**behind}, {**models}, failing, progress.head, progress.lag)
