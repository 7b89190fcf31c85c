"""The sums of each day of a period: an organization's questions, cited pages, tokens and cost."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct
from msgspec.structs import replace

from eventstore import Views
from service.domain.errors import NotFound
from service.domain.threads.recorded_reply import Caller
from service.ports.search_index import SearchIndex
from service.projections.question_days import FIRST_TEXT_MS
from service.queries.readers.questions import Period
from service.views.projects import ProjectView
from service.views.readers.analytics import (
    AnalyticsView,
    CallerCountView,
    CitedPageView,
    DayView,
    FirstTextView,
    QuestionCountsView,
    SpendingView,
    UncitedPagesView,
    UncitedPageView,
)

MAX_PAGES = 50
MAX_SPENDING = 100


class Days(Struct, frozen=True):
    """Days of UTC, both inclusive. "The last 7 days" are today and the six before, on every page and in the API."""

    first: date
    last: date

    @classmethod
    def until(cls, last: date, *, days: int) -> "Days":
        return cls(last - timedelta(days=days - 1), last)

    @property
    def period(self) -> Period:
        """Return the same days, for the tables that have the time of each question."""
        first, end = (datetime.combine(day, time(), UTC) for day in (self.first, self.last + timedelta(days=1)))
        return Period.between(first, end)

    def __iter__(self) -> Iterator[date]:
        return (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))


async def read_analytics(
    views: Views, organization_id: str, days: Days, *, project_id: str | None = None
) -> AnalyticsView:
    """Return the sums of a period, of all projects of an organization or of one."""
    where = "organization_id = ? AND day >= ? AND day <= ?" + ("" if project_id is None else " AND project_id = ?")
    of_project = () if project_id is None else (project_id,)
    given = (organization_id, days.first.isoformat(), days.last.isoformat(), *of_project)
    by_day = {day.isoformat(): QuestionCountsView() for day in days}
    callers: dict[Caller, int] = {}
    for day, caller, *counts in await views.query(
        "SELECT day, caller, sum(questions), sum(answered), sum(unsure), sum(unanswered), sum(failed), sum(up),"  # noqa: S608  (ours)
        f" sum(down) FROM question_days WHERE {where} GROUP BY day, caller",
        given,
    ):
        by_day[day] = _added(by_day[day], counts)
        callers[caller] = callers.get(caller, 0) + counts[0]
    monday = _monday(days)
    pages = await views.query(
        "SELECT project_id, path, max(title), max(url), sum(answers) FROM cited_weeks"  # noqa: S608  (ours)
        f" WHERE {where.replace('day', 'week')} GROUP BY project_id, path ORDER BY 5 DESC, path LIMIT ?",
        (organization_id, monday.isoformat(), *given[2:], MAX_PAGES),
    )
    spending = await views.query(
        "SELECT asked_by, model, sum(replies), sum(input_tokens), sum(output_tokens),"  # noqa: S608  (ours)
        " CASE WHEN sum(priced) THEN sum(cost_usd) END FROM reply_days"
        f" WHERE {where} GROUP BY asked_by, model ORDER BY 6 DESC, 3 DESC LIMIT ?",
        (*given, MAX_SPENDING),
    )
    totals = QuestionCountsView()
    for counted in by_day.values():
        totals = _added(totals, _numbers(counted))
    return AnalyticsView(
        date_from=days.first.isoformat(),
        date_to=days.last.isoformat(),
        totals=totals,
        days=tuple(DayView(day, counts) for day, counts in by_day.items()),
        callers=tuple(
            CallerCountView(caller, count)
            for caller, count in sorted(callers.items(), key=lambda one: (-one[1], not one[0], one[0]))
        ),
        first_text=await _first_text(views, where, given),
        cited_from=monday.isoformat(),
        cited_pages=tuple(CitedPageView(*row) for row in pages),
        uncited_pages=None,
        spending=tuple(SpendingView(*row) for row in spending),
    )


async def with_uncited_pages(
    found: AnalyticsView, views: Views, index: SearchIndex, project: ProjectView, days: Days
) -> AnalyticsView:
    """Return the sums of a project together with the pages of its site that no answer cites."""
    rows = await views.query(
        "SELECT DISTINCT path FROM cited_weeks"
        " WHERE organization_id = ? AND week >= ? AND week <= ? AND project_id = ?",
        (project.organization_id, _monday(days).isoformat(), days.last.isoformat(), project.id),
    )
    try:
        others = await index.pages_besides(project.domain, [row["path"] for row in rows], limit=MAX_PAGES)
    except NotFound:  # it has no index yet
        return found
    pages = tuple(UncitedPageView(page.path, page.title, page.url) for page in others.first)
    return replace(found, uncited_pages=UncitedPagesView(others.count, pages))


def _monday(days: Days) -> date:
    """Return the beginning of the first week, whole, of a period."""
    return days.first - timedelta(days=days.first.weekday())


def _numbers(counts: QuestionCountsView) -> list[int]:
    return [getattr(counts, name) for name in QuestionCountsView.__struct_fields__]


def _added(counts: QuestionCountsView, more: Sequence[int]) -> QuestionCountsView:
    return QuestionCountsView(*(one + other for one, other in zip(_numbers(counts), more, strict=True)))


async def _first_text(views: Views, where: str, given: Sequence[str]) -> FirstTextView:
    rows = await views.query(
        f"SELECT interval, sum(replies) FROM first_text_days WHERE {where} GROUP BY interval ORDER BY interval",  # noqa: S608  (ours)
        given,
    )
    counts = [(int(interval), int(replies)) for interval, replies in rows]
    total = sum(replies for _, replies in counts)
    return FirstTextView(total, _quantile(counts, total, 0.5), _quantile(counts, total, 0.95))


def _quantile(counts: Sequence[tuple[int, int]], total: int, part: float) -> int | None:
    """Return the end of the interval in milliseconds; of the last one, which has no end, its beginning."""
    seen = 0
    for interval, replies in counts:
        seen += replies
        if seen >= part * total:
            return FIRST_TEXT_MS[min(interval, len(FIRST_TEXT_MS) - 1)]
    return None
