"""``/operator/settings``: each setting in effect, with where it comes from."""

import asyncio
from collections.abc import Mapping, Sequence

from aiohttp import web

from service.runtime.settings.settings_shown import ShownSetting
from service.web.dashboard.page import dashboard_page
from service.web.http.access.people import operator
from service.web.http.app_keys import SHOWN_SETTINGS

routes = web.RouteTableDef()


@routes.get("/operator/settings")
async def show_settings(request: web.Request) -> web.Response:
    person = await operator(request)
    lines, problems = await asyncio.to_thread(request.app[SHOWN_SETTINGS].read)
    only_changed = "changed" in request.query
    shown = [one for one in lines if one.pending or not (only_changed and one.is_default)]
    return dashboard_page(
        request,
        person,
        "operators/settings.html",
        sections=_by_section(shown),
        problems=problems,
        only_changed=only_changed,
        pending=sum(bool(one.pending) for one in lines),
        changed=sum(not one.is_default for one in lines),
    )


def _by_section(lines: Sequence[ShownSetting]) -> Mapping[str, Sequence[ShownSetting]]:
    sections: dict[str, list[ShownSetting]] = {}
    for one in lines:
        sections.setdefault(one.name.rpartition(".")[0], []).append(one)
    return sections
