"""People and their roles, as rows. Names and emails go when they are erased."""

import sqlite3
from collections.abc import Sequence
from typing import assert_never

from eventstore import RecordedEvent
from service.domain.access.members import RoleGiven, RoleRemoved
from service.domain.access.people import (
    OperatorGiven,
    OperatorRemoved,
    PersonAdded,
    PersonEvent,
    PersonRenamed,
    SignedIn,
    SignedOut,
    SignInLinkMade,
)
from service.domain.events import ERASED
from service.streams import ERASURES, MEMBERS, PEOPLE, decoded


class PeopleView:
    name = "people-1"
    tables = """
        CREATE TABLE people (
            id TEXT PRIMARY KEY,
            email TEXT NOT NULL,
            name TEXT NOT NULL,
            organization_id TEXT NOT NULL,
            is_operator INTEGER NOT NULL DEFAULT 0,
            added_at TEXT NOT NULL,
            signed_in_at TEXT
        ) STRICT;
        CREATE INDEX people_by_email ON people (email);
        CREATE TABLE members (
            organization_id TEXT NOT NULL,
            person_id TEXT NOT NULL,
            role TEXT NOT NULL,
            given_at TEXT NOT NULL,
            PRIMARY KEY (organization_id, person_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX members_by_person ON members (person_id);
    """

    def apply(self, db: sqlite3.Connection, events: Sequence[RecordedEvent]) -> None:
        for recorded in events:
            for person_id, event in decoded(PEOPLE, [recorded]):
                self._apply(db, person_id, event)
            for organization_id, change in decoded(MEMBERS, [recorded]):
                match change:
                    case RoleGiven(person_id=person_id, role=role, given_at=given_at):
                        db.execute(
                            "INSERT INTO members VALUES (?, ?, ?, ?)"
                            " ON CONFLICT DO UPDATE SET role = excluded.role, given_at = excluded.given_at",
                            (organization_id, person_id, role, given_at.isoformat()),
                        )
                    case RoleRemoved(person_id=person_id):
                        db.execute(
                            "DELETE FROM members WHERE organization_id = ? AND person_id = ?",
                            (organization_id, person_id),
                        )
                    case unknown:
                        assert_never(unknown)
            for subject, _ in decoded(ERASURES, [recorded]):
                if PEOPLE.owns(subject):
                    gone = (ERASED, ERASED, PEOPLE.entity_id(subject))
                    db.execute("UPDATE people SET email = ?, name = ? WHERE id = ?", gone)

    def _apply(self, db: sqlite3.Connection, person_id: str, event: PersonEvent) -> None:
        match event:
            case PersonAdded() as new:
                db.execute(
                    "INSERT INTO people (id, email, name, organization_id, added_at) VALUES (?, ?, ?, ?, ?)",
                    (person_id, new.email, new.name, new.organization_id, new.added_at.isoformat()),
                )
            case PersonRenamed(name=name):
                db.execute("UPDATE people SET name = ? WHERE id = ?", (name, person_id))
            case OperatorGiven() | OperatorRemoved():
                is_operator = isinstance(event, OperatorGiven)
                db.execute("UPDATE people SET is_operator = ? WHERE id = ?", (is_operator, person_id))
            case SignedIn(signed_in_at=at):
                db.execute("UPDATE people SET signed_in_at = ? WHERE id = ?", (at.isoformat(), person_id))
            case SignInLinkMade() | SignedOut():
                pass
            case unknown:
                assert_never(unknown)
