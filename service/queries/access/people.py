"""People and their roles, from the read models, and in memory for requests that look one up each."""

import asyncio
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from eventstore import EventStore, RecordedEvent, StoreUnavailable, Views
from service.domain.access.members import NOT_A_MEMBER, PERSON_NOT_FOUND, Role, RoleGiven, RoleRemoved, is_at_least
from service.domain.access.people import (
    SESSION_LIFETIME,
    OperatorGiven,
    OperatorRemoved,
    PersonAdded,
    PersonEvent,
    PersonRenamed,
    SignedIn,
    SignedOut,
    SignInLinkMade,
    SignInMethod,
)
from service.domain.errors import Forbidden, NotFound
from service.domain.events import ERASED
from service.domain.texts.times import timestamp_from
from service.streams import ERASURES, MEMBERS, PEOPLE, decoded
from service.views.access.people import MemberList, MemberView, OrganizationRoleView, PersonView

_MEMBERS = (
    "SELECT m.organization_id, m.role, m.given_at, p.id, p.email, p.name, p.signed_in_at"
    " FROM members m JOIN people p ON p.id = m.person_id WHERE m.organization_id = ?"
)


async def list_members(views: Views, organization_id: str) -> list[MemberView]:
    """Return the people of an organization, by email: at most ``MAX_MEMBERS``."""
    rows = await views.query(f"{_MEMBERS} ORDER BY p.email, p.id", (organization_id,))
    return [_member(row) for row in rows]


async def members_page(views: Views, organization_id: str, *, limit: int, cursor: str | None) -> MemberList:
    """Return some of an organization's people, by email; those after the person whose id is the cursor."""
    after = " AND (p.email, p.id) > (SELECT email, id FROM people WHERE id = ?)" if cursor else ""
    parameters = (organization_id, *((cursor,) if cursor else ()), limit + 1)
    rows = await views.query(f"{_MEMBERS}{after} ORDER BY p.email, p.id LIMIT ?", parameters)
    more = str(rows[limit - 1]["id"]) if len(rows) > limit else None
    return MemberList(tuple(_member(row) for row in rows[:limit]), more)


async def member_of(views: Views, organization_id: str, person_id: str) -> MemberView:
    """Return a person of an organization. Raise NotFound."""
    row = await views.query_one(f"{_MEMBERS} AND m.person_id = ?", (organization_id, person_id))
    if row is None:
        raise NotFound(NOT_A_MEMBER, code=PERSON_NOT_FOUND)
    return _member(row)


async def list_people(views: Views) -> list[PersonView]:
    """Return everyone, by email: for the operator."""
    return await _people(views, "ORDER BY email, id", ())


async def get_person(views: Views, person_id: str) -> PersonView | None:
    found = await _people(views, "WHERE id = ?", (person_id,))
    return found[0] if found else None


async def people_by_email(views: Views, email: str) -> list[PersonView]:
    """Return those who have this email, in small letters: first those that the terminal added."""
    return await _people(views, "WHERE email = ? ORDER BY organization_id != '', added_at, id", (email,))


async def has_anyone_signed_in(views: Views) -> bool:
    return await views.query_one("SELECT 1 FROM people WHERE signed_in_at IS NOT NULL LIMIT 1") is not None


async def _people(views: Views, rest: str, parameters: Sequence[str]) -> list[PersonView]:
    columns = "id, email, name, organization_id, is_operator, added_at, signed_in_at"
    rows = await views.query(f"SELECT {columns} FROM people {rest}", parameters)  # noqa: S608  (ours)
    roles: dict[str, list[OrganizationRoleView]] = {}
    of_one = "WHERE person_id = ?" if len(rows) == 1 else ""
    sql = f"SELECT person_id, organization_id, role FROM members {of_one} ORDER BY organization_id"  # noqa: S608  (ours)
    for row in await views.query(sql, (rows[0]["id"],) if of_one else ()):
        roles.setdefault(row["person_id"], []).append(OrganizationRoleView(row["organization_id"], row["role"]))
    return [
        PersonView(
            id=row["id"],
            email=row["email"],
            name=row["name"],
            is_operator=bool(row["is_operator"]),
            roles=tuple(roles.get(row["id"], ())),
            added_by=row["organization_id"] or None,
            added_at=timestamp_from(row["added_at"]),
            signed_in_at=row["signed_in_at"] and timestamp_from(row["signed_in_at"]),
        )
        for row in rows
    ]


def _member(row: sqlite3.Row) -> MemberView:
    return MemberView(
        id=row["id"],
        organization_id=row["organization_id"],
        email=row["email"],
        name=row["name"],
        role=row["role"],
        given_at=timestamp_from(row["given_at"]),
        signed_in_at=row["signed_in_at"] and timestamp_from(row["signed_in_at"]),
    )


class SeveralAccounts(Forbidden):
    """Several people have the address by which someone signs in, each added by another organization."""

    code = "several_accounts"

    def __init__(self, email: str, person_ids: Sequence[str]) -> None:
        super().__init__(f"{email} has several accounts, added by different organizations. Choose one.", code=self.code)
        self.person_ids = tuple(person_ids)


class OpenSession(Struct, frozen=True):
    """A sign-in that no sign-out has ended."""

    position: int
    """The position of its event in the log."""
    method: SignInMethod
    began_at: datetime


class KnownPerson(Struct):
    """A person as of the last event that was seen."""

    email: str = ""
    name: str = ""
    added_by: str = ""
    """The organization whose owner added them; empty: they were added from the terminal."""
    is_operator: bool = False
    roles: dict[str, Role] = field(default_factory=dict)
    """By organization."""
    has_used_proxy: bool = False
    """Whether a trusted proxy has signed them in."""
    sessions: dict[str, OpenSession] = field(default_factory=dict)
    lowered_at: int = 0
    """The position of the last event that took a right: it ends the sessions that began before it."""

    def is_anyone(self) -> bool:
        """Return whether the person has any right here."""
        return self.is_operator or bool(self.roles)


class PeopleDirectory:
    """Everyone in memory, as of the last events that were seen.

    ``run`` keeps it up to date: what this process records is known at once, what others record within 25 ms or so.
    Three categories are followed, in no order between them: so whether a session outlived a lowered role goes by
    positions.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._people: dict[str, KnownPerson] = {}
        self._positions = {PEOPLE.category: 0, MEMBERS.category: 0, ERASURES.category: 0}
        self._catching_up = asyncio.Lock()
        self._is_complete = False
        self.changed = asyncio.Event()
        """Set when a session may have ended; the one who waits clears it."""

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async with asyncio.TaskGroup() as following:
            for category in self._positions:
                following.create_task(self._follow(category))

    async def _follow(self, category: str) -> None:
        async for batch in self._store.follow(after=self._positions[category], category=category):
            self._apply(category, batch)

    async def catch_up(self) -> None:
        """Read what the log has by now."""
        async with self._catching_up:
            for category in self._positions:
                while page := await self._store.read_all(after=self._positions[category], category=category):
                    self._apply(category, page)
            self._is_complete = True

    def require_complete(self) -> None:
        """Raise StoreUnavailable: not everyone is known here, since the keys of what people are named by were away at
        the start.
        """
        if not self._is_complete:
            raise StoreUnavailable("the vault does not answer, which has the keys of people's names")

    def find(self, person_id: str) -> KnownPerson | None:
        return self._people.get(person_id)

    def session(self, person_id: str, session_id: str) -> OpenSession | None:
        """Return a session that is open by the log: neither signed out, nor begun before a right was taken."""
        person = self._people.get(person_id)
        found = person.sessions.get(session_id) if person is not None and person.is_anyone() else None
        return found if found is not None and person is not None and found.position > person.lowered_at else None

    def account_of(
        self, email: str, wanted: str = "", *, vouched_for_by: str = "", proven: Collection[str] = ()
    ) -> str:
        """Return the id of the person whom a trusted proxy, or an identity provider, names by this email.

        An organization's owner may have added anyone's email. So it opens an account that the terminal added, that of
        an organization that the email's domain belongs to (``vouched_for_by``), and one that is known to be the same
        person's (``proven``), who has opened the link of the invitation in this browser. The one that the person wants
        comes first, then the one of the terminal.

        Raises Forbidden ``no_account``: no one with any right has it, or only by an invitation that was not accepted;
        and SeveralAccounts, of several organizations.
        """
        here = self.accounts_of(email)
        found = [one for one in here if one in proven or self._people[one].added_by in ("", vouched_for_by)]
        if here and not found:
            raise Forbidden(
                f"{email} was invited. Open the link of the invitation first, then sign in so in the same browser.",
                code="no_account",
            )
        if wanted in found:
            return wanted
        of_terminal = [one for one in found if not self._people[one].added_by]
        if not found:
            raise Forbidden(
                f"{email} has no role here. Ask an owner of your organization to add you.", code="no_account"
            )
        if len(of_terminal or found) > 1:
            raise SeveralAccounts(email, of_terminal or found)
        return (of_terminal or found)[0]

    def proven_by_proxy(self, email: str) -> list[str]:
        """Return the ids of those with this email whom a trusted proxy has signed in before."""
        return [one for one in self.accounts_of(email) if self._people[one].has_used_proxy]

    def accounts_of(self, email: str) -> list[str]:
        """Return the ids of all with this email who have any right."""
        return [one for one, person in self._people.items() if person.email == email and person.is_anyone()]

    def roles(self, person_id: str) -> Mapping[str, Role]:
        person = self._people.get(person_id)
        return person.roles if person is not None else {}

    def _apply(self, category: str, events: Sequence[RecordedEvent]) -> None:
        fresh = [event for event in events if event.position > self._positions[category]]
        for recorded in fresh:
            for person_id, event in decoded(PEOPLE, [recorded]):
                self._on_person(self._people.setdefault(person_id, KnownPerson()), event, recorded.position)
            for organization_id, change in decoded(MEMBERS, [recorded]):
                self._on_member(organization_id, change, recorded.position)
            for subject, _ in decoded(ERASURES, [recorded]):
                if PEOPLE.owns(subject):
                    erased = self._people.setdefault(PEOPLE.entity_id(subject), KnownPerson())
                    erased.email = erased.name = ERASED
        if fresh:
            self._positions[category] = fresh[-1].position
            self.changed.set()

    def _on_person(self, person: KnownPerson, event: PersonEvent, position: int) -> None:
        match event:
            case PersonAdded(email=email, name=name, organization_id=added_by):
                person.email, person.name, person.added_by = email, name, added_by
            case PersonRenamed(name=name):
                person.name = name
            case OperatorGiven():
                person.is_operator = True
            case OperatorRemoved():
                person.is_operator = False
                person.lowered_at = max(person.lowered_at, position)
            case SignedIn(session_id=session_id, method=method, signed_in_at=at):
                person.has_used_proxy = person.has_used_proxy or method == "proxy"
                person.sessions = _without_old(person.sessions, at)
                person.sessions[session_id] = OpenSession(position, method, at)
            case SignedOut(session_id=session_id):
                person.sessions.pop(session_id, None)
            case SignInLinkMade():
                pass

    def _on_member(self, organization_id: str, change: RoleGiven | RoleRemoved, position: int) -> None:
        person = self._people.setdefault(change.person_id, KnownPerson())
        before = person.roles.get(organization_id)
        if isinstance(change, RoleRemoved):
            person.roles.pop(organization_id, None)
            is_lowered = before is not None
        else:
            person.roles[organization_id] = change.role
            is_lowered = before is not None and not is_at_least(change.role, before)
        if is_lowered:
            person.lowered_at = max(person.lowered_at, position)


def _without_old(sessions: Mapping[str, OpenSession], at: datetime) -> dict[str, OpenSession]:
    return {one: session for one, session in sessions.items() if at - session.began_at < SESSION_LIFETIME}
