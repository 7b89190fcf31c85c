"""Sums of a period: questions and outcomes, times, cited pages, tokens and cost."""

from typing import Annotated

from msgspec import Struct

from service.domain.threads.recorded_reply import Caller
from service.views.fields import Reference, described


class QuestionCountsView(Struct, frozen=True, rename="camel"):
    """Questions by their outcome, and ratings."""

    questions: Annotated[int, described("How many were asked.")] = 0
    answered: Annotated[int, described("How many the documentation answers.")] = 0
    unsure: Annotated[int, described("How many got the nearest passages, which may answer them.")] = 0
    unanswered: Annotated[int, described("How many it does not.")] = 0
    failed: Annotated[int, described("How many have no whole answer: failed, stopped, interrupted or filtered.")] = 0
    up: Annotated[int, described("Replies rated up.")] = 0
    down: Annotated[int, described("Replies rated down.")] = 0

    @property
    def unanswered_share(self) -> float | None:
        """Return the part of the whole answers that lack something, 0 to 1; None without any."""
        return self._share(self.unanswered)

    @property
    def unsure_share(self) -> float | None:
        """Return the part of the whole answers that are unsure, 0 to 1; None without any."""
        return self._share(self.unsure)

    def _share(self, count: int) -> float | None:
        whole = self.answered + self.unsure + self.unanswered
        return count / whole if whole else None

    @property
    def helpful_share(self) -> float | None:
        """Return the part of the ratings that are up, 0 to 1; None without any."""
        rated = self.up + self.down
        return self.up / rated if rated else None


class DayView(Struct, frozen=True, rename="camel"):
    """One day, in UTC."""

    day: Annotated[str, described("Such as 2026-11-21.", format="date")]
    counts: Annotated[QuestionCountsView, described("The questions that were asked on it.")]


class CallerCountView(Struct, frozen=True, rename="camel"):
    """Questions from one kind of client."""

    caller: Annotated[Caller, described("The kind; empty for questions from before it was recorded.")]
    questions: Annotated[int, described("How many.")]


class FirstTextView(Struct, frozen=True, rename="camel"):
    """Times from a question to the first text of its answer, to the end of the interval that they were counted in."""

    replies: Annotated[int, described("How many were measured.")]
    median_ms: Annotated[int | None, described("Half of them took at most this, in milliseconds.")]
    p95_ms: Annotated[int | None, described("95 of 100 took at most this, in milliseconds.")]


class CitedPageView(Struct, frozen=True, rename="camel"):
    """A page that answers cite."""

    project_id: Annotated[str, described("Its project.")]
    path: Annotated[str, described("Its file in the repository.")]
    title: Annotated[str, described("Its title.")]
    url: Annotated[Reference, described("Where it is on the site.")]
    answers: Annotated[int, described("How many answers cite it.")]


class UncitedPageView(Struct, frozen=True, rename="camel"):
    """A page that no answer cites."""

    path: Annotated[str, described("Its file in the repository.")]
    title: Annotated[str, described("Its title.")]
    url: Annotated[Reference, described("Where it is on the site.")]


class UncitedPagesView(Struct, frozen=True, rename="camel"):
    """Pages of the site, as it is indexed now, that no answer of the period cites."""

    count: Annotated[int, described("How many.")]
    pages: Annotated[tuple[UncitedPageView, ...], described("The first of them.")]


class SpendingView(Struct, frozen=True, rename="camel"):
    """Tokens and cost of the replies to one key with one model."""

    key_id: Annotated[str, described("The key; `keyless`, `cli:…` or `person:…` for questions without one.")]
    model: Annotated[str, described("The model.")]
    replies: Annotated[int, described("How many replies.")]
    input_tokens: Annotated[int, described("Tokens that the model read.")]
    output_tokens: Annotated[int, described("Tokens that it wrote.")]
    cost_usd: Annotated[float | None, described("US dollars; null where no price is known.")]


class AnalyticsView(Struct, frozen=True, rename="camel"):
    """A period, in whole days of UTC."""

    date_from: Annotated[str, described("The first day.", format="date")]
    date_to: Annotated[str, described("The last day.", format="date")]
    totals: Annotated[QuestionCountsView, described("The whole period.")]
    days: Annotated[tuple[DayView, ...], described("Each day, those without questions too.")]
    callers: Annotated[tuple[CallerCountView, ...], described("The most frequent first.")]
    first_text: Annotated[FirstTextView, described("How long readers waited.")]
    cited_from: Annotated[str, described("The Monday from which citations are counted, by weeks.", format="date")]
    cited_pages: Annotated[tuple[CitedPageView, ...], described("The most cited first.")]
    uncited_pages: Annotated[
        UncitedPagesView | None, described("Null without a project, and while its site has no index.")
    ]
    spending: Annotated[tuple[SpendingView, ...], described("The most costly first.")]
