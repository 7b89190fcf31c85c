"""``docsmith site``: which sites may be asked without a key, who pays for it, and how their widgets look."""

from collections.abc import Mapping

import click
from msgspec import to_builtins

from eventstore import Metadata
from service.cli.output import DONE, Output, note, table
from service.cli.parsing import Choice, Group, Options
from service.cli.runtime import Runtime
from service.cli.sites import no_site, restricted_pages
from service.commands.sites import update_site as change_site
from service.domain.access.callers import completed_origins
from service.domain.errors import Invalid
from service.domain.sites import ChangeSiteAccess
from service.domain.widget import FORMS, WidgetChange
from service.queries.payments import payment_of, remedy_of, settings_to_paste
from service.queries.public_access import PublicSite, access_lines
from service.queries.read_models import catch_up
from service.queries.sites import get_site, list_sites, spent_on
from service.runtime.settings.settings import Settings
from service.runtime.system import cli_actor, now
from service.views.sites import PaymentView, SiteView, WidgetView

site = Group("site")


@site.command(
    "update",
    does="open a site to everyone, or close it again; change its widget",
    more="A public site's assistant, search and pages answer without a key. The widget reads its settings when it is"
    " opened; an empty value brings back its own. Changes take effect at once, in a running service, too.",
    examples=[
        "site update guide --public --origin https://docs.example.com",
        "site update guide --origin https://docs.example.com --origin 'https://*.preview.example.com'",
        "site update guide --private",
        "site update guide --hand-off help@example.com --suggestion 'How do I start?' --accent '#0b6e4f'",
    ],
    at_most_one=[("public", "private"), ("origin", "no_origins"), ("suggestion", "no_suggestions")],
)
@click.argument("domain", metavar="SITE", help="name of the site, as docsmith project list shows it")
@click.option("--public", is_flag=True, help="answer everyone, without a key")
@click.option("--private", is_flag=True, help="answer with an assistant key alone, as at the start")
@click.option(
    "--origin",
    multiple=True,
    metavar="ORIGIN",
    help="a website whose pages may ask without a key, instead of those so far; repeatable",
)
@click.option("--no-origins", is_flag=True, help="no website from now on: programs alone")
@click.option("--title", metavar="TEXT", help="the heading of the widget")
@click.option("--greeting", metavar="TEXT", help="the widget's first words")
@click.option(
    "--suggestion",
    multiple=True,
    metavar="TEXT",
    help="a question that the widget offers, instead of those so far; repeatable",
)
@click.option("--no-suggestions", is_flag=True, help="offer no question from now on")
@click.option(
    "--hand-off",
    metavar="ADDRESS",
    help="a link or mail address where the widget's readers get more help; {threadId} in a link is the conversation",
)
@click.option("--form", type=Choice(FORMS), help="how the widget opens where a page's tag does not choose")
@click.option("--accent", metavar="COLOR", help="the widget's colour, such as #0b6e4f")
async def update_site(runtime: Runtime, options: Options, output: Output) -> int:
    before = await _the_site(runtime, options.domain)
    payment = await payment_of(runtime.models, runtime.settings.cost_bounds)
    if options.public and payment.problem:
        if not output.as_json:
            note(f"Add these lines to the settings, and start the service again:\n\n{settings_to_paste(payment)}\n")
        raise Invalid(f"{options.domain} stays private. {payment.problem} {remedy_of(payment)}")
    change = ChangeSiteAccess(
        now(),
        public=True if options.public else False if options.private else None,
        origins=() if options.no_origins else tuple(options.origin) or None,
    )
    widget = WidgetChange(
        options.title,
        options.greeting,
        suggestions=() if options.no_suggestions else tuple(options.suggestion) or None,
        hand_off=options.hand_off,
        form=options.form,
        accent=options.accent,
    )
    await change_site(runtime.store, options.domain, change, widget, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    if completed := completed_origins(options.origin):
        note(completed)
    after = await _the_site(runtime, options.domain)
    said = "" if after != before else "Nothing changed: these settings are in effect already.\n"
    await _show(runtime, after, payment, output, said)
    return DONE


@site.command("show", does="show a site, and who may ask it")
@click.argument("domain", metavar="SITE", help="name of the site, as docsmith project list shows it")
async def show_site(runtime: Runtime, options: Options, output: Output) -> int:
    view = await _the_site(runtime, options.domain)
    payment = await payment_of(runtime.models, runtime.settings.cost_bounds)
    await _show(runtime, view, payment, output, "")
    return DONE


@site.command("list", does="list the sites, and which are public")
async def list_sites_(runtime: Runtime, _options: Options, output: Output) -> int:
    sites = [one.view for one in await list_sites(runtime.views)]
    cells = [
        (one.domain, "public" if one.public else "private", ", ".join(one.origins) or "-", f"{one.pages:,}")
        for one in sites
    ]
    output.result({"sites": sites}, table(("SITE", "ACCESS", "ORIGINS", "PAGES"), cells))
    return DONE


async def _the_site(runtime: Runtime, domain: str) -> SiteView:
    found = await get_site(runtime.views, domain)
    if found is None:
        raise no_site(domain)
    return found.view


async def _show(runtime: Runtime, view: SiteView, payment: PaymentView, output: Output, said: str) -> None:
    restricted = await restricted_pages(runtime, view.domain)
    spent = (await spent_on(runtime.store, view.domain, now())).usd
    values = {"restrictedPages": restricted, "payment": payment, "spentTodayUsd": spent}
    lines = {
        **_lines(view, restricted, payment, runtime.settings),
        **({"today": f"{spent:.4f} USD"} if spent else {}),
        **_widget_lines(view.widget),
    }
    width = max(map(len, lines))
    text = "\n".join(f"{name.ljust(width)}  {value}" for name, value in lines.items())
    output.result({**to_builtins(view), **values}, said + text)


def _lines(view: SiteView, restricted: int, payment: PaymentView, settings: Settings) -> Mapping[str, str]:
    if not view.public:
        return {
            "domain": view.domain,
            "access": "private: with an assistant key alone",
            "origins": ", ".join(view.origins) or "-",
        }
    site = PublicSite(view.domain, view.origins, view.pages if view.commit else None, restricted)
    return {"domain": view.domain, **access_lines(site, payment, settings.limits)}


def _widget_lines(widget: WidgetView) -> Mapping[str, str]:
    """Return the widget's settings that are not its own, by the names of their options."""
    chosen = {
        "title": widget.title,
        "greeting": widget.greeting,
        "suggestions": " | ".join(widget.suggestions),
        "hand-off": widget.hand_off,
        "form": "" if widget.form == FORMS[0] else widget.form,
        "accent": widget.accent,
    }
    return {name: value for name, value in chosen.items() if value}
