"""The settings that a site's widget fetches when it is opened."""

from typing import Annotated

from aiohttp import web

from service.queries.payments import Answering, answering
from service.queries.sites import get_site
from service.views.fields import described
from service.views.sites import WidgetView
from service.web.api.description.operations import Answer, Routes
from service.web.http.access.access import CALLER, KEYLESS, site_for, site_not_found
from service.web.http.app_keys import COST_BOUNDS, MODELS, VIEWS
from service.web.http.problems import ACTOR, json_response
from service.web.http.site_addresses import published_address

CACHE_CONTROL = "private, max-age=60"

routes = Routes()


class WidgetSettingsView(WidgetView, frozen=True, rename="camel"):
    """How a site's widget presents itself, and the site that it asks."""

    site: Annotated[str, described("The site's domain.")]
    name: Annotated[str, described("The name of its project.")]
    base: Annotated[str, described("The address that relative links begin at; empty where it is not known.")]
    answered_by: Annotated[
        Answering,
        described("`model` where a language model writes the answers, `quotes` where they are passages, quoted."),
    ]
    reader_tokens: Annotated[bool, described("Whether calls with this key need a reader token.")]


@routes.operation(
    "GET",
    "/discovery/v1/widget/{domain}",
    "getWidgetSettings",
    "Assistant",
    "Get the settings of a site's widget",
    {
        200: Answer(
            "The settings; what is empty, the widget has words of its own for.",
            WidgetSettingsView,
            example={
                "title": "",
                "greeting": "",
                "suggestions": ["How do I start?"],
                "handOff": "mailto:help@example.com",
                "form": "side",
                "accent": "#0b6e4f",
                "site": "guide",
                "name": "Guide",
                "base": "",
                "answeredBy": "model",
                "readerTokens": True,
            },
        )
    },
    description="A key for browsers needs no reader token here.",
)
async def show_widget_settings(request: web.Request) -> web.Response:
    project = await site_for(request)
    site = await get_site(request.app[VIEWS], project.domain)
    if site is None:
        raise site_not_found()
    widget = site.view.widget
    answer = WidgetSettingsView(
        widget.title,
        widget.greeting,
        widget.suggestions,
        widget.hand_off,
        widget.form,
        widget.accent,
        site=project.domain,
        name=project.name,
        base=published_address(project),
        answered_by=await answering(
            request.app[MODELS], request.app[COST_BOUNDS](), is_public=request.get(ACTOR) == KEYLESS
        ),
        reader_tokens=CALLER in request and request[CALLER].state.requires_reader_token,
    )
    headers = {"Cache-Control": CACHE_CONTROL, "Vary": "Authorization"}
    return json_response(answer, headers=headers)
