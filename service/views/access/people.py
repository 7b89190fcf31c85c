"""People, their roles, and the sessions that they have open."""

from typing import Annotated

from msgspec import Struct

from service.domain.access.members import Role
from service.domain.access.people import INVITATION_DAYS, SignInMethod
from service.views.fields import NextCursor, Timestamp, described


class MemberView(Struct, frozen=True, rename="camel"):
    """A person who has a role in an organization."""

    id: Annotated[str, described("The person's id.")]
    organization_id: Annotated[str, described("The organization.")]
    email: Annotated[str, described("The person's email.")]
    name: Annotated[str, described("The person's name.")]
    role: Annotated[
        Role, described("A viewer reads; an editor also gives jobs; an owner also manages keys and people.")
    ]
    given_at: Annotated[Timestamp, described("When the person got this role.")]
    signed_in_at: Annotated[Timestamp | None, described("When the person last signed in; null for never.")]


class InvitedView(MemberView, frozen=True, rename="camel", kw_only=True):
    """A person, with a link that signs them in."""

    sign_in_link: Annotated[
        str, described(f"Signs the person in, once, within {INVITATION_DAYS} days. It is shown this once.")
    ]


class MemberList(Struct, frozen=True, rename="camel"):
    """Some of an organization's people, by email."""

    people: Annotated[tuple[MemberView, ...], described("The people.")]
    next_cursor: NextCursor


class OrganizationRoleView(Struct, frozen=True, rename="camel"):
    """A role of a person in one organization."""

    organization_id: Annotated[str, described("The organization.")]
    role: Annotated[Role, described("The role there.")]


class PersonView(Struct, frozen=True, rename="camel"):
    """A person, with every role: for the operator."""

    id: Annotated[str, described("The person's id.")]
    email: Annotated[str, described("The person's email.")]
    name: Annotated[str, described("The person's name.")]
    is_operator: Annotated[bool, described("Whether the person operates the installation.")]
    roles: Annotated[tuple[OrganizationRoleView, ...], described("The person's roles, by organization.")]
    added_by: Annotated[str | None, described("The organization whose owner added them; null: from the terminal.")]
    added_at: Annotated[Timestamp, described("When the person was added.")]
    signed_in_at: Annotated[Timestamp | None, described("When the person last signed in; null for never.")]


class SessionView(Struct, frozen=True, rename="camel"):
    """A browser in which a person is signed in."""

    id: Annotated[str, described("The session's id.")]
    browser: Annotated[str, described("The browser, by what it says of itself.")]
    address: Annotated[str, described("The address that it signed in from.")]
    method: Annotated[SignInMethod, described("How the person signed in.")]
    began_at: Annotated[Timestamp, described("When the person signed in.")]
    used_at: Annotated[Timestamp, described("When it was last used, to five minutes.")]
    is_current: Annotated[bool, described("Whether it is the session that asks.")]
