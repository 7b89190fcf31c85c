"""How well a site is searched: a search that explains, and test questions. The dashboard's pages show the same."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct

from service.domain.errors import Invalid, Unavailable
from service.domain.search import SearchFilter
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.ports.bounds import CountBound
from service.ports.search_index import SearchResult
from service.queries.evaluation import Evaluation, Question, evaluate_site, problem_of
from service.runtime.shares import Shares
from service.views.evaluation import EvaluationView
from service.views.fields import described
from service.views.search import ExplainedResults, explained_result
from service.views.sites import SiteView
from service.web.api.description.operations import Answer, Parameter, Routes
from service.web.api.organization.sites import site_of
from service.web.api.search import SEARCH_EXAMPLE
from service.web.http.access.access import admin_key
from service.web.http.app_keys import INDEX, MODELS
from service.web.http.problems import json_response, read_body
from service.web.http.query_params import bad_query, query_param
from service.web.http.schemas import NOT_BLANK
from service.workers.judged_answers import answers_with

RESULTS = 10
MAX_LANGUAGE_CHARACTERS = 35
MAX_QUERY_CHARACTERS = 500
"""In an address: each may take twelve bytes of it."""
MAX_GOLDEN, GOLDEN_SECONDS, WAIT_SECONDS = 200, 60.0, 20.0

EXPLAINED_EXAMPLE = {
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "results": [
        {
            **SEARCH_EXAMPLE[0],
            "explanation": {
                "points": 21.4,
                "title": 6.1,
                "links": 0.0,
                "text": 4.2,
                "heading": 5.0,
                "body": 6.1,
                "furtherSections": 0.0,
                "pairs": 0.0,
                "place": 1.0,
                "wordRank": 1,
                "meaningRank": 0,
                "language": "en",
                "siteLanguage": "",
                "readerLanguage": "",
                "copies": 0,
                "words": ["retry", "job"],
                "corrected": {},
            },
        }
    ],
}
EVALUATION_EXAMPLE = {
    "domain": "guide",
    "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "questions": 3,
    "plain": 1,
    "answered": 1,
    "recallAt5": 0.5,
    "hitAt5": 0.5,
    "mrr": 0.5,
    "ndcgAt10": 0.5,
    "misses": [{"query": "How do I pay?", "wanted": ["billing.md"], "found": ["install.md"]}],
}


class Trials(Struct, frozen=True):
    """Shares of the searches that try a site. They run on the threads of readers' searches, and take one at most."""

    searches: Shares
    golden: Shares
    """Lists of test questions under way, each of which searches in turn with all others."""


TRIALS: web.AppKey[Trials] = web.AppKey("TRIALS")


def trials(count_bound: CountBound) -> Trials:
    refused = partial(count_bound, "trial_searches")
    return Trials(
        Shares(1, (1,), waiting=6, seconds=WAIT_SECONDS, on_refused=refused),
        Shares(8, (1,), waiting=4, seconds=GOLDEN_SECONDS, on_refused=refused),
    )


Text = Annotated[str, Meta(max_length=MAX_QUESTION_CHARACTERS)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=100)]


class GoldenQuestionBody(Struct):
    """A question, and the pages or the facts that it wants; a plain one wants an answer of the builtin assistant."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_QUESTION_CHARACTERS,
            description="Words, or a question.",
            extra_json_schema=NOT_BLANK,
        ),
    ]
    relevant: Annotated[Texts, described("Pages by their path in the repository or on the site.")] = ()
    facts: Annotated[Texts, described("Texts that the passages found must contain, in any case and spacing.")] = ()


class GoldenBody(Struct):
    """Test questions. Nothing of them is kept."""

    questions: Annotated[
        tuple[GoldenQuestionBody, ...],
        Meta(min_length=1, max_length=MAX_GOLDEN, description=f"The questions, at most {MAX_GOLDEN}."),
    ]


routes = Routes()


@routes.operation(
    "GET",
    "/v2/sites/{domain}/search",
    "explainSearch",
    "Projects",
    "Explain a search",
    {200: Answer(f"Up to {RESULTS} sections, each with its points.", ExplainedResults, example=EXPLAINED_EXAMPLE)},
    description="The search of the assistant, with what gave each section its place.",
    parameters=(
        Parameter(
            "query",
            "Words, or a question.",
            Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARACTERS, extra_json_schema=NOT_BLANK)],
            required=True,
            example="retry a job",
        ),
        Parameter(
            "language",
            "The reader's language, such as `de`: pages that the site has for other languages are left out.",
            Annotated[str, Meta(max_length=MAX_LANGUAGE_CHARACTERS)],
            example="en",
        ),
    ),
    errors={404: ("not_indexed",)},
)
async def explain_search(request: web.Request) -> web.Response:
    site = await site_of(request, (await admin_key(request)).state.organization_id)
    query, language = query_param(request, "query") or "", query_param(request, "language") or ""
    if not query.strip() or len(query) > MAX_QUERY_CHARACTERS:
        raise bad_query("query", f"has 1 to {MAX_QUERY_CHARACTERS} characters, and is not blank")
    if len(language) > MAX_LANGUAGE_CHARACTERS:
        raise bad_query("language", f"has at most {MAX_LANGUAGE_CHARACTERS} characters")
    found = await explained_search(request, site.view, query, language)
    results = tuple(explained_result(one, found.commit) for one in found.sections if one.explanation is not None)
    return json_response(ExplainedResults(found.commit, results))


async def explained_search(request: web.Request, site: SiteView, query: str, language: str) -> SearchResult:
    """Search a site in its organization's turn, with what gave each section its place. Raises as ``SearchIndex``."""
    only = SearchFilter(language=language.strip() or None)
    async with request.app[TRIALS].searches.slot(site.organization_id):
        return await request.app[INDEX].search(site.domain, query, limit=RESULTS, filter=only, explain=True)


@routes.operation(
    "POST",
    "/v2/sites/{domain}/golden",
    "evaluateSearch",
    "Projects",
    "Measure a site's search by test questions",
    {200: Answer("The measures, and the questions that were missed.", EvaluationView, example=EVALUATION_EXAMPLE)},
    description=f"Changes nothing, so scope `read` will do. Takes at most {GOLDEN_SECONDS:g} seconds; an organization's"
    " requests take turns.",
    body=GoldenBody,
    body_examples={
        "pages": {"questions": [{"query": "How do I retry a job?", "relevant": ["guides/retries.md"]}]},
        "facts": {"questions": [{"query": "How long is the delay?", "facts": ["30 seconds"]}]},
        "plain": {"questions": [{"query": "How long is the delay?"}]},
    },
    errors={404: ("not_indexed",)},
)
async def evaluate_search(request: web.Request) -> web.Response:
    site = await site_of(request, (await admin_key(request)).state.organization_id)
    body = await read_body(request, GoldenBody)
    questions = [Question(one.query, one.relevant, one.facts) for one in body.questions]
    problems = [(f"$.questions[{number}]", wrong) for number, one in enumerate(questions) if (wrong := problem_of(one))]
    if problems:
        raise Invalid(f"{problems[0][0]}: {problems[0][1]}.", problems=tuple(problems))
    return json_response((await evaluated(request, site.view, questions)).view)


async def evaluated(request: web.Request, site: SiteView, questions: Sequence[Question]) -> Evaluation:
    """Ask test questions in the organization's turn. Raise Unavailable after ``GOLDEN_SECONDS``."""
    shares, index = request.app[TRIALS], request.app[INDEX]
    turn = partial(shares.searches.slot, site.organization_id)
    try:
        async with shares.golden.slot(site.organization_id), asyncio.timeout(GOLDEN_SECONDS):
            judged = answers_with(index, request.app[MODELS].builtin_for_assistant)
            return await evaluate_site(index, site.domain, questions, lambda *_: None, judged, turn)
    except TimeoutError:
        late = f"The questions took longer than {GOLDEN_SECONDS:g} seconds. Ask fewer at a time."
        raise Unavailable(late) from None
