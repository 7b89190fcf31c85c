"""Projects, as rows."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import convert

from eventstore import RecordedEvent
from service.domain.projects.decider import ProjectChanged, ProjectCreated
from service.domain.projects.settings import ProjectSettings, changed
from service.streams import PROJECTS, decoded


class ProjectsView:
    name = "projects-3"
    tables = """
        CREATE TABLE projects (
            id TEXT PRIMARY KEY,
            domain TEXT NOT NULL UNIQUE,
            settings TEXT NOT NULL,  -- JSON of ProjectSettings
            created_at TEXT NOT NULL
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for project_id, event in decoded(PROJECTS, events):
            match event:
                case ProjectCreated():
                    settings = convert(event, ProjectSettings, from_attributes=True)
                    row = (project_id, event.domain, _stored(settings), event.created_at.isoformat())
                    db.execute("INSERT INTO projects VALUES (?, ?, ?, ?)", row)
                case ProjectChanged():
                    (stored,) = db.execute("SELECT settings FROM projects WHERE id = ?", (project_id,)).fetchone()
                    settings = changed(msgspec.json.decode(stored, type=ProjectSettings), event)
                    db.execute("UPDATE projects SET settings = ? WHERE id = ?", (_stored(settings), project_id))
                case _:
                    assert_never(event)


def _stored(settings: ProjectSettings) -> str:
    return msgspec.json.encode(settings).decode()
