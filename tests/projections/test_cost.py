"""Applying an event reads few rows, and so does listing the newest, however many there are."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime

from eventstore import Decider, Metadata, RecordedEvent
from service import streams
from service.projections import all_projections
from service.projections.questions import QuestionsView
from service.queries.readers.questions import (
    FIRST,
    MAX_LOOKED_AT,
    Period,
    QuestionFilter,
    list_feedback,
    list_questions,
    questions_page,
)
from tests.test_event_samples import stored

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FEW = {"json_each", "CONSTANT"}
"""Read whole: the events of one webhook, and a row that is in no table."""
BEGINNINGS = ("-created", "-registered", "thread-started", "job-requested")


def recorded_samples():
    """Yield an event of each shape; of an erasure, that of a thread and of a job."""
    deciders = [value for value in vars(streams).values() if isinstance(value, Decider)]
    categories = {tag: decider.category for decider in deciders for tag in decider.codec.types}
    position = 0
    for sample in stored().values():
        category = categories[sample.type]
        for entity in ("thread-x", "job-x") if category == streams.ERASURES.category else ("x",):
            position += 1
            personal = None if bytes(sample.personal) == b"null" else bytes(sample.personal)
            yield RecordedEvent(
                position, f"{category}-{entity}", position, sample.type, bytes(sample.data), personal, False,
                sample.schema_version, Metadata(), str(position), NOW, b"",
            )  # fmt: skip


def test_projections_read_rows_by_an_index():
    events = sorted(recorded_samples(), key=lambda event: not event.type.endswith(BEGINNINGS))
    for projection in all_projections():
        db = sqlite3.connect(":memory:")
        db.executescript(projection.tables)
        statements = []
        db.set_trace_callback(statements.append)
        for event in events:
            with suppress(sqlite3.IntegrityError):  # another sample of how one thing begins
                projection.apply(db, [event])
        db.set_trace_callback(None)
        for sql in {each for each in statements if not each.startswith(("BEGIN", "--"))}:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
            assert not [step for step in plan if step.startswith("SCAN ") and step.split()[1] not in FEW], sql
        db.close()


class Asked:
    """Views that are empty, and what was asked of them."""

    def __init__(self):
        self.statements = []

    async def query(self, *statement):
        self.statements.append(statement)
        return []

    async def query_one(self, *statement):
        self.statements.append(statement)
        return (MAX_LOOKED_AT + 1,)


async def test_newest_rows_are_found_without_sorting_all():
    views = Asked()
    await list_questions(views, "p", Period(), before=FIRST, limit=20)
    await list_questions(views, "p", Period("2026"), before=FIRST, limit=20, resolution="answered")
    await list_feedback(views, "p", Period(), before=FIRST, limit=20)
    for chosen in (
        {},
        {"outcome": "failed"},
        {"outcome": "answered"},
        {"rating": "up", "outcome": "unanswered"},
        {"text": "a b"},
    ):
        only = QuestionFilter(**chosen, caller="web", project_id="p")
        await questions_page(views, "o", Period("2026"), only, before=FIRST, limit=20)
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(QuestionsView.tables)
        for sql, params in views.statements:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
            assert not [step for step in plan if step.startswith(("SCAN", "USE TEMP")) and "(subquery" not in step], sql
