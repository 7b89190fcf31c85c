"""Models that a job may name."""

from aiohttp import web

from service.views.models import ModelsView
from service.web.api.description.operations import Answer, Routes
from service.web.http.access.access import admin_key
from service.web.http.app_keys import KNOWN_MODELS, MODEL_NAMES, MODELS
from service.web.http.problems import json_response

MODELS_EXAMPLE = {
    "agent": "anthropic/claude-sonnet-4-5",
    "aliases": ["sonnet", "opus"],
    "refused": {"opus": ["temperature"]},
}

routes = Routes()


@routes.operation(
    "GET",
    "/v2/models",
    "listModels",
    "Organization",
    "List the models of jobs",
    {200: Answer("Their names.", ModelsView, example=MODELS_EXAMPLE)},
)
async def show_models(request: web.Request) -> web.Response:
    await admin_key(request)
    names = tuple(one.name for one in request.app[KNOWN_MODELS]())
    refused = {alias: tuple(parts) for alias, parts in (await request.app[MODELS].refused()).items()}
    return json_response(ModelsView(request.app[MODEL_NAMES]["agent"], names, refused))
