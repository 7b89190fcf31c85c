"""How well a site's search finds what test questions want."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import described


class MissedView(Struct, frozen=True):
    """A question with nothing right among the first five."""

    query: Annotated[str, described("The question.")]
    wanted: Annotated[tuple[str, ...], described("The pages or facts that it wants.")]
    found: Annotated[tuple[str, ...], described("The first pages instead.")]


class EvaluationView(Struct, frozen=True, rename="camel"):
    """How well a site's search finds what test questions want. Measures are averages from 0 to 1."""

    domain: Annotated[str, described("The site.")]
    commit: Annotated[str, described("The commit that is indexed.")]
    questions: Annotated[int, described("Number of the questions.")]
    recall_at_5: Annotated[float, described("The share of what a question wants that is among the first five.")]
    hit_at_5: Annotated[float, described("The share of questions with something right among the first five.")]
    mrr: Annotated[float, described("How high the first right one stands: 1 divided by its place (reciprocal rank).")]
    ndcg_at_10: Annotated[float, described("The normalized discounted cumulative gain of the first ten.")]
    misses: Annotated[tuple[MissedView, ...], described("Questions with nothing right among the first five.")]


class CheckedEvaluationView(EvaluationView, frozen=True, rename="camel"):
    """An evaluation that was held against least values."""

    failed: Annotated[tuple[str, ...], described("Sentences on the measures that are too small.")]
