"""How well a site's search finds what test questions want."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import described


class MissedView(Struct, frozen=True):
    """A question with nothing right among the first five, or a plain one without an answer."""

    query: Annotated[str, described("The question.")]
    wanted: Annotated[
        tuple[str, ...], described("The pages or facts that it wants; none of a plain question, which is not answered.")
    ]
    found: Annotated[tuple[str, ...], described("The first pages instead.")]


class EvaluationView(Struct, frozen=True, rename="camel"):
    """How well a site's search finds what test questions want. Measures are averages from 0 to 1."""

    domain: Annotated[str, described("The site.")]
    commit: Annotated[str, described("The commit that is indexed.")]
    questions: Annotated[int, described("Number of the questions.")]
    plain: Annotated[
        int,
        described("How many of them name neither pages nor facts. Of the others are the measures; null without any."),
    ]
    answered: Annotated[int, described("How many of the plain ones the builtin assistant answers.")]
    recall_at_5: Annotated[float | None, described("The share of what a question wants that is among the first five.")]
    hit_at_5: Annotated[float | None, described("The share of questions with something right among the first five.")]
    mrr: Annotated[float | None, described("How high the first right one stands: 1 divided by its place.")]
    ndcg_at_10: Annotated[float | None, described("The normalized discounted cumulative gain of the first ten.")]
    misses: Annotated[tuple[MissedView, ...], described("Those with nothing right among the first five, or no answer.")]


class CheckedEvaluationView(EvaluationView, frozen=True, rename="camel"):
    """An evaluation that was held against least values."""

    failed: Annotated[tuple[str, ...], described("Sentences on the measures that are too small.")]
