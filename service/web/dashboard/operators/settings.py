"""``/operator/settings``: each setting in effect, with where it comes from, and the folders that were allowed here."""

import asyncio
from collections.abc import Mapping, Sequence

from aiohttp import web

from service.commands.allowed_folders import allowed_folders, disallow_folder
from service.runtime.settings.settings_shown import ShownSetting
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import metadata, operator
from service.web.http.app_keys import SHOWN_SETTINGS, STORE
from service.web.http.forms import read_form

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
        folders=await allowed_folders(request.app[STORE]),
    )


@routes.post("/operator/settings/folders/disallow")
async def take_folder_back(request: web.Request) -> web.Response:
    """Let no more projects be made of a folder that was allowed in a browser."""
    await operator(request)
    folder = (await read_form(request)).get("folder", "")
    await disallow_folder(request.app[STORE], folder, metadata(request))
    return see_other(request, "operator/settings", notice=f"No more projects are made of {folder}.")


def _by_section(lines: Sequence[ShownSetting]) -> Mapping[str, Sequence[ShownSetting]]:
    sections: dict[str, list[ShownSetting]] = {}
    for one in lines:
        sections.setdefault(one.name.rpartition(".")[0], []).append(one)
    return sections
