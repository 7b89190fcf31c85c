"""Which pull requests of jobs are open, and which jobs have comments to answer, as rows."""

import sqlite3
from collections.abc import Sequence

from eventstore import RecordedEvent
from service.domain.jobs.decider import (
    BranchChanged,
    CommentAnswered,
    CommentIgnored,
    JobRequested,
    MessageAdded,
    PullRequestClosed,
    PullRequestOpened,
    PullRequestUpdated,
)
from service.streams import JOBS, decoded

_USED = JOBS.codec.tags_of(
    JobRequested, PullRequestOpened, PullRequestUpdated, PullRequestClosed, BranchChanged, MessageAdded, CommentIgnored,
    CommentAnswered,
)  # fmt: skip
"""Others, the texts of model and tools among them, are not decoded."""


class ReviewsView:
    name = "reviews-1"
    tables = """
        CREATE TABLE reviews (
            job_id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            project_id TEXT NOT NULL,
            number INTEGER,
            is_open INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX reviews_open ON reviews (project_id, number) WHERE is_open;
        CREATE TABLE unanswered_comments (answer_id TEXT PRIMARY KEY, job_id TEXT NOT NULL) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for job_id, event in decoded(JOBS, [recorded for recorded in events if recorded.type in _USED]):
            match event:
                case JobRequested():
                    db.execute(
                        "INSERT INTO reviews (job_id, organization_id, project_id) VALUES (?, ?, ?)",
                        (job_id, event.organization_id, event.project_id),
                    )
                case PullRequestOpened(number=number) | PullRequestUpdated(number=number):
                    db.execute("UPDATE reviews SET number = ?, is_open = 1 WHERE job_id = ?", (number, job_id))
                case PullRequestClosed() | BranchChanged():
                    db.execute("UPDATE reviews SET is_open = 0 WHERE job_id = ?", (job_id,))
                case MessageAdded(answer_id=answer_id) | CommentIgnored(answer_id=answer_id) if answer_id:
                    db.execute("INSERT OR IGNORE INTO unanswered_comments VALUES (?, ?)", (answer_id, job_id))
                case CommentAnswered(answer_ids=answer_ids):
                    answered = [(answer_id,) for answer_id in answer_ids]
                    db.executemany("DELETE FROM unanswered_comments WHERE answer_id = ?", answered)
                case _:
                    pass
