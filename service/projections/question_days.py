"""Sums of each day, in UTC: questions and outcomes, replies and their cost, times to the first text; and of each week,
named by its Monday: cited pages, since a site has hundreds.

They are kept up to date with the rows that they are sums of, so that a page that shows a year reads some hundred rows.
``questions.py`` has these rows, and calls what is here.
"""

import sqlite3
from bisect import bisect_left
from datetime import datetime

FIRST_TEXT_MS = (100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 30_000, 60_000)
"""The upper ends of the intervals that times to the first text are counted in; longer ones are in a last interval."""

_SUMS = ("questions", "answered", "unsure", "unanswered", "failed", "up", "down")


def _counted(row: str, sign: int) -> str:
    """Return a statement for a trigger on ``asked``: count a row in, or out."""
    values = (
        "1",
        f"({row}.outcome = 'answered')",
        f"({row}.outcome = 'unsure')",
        f"({row}.outcome = 'unanswered')",
        f"({row}.outcome = 'failed')",
        f"coalesce({row}.rating = 'up', 0)",
        f"coalesce({row}.rating = 'down', 0)",
    )
    return (
        f"INSERT INTO question_days VALUES ({row}.organization_id, substr({row}.asked_at, 1, 10), {row}.project_id,"  # noqa: S608  (no input)
        f" {row}.caller, {', '.join(f'{sign} * {value}' for value in values)})"
        f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _SUMS)};"
    )


TABLES = f"""
    CREATE TABLE question_days (
        organization_id TEXT NOT NULL,
        day TEXT NOT NULL,
        project_id TEXT NOT NULL,
        caller TEXT NOT NULL,
        {", ".join(f"{name} INTEGER NOT NULL" for name in _SUMS)},
        PRIMARY KEY (organization_id, day, project_id, caller)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER asked_counted AFTER INSERT ON asked BEGIN
        {_counted("new", 1)}
    END;
    CREATE TRIGGER asked_recounted AFTER UPDATE OF resolution, state, rating, caller ON asked
    WHEN old.outcome IS NOT new.outcome OR old.rating IS NOT new.rating OR old.caller IS NOT new.caller BEGIN
        {_counted("old", -1)}
        {_counted("new", 1)}
    END;
    CREATE TABLE reply_days (
        organization_id TEXT NOT NULL,
        day TEXT NOT NULL,
        project_id TEXT NOT NULL,
        asked_by TEXT NOT NULL,
        model TEXT NOT NULL,
        replies INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        priced INTEGER NOT NULL,
        cost_usd REAL NOT NULL,
        PRIMARY KEY (organization_id, day, project_id, asked_by, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE first_text_days (
        organization_id TEXT NOT NULL,
        day TEXT NOT NULL,
        project_id TEXT NOT NULL,
        interval INTEGER NOT NULL,
        replies INTEGER NOT NULL,
        PRIMARY KEY (organization_id, day, project_id, interval)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE cited_weeks (
        organization_id TEXT NOT NULL,
        week TEXT NOT NULL,
        project_id TEXT NOT NULL,
        path TEXT NOT NULL,
        title TEXT NOT NULL,
        url TEXT NOT NULL,
        answers INTEGER NOT NULL,
        PRIMARY KEY (organization_id, week, project_id, path)
    ) STRICT, WITHOUT ROWID;
"""


def count_reply(db: sqlite3.Connection, reply_id: str) -> None:
    """Count a reply that has ended, with the tokens and the cost of its calls."""
    db.execute(
        "INSERT INTO reply_days SELECT organization_id, substr(started_at, 1, 10), project_id, asked_by,"
        " coalesce(model, ''), 1, input_tokens, output_tokens, cost_usd IS NOT NULL, coalesce(cost_usd, 0.0)"
        " FROM answers WHERE id = ? ON CONFLICT DO UPDATE SET replies = replies + 1,"
        " input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,"
        " priced = priced + excluded.priced, cost_usd = cost_usd + excluded.cost_usd",
        (reply_id,),
    )


def count_citations(db: sqlite3.Connection, reply_id: str) -> None:
    """Count each page that a complete reply cites, once."""
    db.execute(
        "INSERT INTO cited_weeks SELECT organization_id, date(substr(started_at, 1, 10), 'weekday 0', '-6 days'),"
        " project_id, source.path, min(title),"
        " min(CASE instr(url, '#') WHEN 0 THEN url ELSE substr(url, 1, instr(url, '#') - 1) END), 1"
        " FROM answers JOIN json_each(answers.cited)"
        " JOIN answer_sources AS source ON reply_id = answers.id AND source.number = json_each.value"
        " WHERE answers.id = ? GROUP BY source.path"
        " ON CONFLICT DO UPDATE SET answers = answers + 1, title = excluded.title, url = excluded.url",
        (reply_id,),
    )


def count_first_text(db: sqlite3.Connection, reply_id: str, at: datetime) -> None:
    """Count the time from a reply's start to its first text."""
    row = db.execute("SELECT started_at FROM answers WHERE id = ?", (reply_id,)).fetchone()
    if row is None:
        return
    seconds = (at - datetime.fromisoformat(row[0])).total_seconds()
    db.execute(
        "INSERT INTO first_text_days SELECT organization_id, substr(started_at, 1, 10), project_id, ?, 1"
        " FROM answers WHERE id = ? ON CONFLICT DO UPDATE SET replies = replies + 1",
        (bisect_left(FIRST_TEXT_MS, 1000 * seconds), reply_id),
    )
