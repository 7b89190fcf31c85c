"""Projects, as rows."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eventstore import RecordedEvent, Views
from service.domain.projects import CHANGEABLE, CodeHostKind, ProjectChanged, ProjectCreated
from service.streams import PROJECTS, decoded


class ProjectRow(Struct, frozen=True):
    id: str
    organization_id: str
    name: str
    repository: str
    ref: str
    docs_folder: str
    domain: str
    code_host: CodeHostKind
    api_url: str
    git_token_env: str
    github_app_id: str
    github_app_key_env: str
    labels: tuple[str, ...]
    reviewers: tuple[str, ...]
    created_at: str


COLUMNS = ", ".join(ProjectRow.__struct_fields__)


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
                    row = [_stored(values[name]) for name in ProjectRow.__struct_fields__]
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


def _row(row: sqlite3.Row) -> ProjectRow:
    values = dict(zip(ProjectRow.__struct_fields__, row, strict=True))
    for name in ("labels", "reviewers"):
        values[name] = msgspec.json.decode(values[name], type=tuple[str, ...])
    return ProjectRow(**{**values, "code_host": cast("CodeHostKind", values["code_host"])})


async def list_projects(views: Views) -> list[ProjectRow]:
    rows = await views.query(f"SELECT {COLUMNS} FROM projects ORDER BY created_at, id", ())  # noqa: S608  (no input)
    return [_row(row) for row in rows]


async def get_project(views: Views, project_id: str) -> ProjectRow | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM projects WHERE id = ?", (project_id,))  # noqa: S608  (no input)
    return _row(row) if row else None


async def project_of_domain(views: Views, domain: str) -> ProjectRow | None:
    row = await views.query_one(f"SELECT {COLUMNS} FROM projects WHERE domain = ?", (domain,))  # noqa: S608  (no input)
    return _row(row) if row else None
