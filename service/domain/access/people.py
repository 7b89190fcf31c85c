"""A person: who they are, how they sign in, and whether they operate the installation.

No passwords: a one-time link, or what is built upon it. Of a link only its SHA-256 is stored; the newest one alone is
valid, once. A person is found by their id. The same email may belong to two people: an organization's owner who adds
one proves nothing about it, so that no account of another organization is opened by it.
"""

import re
import string
from datetime import datetime, timedelta
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Conflict, Invalid, NotFound, Unauthorized
from service.domain.events import Event, PersonalText
from service.domain.organizations import checked_name
from service.domain.texts.times import has_come
from service.domain.texts.unicode_forms import normalized

SignInMethod = Literal["link", "passkey", "oidc", "proxy"]

LINK_MINUTES = 15
LINK_LIFETIME = timedelta(minutes=LINK_MINUTES)
"""The lifetime of a link that someone makes to sign in at once."""
INVITATION_DAYS = 7
INVITATION_LIFETIME = timedelta(days=INVITATION_DAYS)
"""The lifetime of a link that is sent to somebody else."""
CLOCKS_DIFFER = timedelta(minutes=1)
"""Between instances."""
SESSION_LIFETIME = timedelta(days=30)
"""However much it is used."""
SESSION_IDLE = timedelta(hours=12)
"""Without a request."""
MAX_EMAIL_CHARACTERS = 254
"""RFC 5321, section 4.5.3.1.3, without the brackets."""
LINK_NOT_VALID = "This sign-in link is not valid: it was used already, or a newer one replaced it. Ask for a new one."

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_EMAIL = re.compile(r"[^\s@,;:<>()\[\]\\\"]{1,64}@[^\s@,;:<>()\[\]\\\"]{1,253}")


class PersonAdded(Event, frozen=True, tag="person-added"):
    email: PersonalText
    name: PersonalText
    added_at: datetime
    organization_id: str = ""
    """The organization whose owner added them; empty: they were added from the terminal."""


class PersonRenamed(Event, frozen=True, tag="person-renamed"):
    name: PersonalText
    renamed_at: datetime


class OperatorGiven(Event, frozen=True, tag="operator-given"):
    given_at: datetime


class OperatorRemoved(Event, frozen=True, tag="operator-removed"):
    removed_at: datetime


class SignInLinkMade(Event, frozen=True, tag="sign-in-link-made"):
    digest: str
    """SHA-256 of the link's secret, in hex."""
    made_at: datetime
    expires_at: datetime


class SignedIn(Event, frozen=True, tag="signed-in"):
    session_id: str
    method: SignInMethod
    signed_in_at: datetime


class SignedOut(Event, frozen=True, tag="signed-out"):
    """A session that the person ended, from it or another one; or one that new rights ended."""

    session_id: str
    signed_out_at: datetime


PersonEvent = PersonAdded | PersonRenamed | OperatorGiven | OperatorRemoved | SignInLinkMade | SignedIn | SignedOut


class AddPerson(Struct, frozen=True):
    email: str
    name: str
    now: datetime
    organization_id: str = ""
    is_operator: bool = False


class RenamePerson(Struct, frozen=True):
    name: str
    now: datetime


class SetOperator(Struct, frozen=True):
    is_operator: bool
    now: datetime
    ends_sessions: bool = False
    """The sign-in link that can be used ends, too."""


class MakeSignInLink(Struct, frozen=True):
    digest: str
    now: datetime
    lifetime: timedelta = LINK_LIFETIME


class EndSignInLink(Struct, frozen=True):
    now: datetime


class SignIn(Struct, frozen=True):
    session_id: str
    method: SignInMethod
    now: datetime
    link_digest: str = ""
    """For ``link``: the SHA-256 of its secret."""


class SignOut(Struct, frozen=True):
    session_id: str
    now: datetime


PersonCommand = AddPerson | RenamePerson | SetOperator | MakeSignInLink | EndSignInLink | SignIn | SignOut


class Absent(Struct, frozen=True):
    pass


class Person(Struct, frozen=True):
    organization_id: str = ""
    name: str = ""
    is_operator: bool = False
    link_digest: str = ""
    """The digest of the link that can be used; empty for none."""
    link_expires_at: datetime | None = None
    sessions: dict[str, datetime] = {}
    """When each session began that was not ended by a sign-out."""


PersonState = Absent | Person


def decide(command: PersonCommand, state: PersonState) -> list[PersonEvent]:
    """Return the events of a command. Raise NotFound, Conflict, Invalid or Unauthorized (a link)."""
    match command, state:
        case AddPerson() as new, Absent():
            added = PersonAdded(checked_email(new.email), checked_name(new.name), new.now, new.organization_id)
            return [added, OperatorGiven(new.now)] if new.is_operator else [added]
        case AddPerson(), Person():
            raise Conflict("This person exists already.")
        case SignIn(method="link"), Absent():
            raise Unauthorized(LINK_NOT_VALID, code="link_not_valid")
        case _, Absent():
            raise NotFound("Person not found. List the people to see their ids.", code="person_not_found")
        case RenamePerson(name=name, now=now), Person():
            name = checked_name(name)
            return [PersonRenamed(name, now)] if name != state.name else []
        case SetOperator(is_operator=is_operator, now=now), Person():
            changed = _ended(state, now) if command.ends_sessions else []
            if is_operator == state.is_operator:
                return changed
            return [*changed, OperatorGiven(now) if is_operator else OperatorRemoved(now)]
        case MakeSignInLink(digest=digest, now=now, lifetime=lifetime), Person():
            return [SignInLinkMade(digest, now, now + lifetime)]
        case EndSignInLink(now=now), Person():
            return _without_link(state, now)
        case SignIn() as wanted, Person():
            if wanted.session_id in state.sessions:
                return []
            if wanted.method == "link":
                _require_link(wanted, state)
            return [SignedIn(wanted.session_id, wanted.method, wanted.now)]
        case SignOut(session_id=session_id, now=now), Person():
            return [SignedOut(session_id, now)] if session_id in state.sessions else []
        case _:
            raise AssertionError(command)


def _ended(person: Person, now: datetime) -> list[PersonEvent]:
    """Return the events that end each session and the link that can be used."""
    return [*(SignedOut(one, now) for one in person.sessions), *_without_link(person, now)]


def _without_link(person: Person, now: datetime) -> list[PersonEvent]:
    return [SignInLinkMade("", now, now)] if person.link_digest else []


def _require_link(wanted: SignIn, person: Person) -> None:
    """Raise Unauthorized ``link_not_valid``, or ``link_expired`` to who has the newest one."""
    if not wanted.link_digest or wanted.link_digest != person.link_digest or person.link_expires_at is None:
        raise Unauthorized(LINK_NOT_VALID, code="link_not_valid")
    if has_come(person.link_expires_at, wanted.now, INVITATION_LIFETIME + CLOCKS_DIFFER):
        raise Unauthorized("This sign-in link has expired. Ask for a new one.", code="link_expired")


def evolve(state: PersonState, event: PersonEvent) -> PersonState:
    if isinstance(event, PersonAdded):
        return Person(event.organization_id, event.name)
    assert isinstance(state, Person)
    match event:
        case PersonRenamed(name=name):
            return replace(state, name=name)
        case OperatorGiven():
            return replace(state, is_operator=True)
        case OperatorRemoved():
            return replace(state, is_operator=False)
        case SignInLinkMade(digest=digest, expires_at=expires_at):
            return replace(state, link_digest=digest, link_expires_at=expires_at)
        case SignedIn(session_id=session_id, method=method, signed_in_at=at):
            kept = {one: began for one, began in state.sessions.items() if at - began < SESSION_LIFETIME}
            state = replace(state, sessions={**kept, session_id: at})
            return replace(state, link_digest="", link_expires_at=None) if method == "link" else state
        case SignedOut(session_id=session_id):
            return replace(state, sessions={one: at for one, at in state.sessions.items() if one != session_id})
        case _:
            assert_never(event)


def small_letters(text: str) -> str:
    """Return a text with small letters from A to Z; other letters stay, since some become ASCII ones."""
    return text.translate(_SMALL)


def checked_email(email: str) -> str:
    """Return an email as it is stored and compared: trimmed, the letters A to Z small, all others as they are.

    Raise Invalid for what is none, and where Unicode's compatibility form (NFKC) is another text: the KELVIN SIGN must
    not sign in as a ``k``.
    """
    email = small_letters(email.strip(" \t\r\n"))
    if normalized("NFKC", email[: MAX_EMAIL_CHARACTERS + 1]) != email[: MAX_EMAIL_CHARACTERS + 1]:
        raise Invalid(f"Not an email address: {email[:100]!r} has characters that stand for others.")
    if len(email) > MAX_EMAIL_CHARACTERS or not email.isprintable() or not _EMAIL.fullmatch(email):
        raise Invalid(f"Not an email address: {email[:100]!r}. Write it as name@example.com.")
    return email
