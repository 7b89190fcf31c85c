"""How well a site was read, and how well it is searched: its report, a search that explains, test questions."""

import asyncio
from collections.abc import Sequence

from aiohttp import web
from msgspec import Struct

from service.domain.errors import NotFound, ServiceError, Unavailable
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.ports.search_index import Section
from service.queries.evaluation import parse_questions
from service.queries.sites import Site
from service.retrieval.search.explained import explained
from service.retrieval.site.layout import GENERATORS
from service.views.sites import SiteReportView
from service.web.api.organization.site_checks import (
    MAX_GOLDEN,
    MAX_LANGUAGE_CHARACTERS,
    evaluated,
    explained_search,
)
from service.web.api.organization.sites import site_of
from service.web.dashboard.documentation.site_page import site_page
from service.web.dashboard.documentation.sites import SITE
from service.web.http.access.people import Member, member
from service.web.http.app_keys import SITE_REPORTS
from service.web.http.forms import read_form
from service.web.http.problems import status_of

FIRST, PAGE_FINDINGS = 5, 100
KINDS = {
    "same_address": ("Pages with the address of another", "Readers reach only one of them. Give one another address."),
    "missing_entry": ("Navigation entries without a page", "The navigation names pages that are not there."),
    "broken_link": ("Links that lead nowhere", "By the rules of the site, no page is there."),
    "missing_include": ("Includes that were not found", "These pages include a file that does not exist."),
    "leftover": ("Markup that was not read", "It may be a mistake in the page, or a component that is not known here."),
    "skipped": ("Files that are not used", "No answer uses them. The reason is beside each."),
    "not_in_navigation": ("Pages outside of the navigation", "Readers find them by search alone."),
}
"""Headings and explanations by kind of finding, mistakes first."""
GOLDEN_SAMPLE = '{"query": "How do I retry a job?", "relevant": ["guides/retries.md"]}'

routes = web.RouteTableDef()


class Result(Struct, frozen=True):
    section: Section
    why: str


@routes.get(SITE + "/report")
async def show_report(request: web.Request) -> web.Response:
    viewer = await member(request)
    site = await site_of(request, viewer.organization_id)
    report: SiteReportView | None = None
    problem = ""
    try:
        report = await request.app[SITE_REPORTS].report(site)
    except NotFound:
        pass
    except Unavailable as error:
        problem = str(error)
    only = request.query.get("only", "")
    return await site_page(
        request,
        viewer,
        "documentation/site_report.html",
        site,
        report=report,
        generators=GENERATORS,
        problem=problem,
        kinds=KINDS,
        only=only if only in KINDS else "",
        first=FIRST,
        start=_start(request),
        page_size=PAGE_FINDINGS,
    )


def _start(request: web.Request) -> int:
    text = request.query.get("cursor", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0


@routes.get(SITE + "/search")
async def show_search(request: web.Request) -> web.Response:
    viewer = await member(request)
    site = await site_of(request, viewer.organization_id)
    query, language = request.query.get("q", "").strip()[:MAX_QUESTION_CHARACTERS], request.query.get("language", "")
    results: Sequence[Result] = ()
    problem = ""
    if query:
        try:
            found = await explained_search(request, site.view, query, language[:MAX_LANGUAGE_CHARACTERS])
        except ServiceError as error:
            problem = str(error)
        else:
            results = [
                Result(section, explained(section.explanation)) for section in found.sections if section.explanation
            ]
    return await site_page(
        request,
        viewer,
        "documentation/site_search.html",
        site,
        query=query,
        language=language,
        results=results,
        problem=problem,
    )


@routes.get(SITE + "/golden")
async def show_golden(request: web.Request) -> web.Response:
    viewer = await member(request, "editor")
    return await _golden_page(request, viewer, await site_of(request, viewer.organization_id))


@routes.post(SITE + "/golden")
async def run_golden(request: web.Request) -> web.Response:
    """Ask the questions of the form; nothing of them is kept."""
    viewer = await member(request, "editor")
    site, text = await site_of(request, viewer.organization_id), (await read_form(request)).get("questions", "")
    try:
        questions = await asyncio.to_thread(parse_questions, text, "The text", most=MAX_GOLDEN)
        evaluation = await evaluated(request, site.view, questions)
    except ServiceError as error:
        return await _golden_page(request, viewer, site, text, error=error)
    return await _golden_page(request, viewer, site, text, evaluation=evaluation)


async def _golden_page(
    request: web.Request,
    viewer: Member,
    site: Site,
    text: str = "",
    *,
    evaluation: object = None,
    error: ServiceError | None = None,
) -> web.Response:
    return await site_page(
        request,
        viewer,
        "documentation/site_golden.html",
        site,
        status=status_of(error) if error is not None else 200,
        text=text,
        evaluation=evaluation,
        problem=str(error) if error is not None else "",
        sample=GOLDEN_SAMPLE,
        most=MAX_GOLDEN,
    )
