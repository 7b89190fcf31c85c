"""Projects, as rows."""

import sqlite3
from collections.abc import Sequence
from typing import cast

from msgspec import Struct

from eventstore import RecordedEvent, Views
from service.domain.projects import CodeHostKind
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
    created_at: str


COLUMNS = ", ".join(ProjectRow.__struct_fields__)


class ProjectsView:
    name = "projects-1"
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
            created_at TEXT NOT NULL
        ) STRICT;
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for project_id, made in decoded(PROJECTS, events):
            db.execute(
                f"INSERT INTO projects ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  (no input)
                (
                    project_id, made.organization_id, made.name, made.repository, made.ref,
                    made.docs_folder, made.domain, made.code_host, made.api_url, made.git_token_env,
                    made.created_at.isoformat(),
                ),
            )  # fmt: skip


def _row(row: sqlite3.Row) -> ProjectRow:
    values = dict(zip(ProjectRow.__struct_fields__, row, strict=True))
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
