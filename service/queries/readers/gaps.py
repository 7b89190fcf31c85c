"""Gaps of an organization's documentation: its unanswered questions, in groups.

A question is in no gap any more once one in the same words was answered later, once the site was found to answer it, or
once somebody dismissed its gap.
"""

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, Views, load
from service.domain.access.idempotency import Claimed, claim_id
from service.domain.events import ERASED
from service.domain.texts.times import timestamp_from
from service.domain.threads.gaps import gap_id
from service.domain.threads.question_groups import MAX_WORDINGS, AskedWording, QuestionGroup, group_wordings
from service.projections.gaps import FOREVER
from service.queries.readers.prompts import PROMPTS
from service.queries.readers.questions import Period, Placed
from service.runtime.shares import Shares
from service.streams import REQUESTS
from service.views.readers.gaps import GapView
from service.views.readers.questions import ExampleView

MAX_EXAMPLES = 5
MAX_PAGES = 3
MAX_SHOWN_WORDINGS = 50
"""Wordings of a group whose questions are looked at for its examples."""
MAX_PROMPT_CHARACTERS = 300
"""For one question in the instruction of a job."""
MAX_IN_MEMORY = 100
"""Periods whose groups are kept."""
WAIT_SECONDS = 20.0


class GapQuery(Struct, frozen=True):
    """A choice of gaps: of an organization, in a period; None for all projects."""

    organization_id: str
    period: Period
    project_id: str | None = None


class Gap(Struct, frozen=True):
    """A gap, and what is recorded of it when it is settled."""

    view: GapView
    questions: tuple[str, ...]
    """The newest question of each of its wordings, by its id."""


class AskedAgain(Struct, frozen=True):
    """A question of a gap, and what its reply was made from."""

    id: str
    thread_id: str
    reply_id: str
    by_builtin: bool
    """Whether the builtin model wrote the reply."""
    passages: frozenset[tuple[str, int, int]]
    """Path, first and last line of those that the reply had."""


class _Kept(Struct, frozen=True):
    unanswered: tuple[int, int]
    """The number of unanswered questions, and the position of the newest."""
    groups: Sequence[QuestionGroup]


class GapReader:
    """Reader of gaps, which keeps the groups of periods until a question more, or one less, is unanswered in them.

    To group a thousand wordings takes some 50 ms, on a thread: one organization's at a time, in turn.
    """

    def __init__(self, store: EventStore, views: Views, on_refused: Callable[[], None] = lambda: None) -> None:
        self._store, self._views = store, views
        self._shares = Shares(1, (1,), waiting=8, seconds=WAIT_SECONDS, on_refused=on_refused)
        self._kept: OrderedDict[GapQuery, _Kept] = OrderedDict()

    async def list(self, query: GapQuery, *, limit: int, offset: int = 0) -> Placed[GapView]:
        """Return groups of unanswered questions, the most frequent first, each with its place, from 1.

        The commonest ``MAX_WORDINGS`` wordings of the period are grouped. Erased questions are left out.
        """
        groups = await self._grouped(query)
        shown = [await self._gap(group, query.period) for group in groups[offset : offset + limit]]
        return [(place, gap) for place, gap in enumerate(shown, start=offset + 1) if gap is not None]

    async def find(self, query: GapQuery, wanted: str) -> Gap | None:
        """Return a gap by its id."""
        groups = await self._grouped(query)
        ids = await _ids(self._views, [group.oldest for group in groups])
        for group in groups:
            if group.oldest in ids and gap_id(ids[group.oldest]) == wanted:
                return await self._whole(group, query)
        return None

    async def largest(self, query: GapQuery, *, limit: int) -> Sequence[Gap]:
        """Return the gaps with most questions."""
        found = [await self._whole(group, query) for group in (await self._grouped(query))[:limit]]
        return [gap for gap in found if gap is not None]

    async def _whole(self, group: QuestionGroup, query: GapQuery) -> Gap | None:
        view = await self._gap(group, query.period)
        ids = await _ids(self._views, [one.newest for one in group.wordings])
        return None if view is None else Gap(view, tuple(ids[one.newest] for one in group.wordings))

    async def list_dismissed(self, query: GapQuery, *, limit: int, offset: int = 0) -> Placed[GapView]:
        """Return the gaps that were dismissed, the latest first, with all questions in their words."""
        dismissals = await self._views.query(
            "SELECT id, project_id, dismissed_by, dismissed_at FROM dismissed_gaps WHERE organization_id = ?"
            " AND project_id = coalesce(?, project_id) ORDER BY position DESC LIMIT ? OFFSET ?",
            (query.organization_id, query.project_id, limit, offset),
        )
        shown: Placed[GapView] = []
        for place, (dismissed_id, project_id, by, at) in enumerate(dismissals, start=offset + 1):
            rows = await self._views.query(
                "SELECT project_id, wording, count(*), max(position), min(position) FROM asked"
                " INDEXED BY asked_unanswered WHERE project_id = ? AND resolution = 'unanswered' AND wording IN"
                " (SELECT q.wording FROM settled_questions s JOIN asked q ON q.id = s.question_id"
                " WHERE s.organization_id = ? AND s.gap_id = ? AND s.until = ? AND q.wording != '')"
                " GROUP BY wording ORDER BY 3 DESC, 4 DESC",
                (project_id, query.organization_id, dismissed_id, FOREVER),
            )
            group = QuestionGroup(tuple(AskedWording(*row) for row in rows))
            gap = await self._gap(group, Period()) if rows else None
            if gap is None:  # what it was about is erased: that it was dismissed, and by whom, stays
                gap = GapView(dismissed_id, project_id, ERASED, 0, 0, timestamp_from(at), (), (), "", None)
            dismissed = replace(gap, id=dismissed_id, dismissed_by=by, dismissed_at=timestamp_from(at))
            shown.append((place, dismissed))
        return shown

    async def _grouped(self, query: GapQuery) -> Sequence[QuestionGroup]:
        unanswered = await _unanswered(self._views, query)
        kept = self._kept.get(query)
        if kept is None or kept.unanswered != unanswered:
            async with self._shares.slot(query.organization_id):
                kept = self._kept.get(query)  # another request may have grouped it meanwhile
                if kept is None or kept.unanswered != unanswered:
                    kept = _Kept(unanswered, await _group(self._views, query))
        self._kept[query] = kept
        self._kept.move_to_end(query)
        if len(self._kept) > MAX_IN_MEMORY:
            self._kept.popitem(last=False)
        return kept.groups

    async def _gap(self, group: QuestionGroup, period: Period) -> GapView | None:
        """Return a group as a view; None once all its questions are erased, or answered."""
        shown = [(one.wording, one.first) for one in group.wordings[:MAX_SHOWN_WORDINGS]]
        project_id = group.wordings[0].project_id
        rows = await self._views.query(
            "SELECT asked.id, thread_id, question, asked_at, reply_id, wording FROM json_each(?) one"
            " CROSS JOIN asked INDEXED BY asked_unanswered ON wording = one.value ->> 0 AND position >= one.value ->> 1"
            " WHERE project_id = ? AND resolution = 'unanswered' AND asked_at >= ? AND asked_at < ?"
            " ORDER BY position DESC LIMIT ?",
            (json.dumps(shown), project_id, period.start, period.end, MAX_EXAMPLES),
        )
        oldest = await _ids(self._views, [group.oldest])
        if not rows or not oldest:
            return None
        pages = await _found_pages(self._views, [row["reply_id"] for row in rows])
        named = next((row for row in rows if row["wording"] == shown[0][0]), rows[0])
        gap = GapView(
            id=gap_id(oldest[group.oldest]),
            project_id=project_id,
            question=named["question"],
            count=group.count,
            wordings=len(group.wordings),
            last_asked_at=timestamp_from(rows[0]["asked_at"]),
            examples=tuple(
                ExampleView(row["id"], row["thread_id"], row["question"], timestamp_from(row["asked_at"]))
                for row in rows
            ),
            pages=pages,
            prompt=_prompt(named["question"], [row["question"] for row in rows], pages),
            job_id=None,
        )
        claimed = (await load(self._store, REQUESTS, claim_id(project_id, job_key(gap)), may_be_old=True)).state
        return replace(gap, job_id=claimed.job_id) if isinstance(claimed, Claimed) else gap


def job_key(gap: GapView) -> str:
    """Return the key under which a job is made of a gap: a second job needs a question that was asked since."""
    return f"gap {gap.id} {gap.examples[0].id}"


async def asked_again(views: Views, questions: Sequence[str]) -> list[AskedAgain]:
    """Return questions by their ids."""
    rows = await views.query(
        "SELECT asked.id, asked.thread_id, reply_id, coalesce(model, '') AS model FROM asked"  # noqa: S608  (marks)
        " JOIN answers ON answers.id = asked.reply_id"
        f" WHERE asked.id IN ({','.join('?' * len(questions))}) ORDER BY asked.position DESC",
        questions,
    )
    found = []
    for row in rows:
        sources = await views.query(
            "SELECT path, start_line, end_line FROM answer_sources WHERE reply_id = ?", (row["reply_id"],)
        )
        passages = frozenset((one["path"], one["start_line"], one["end_line"]) for one in sources)
        by_builtin = row["model"].startswith("builtin/")
        found.append(AskedAgain(row["id"], row["thread_id"], row["reply_id"], by_builtin, passages))
    return found


async def dismissed_gap(views: Views, organization_id: str, wanted: str) -> bool:
    """Return whether a gap of an organization is dismissed."""
    row = await views.query_one(
        "SELECT 1 FROM dismissed_gaps WHERE organization_id = ? AND id = ?", (organization_id, wanted)
    )
    return row is not None


async def count_in_gaps(views: Views, organization_id: str, period: Period) -> int:
    """Return how many questions of a period are in gaps: the sum of the counts of all."""
    count, _ = await _unanswered(views, GapQuery(organization_id, period))
    return count


_SETTLED = """
    WITH settled AS MATERIALIZED (
        SELECT q.project_id AS project_id, q.wording AS wording, max(s.until) AS until
        FROM settled_questions s JOIN asked q ON q.id = s.question_id
        WHERE s.organization_id = :organization AND q.wording != '' GROUP BY 1, 2
    )
"""
_OPEN = """
    FROM asked LEFT JOIN settled ON settled.project_id = asked.project_id AND settled.wording = asked.wording
    WHERE asked.organization_id = :organization AND asked.resolution = 'unanswered' AND asked.wording != ''
        AND asked_at >= :start AND asked_at < :end AND asked.project_id = coalesce(:project, asked.project_id)
        AND coalesce(settled.until, 0) < asked.position
        AND NOT EXISTS (
            SELECT 1 FROM asked later WHERE later.project_id = asked.project_id AND later.wording = asked.wording
            AND later.resolution = 'answered' AND later.position > asked.position
        )
"""
"""The questions that are in gaps."""


def _given(query: GapQuery) -> dict[str, str | int | None]:
    return {
        "organization": query.organization_id,
        "start": query.period.start,
        "end": query.period.end,
        "project": query.project_id,
    }


async def _unanswered(views: Views, query: GapQuery) -> tuple[int, int]:
    row = await views.query_one(
        f"{_SETTLED} SELECT count(*), coalesce(max(asked.position), 0) {_OPEN}",
        _given(query),
    )
    return (0, 0) if row is None else (row[0], row[1])


async def _group(views: Views, query: GapQuery) -> Sequence[QuestionGroup]:
    rows = await views.query(
        f"{_SETTLED} SELECT asked.project_id, asked.wording, count(*), max(asked.position), (SELECT min(first.position)"  # noqa: S608  (ours)
        " FROM asked first WHERE first.project_id = asked.project_id AND first.wording = asked.wording"
        f" AND first.resolution = 'unanswered'), min(asked.position) {_OPEN}"
        " GROUP BY asked.project_id, asked.wording ORDER BY 3 DESC, 4 DESC LIMIT :limit",
        {**_given(query), "limit": MAX_WORDINGS},
    )
    return await asyncio.to_thread(group_wordings, [AskedWording(*row) for row in rows])


async def _ids(views: Views, positions: Sequence[int]) -> dict[int, str]:
    """Return the ids of the questions at positions in the log."""
    found: dict[int, str] = {}
    for at in range(0, len(positions), 500):
        some = positions[at : at + 500]
        rows = await views.query(
            f"SELECT position, id FROM asked WHERE position IN ({','.join('?' * len(some))})",  # noqa: S608  (marks)
            some,
        )
        found.update((row["position"], row["id"]) for row in rows)
    return found


async def _found_pages(views: Views, replies: Sequence[str]) -> tuple[str, ...]:
    rows = await views.query(
        f"SELECT DISTINCT reply_id, path FROM answer_sources WHERE reply_id IN ({','.join('?' * len(replies))})",  # noqa: S608  (marks)
        replies,
    )
    return tuple(path for path, _ in Counter(row["path"] for row in rows).most_common(MAX_PAGES))


def _prompt(question: str, questions: Sequence[str], pages: Sequence[str]) -> str:
    lines = dict.fromkeys(" ".join(question.split())[:MAX_PROMPT_CHARACTERS] for question in questions)
    found = f"\n\nThe search found these pages for it: {', '.join(pages)}." if pages else ""
    title = " ".join(question.replace('"', "'").split())[:MAX_PROMPT_CHARACTERS]
    return PROMPTS.text("gap", question=title, questions="\n".join(f'- "{line}"' for line in lines), pages=found)
