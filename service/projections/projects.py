"""Projects, as rows."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec.structs import asdict

from eventstore import RecordedEvent
from service.domain.projects import CHANGEABLE, ProjectChanged, ProjectCreated
from service.streams import PROJECTS, decoded

COLUMNS = (
    "id, organization_id, name, repository, ref, docs_folder, domain, code_host, api_url, git_token_env, github_app_id,"
    " github_app_key_env, labels, reviewers, created_at"
)


class ProjectsView:
    name = "projects-2"
    tables = """
        CREATE TABLE projects (
            id TEXT PRIMARY KEY,
            organization_id TEXT NOT NULL,
            name TEXT NOT NULL,
            repository TEXT NOT NULL,
            ref TEXT NOT NULL,
            docs_folder TEXT NOT NULL,
            domain TEXT NOT NULL UNIQUE,
            code_host TEXT NOT NULL,
            api_url TEXT NOT NULL,
            git_token_env TEXT NOT NULL,
            github_app_id TEXT NOT NULL,
            github_app_key_env TEXT NOT NULL,
            labels TEXT NOT NULL,  -- JSON
            reviewers TEXT NOT NULL,  -- JSON
            created_at TEXT NOT NULL
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for project_id, event in decoded(PROJECTS, events):
            match event:
                case ProjectCreated():
                    values = {**asdict(event), "id": project_id, "created_at": event.created_at.isoformat()}
                    row = [_stored(values[name]) for name in COLUMNS.split(", ")]
                    marks = ", ".join("?" * len(row))
                    db.execute(f"INSERT INTO projects ({COLUMNS}) VALUES ({marks})", row)  # noqa: S608  (no input)
                case ProjectChanged():
                    for name in CHANGEABLE:
                        value = getattr(event, name)
                        if value is not None:
                            db.execute(
                                f"UPDATE projects SET {name} = ? WHERE id = ?",  # noqa: S608  (no input)
                                (_stored(value), project_id),
                            )
                case _:
                    assert_never(event)


def _stored(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
