"""``/operator/models``: the models that jobs and answers may use, with what works; add one, try it, choose it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from aiohttp import web
from msgspec import Struct

from service.commands.models import add_model, choose_model, profile_of, remove_model, request_trial
from service.domain.errors import Conflict, Invalid
from service.domain.model_profiles import WORKS, Work
from service.ports.model_provider import ModelProvider
from service.queries.models import read_profiles
from service.views.model_profiles import ModelView, view_models
from service.web.dashboard.page import Live, dashboard_page, fragment_html, live, root_of_page, see_other
from service.web.http.access.people import SignedIn, metadata, operator
from service.web.http.app_keys import KNOWN_MODELS, MODEL_NAMES, MODEL_PROVIDERS, SECRETS, STORE
from service.web.http.forms import SMALL_FORM_BYTES, read_form

LOOK_SECONDS = 1.0
"""Between two looks while a model is tried."""
NUMBERS = ("context_tokens", "max_output_tokens", "input_usd_per_million_tokens", "output_usd_per_million_tokens")

routes = web.RouteTableDef()


class Shown(Struct, frozen=True):
    """The models as the page shows them."""

    models: Sequence[ModelView]
    in_use: Mapping[str, str]
    """The full name of the model of each kind of work."""
    waiting: tuple[str, ...] = ()
    """Names of those that are being tried."""


async def _look(request: web.Request) -> Shown:
    profiles = await read_profiles(request.app[STORE])
    views = view_models(request.app[KNOWN_MODELS](), profiles)
    waiting = tuple(one.profile.name for one in profiles.models if one.tried_at is None)
    return Shown(views, request.app[MODEL_NAMES].copy(), waiting)


@routes.get("/operator/models")
async def show_models(request: web.Request) -> web.Response:
    person = await operator(request)
    return dashboard_page(request, person, "operators/models.html", shown=await _look(request))


@routes.get("/operator/models/live")
async def follow_models(request: web.Request) -> web.StreamResponse:
    await operator(request)
    return await live(request, _changes(request))


async def _changes(request: web.Request) -> AsyncIterator[Live]:
    """Yield the list now and again when it is another, until each model was tried."""
    before = None
    while True:
        shown = await _look(request)
        if shown != before:
            before = shown
            yield Live(fragment_html(request, "operators/models_list.html", shown=shown, root=root_of_page(request)))
        if not shown.waiting:
            return
        await asyncio.sleep(LOOK_SECONDS)


@routes.get("/operator/models/new")
async def show_form(request: web.Request) -> web.Response:
    person = await operator(request)
    provider = _provider(request, request.query.get("provider", ""))
    if provider is None:
        return dashboard_page(request, person, "operators/model_providers.html", providers=request.app[MODEL_PROVIDERS])
    values = {"key_env": provider.api_key_env, "context_tokens": str(provider.context_tokens or "")}
    return _form(request, person, provider, values)


@routes.post("/operator/models")
async def add(request: web.Request) -> web.Response:
    """Record a model, which the service then tries. A key that is typed goes to the vault, and into no page."""
    person = await operator(request)
    form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
    provider = _provider(request, form.get("provider", ""))
    if provider is None:
        raise Invalid("The provider is not known. Open the page again, and choose one.")
    key = form.get("key", "")
    try:
        values = {
            "api_base": form.get("address", ""),
            "api_key_env": "" if key else form.get("key_env", ""),
            **{name: _number(form[name], name) for name in NUMBERS if form.get(name)},
            **{one.name: form.get(one.name, "") for one in provider.parameters},
        }
        profile = profile_of(provider, form.get("name", ""), form.get("model", ""), values)
        await add_model(request.app[STORE], request.app[SECRETS], profile, metadata(request), key=key)
    except (Invalid, Conflict) as error:
        return _form(request, person, provider, {name: form[name] for name in form if name != "key"}, error=str(error))
    return see_other(request, "operator/models", notice=f"{profile.name} is added. It is being tried now.")


@routes.post("/operator/models/try")
async def try_again(request: web.Request) -> web.Response:
    name = await _named(request)
    await request_trial(request.app[STORE], name, metadata(request))
    return see_other(request, "operator/models", notice=f"{name} is being tried.")


@routes.post("/operator/models/choose")
async def choose(request: web.Request) -> web.Response:
    """Have a model do a kind of work, where the settings name none for it."""
    await operator(request)
    form = await read_form(request, max_bytes=SMALL_FORM_BYTES)
    name, work = form.get("name", ""), _work(form.get("work", ""))
    await choose_model(request.app[STORE], work, name, metadata(request))
    what = {"agent": "jobs", "assistant": "answers"}[work]
    return see_other(request, "operator/models", notice=f"{name} is chosen for {what}.")


@routes.post("/operator/models/remove")
async def remove(request: web.Request) -> web.Response:
    name = await _named(request)
    await remove_model(request.app[STORE], request.app[SECRETS], name, metadata(request))
    return see_other(request, "operator/models", notice=f"{name} is removed, and its key forgotten.")


async def _named(request: web.Request) -> str:
    await operator(request)
    return (await read_form(request, max_bytes=SMALL_FORM_BYTES)).get("name", "")


def _form(
    request: web.Request, person: SignedIn, provider: ModelProvider, values: Mapping[str, str], *, error: str = ""
) -> web.Response:
    fields = ("name", "model", "address", "key_env", *NUMBERS, *(one.name for one in provider.parameters))
    return dashboard_page(
        request,
        person,
        "operators/model_new.html",
        status=400 if error else 200,
        provider=provider,
        values={**dict.fromkeys(fields, ""), **values},
        error=error,
    )


def _provider(request: web.Request, name: str) -> ModelProvider | None:
    return next((one for one in request.app[MODEL_PROVIDERS] if one.id == name), None)


def _work(text: str) -> Work:
    for work in WORKS:
        if text == work:
            return work
    raise Invalid("Choose what the model is for.")


def _number(text: str, name: str) -> float | int:
    try:
        return float(text) if "usd" in name else int(text)
    except ValueError:
        raise Invalid(f"{text!r} is not a number.") from None
