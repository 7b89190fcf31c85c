"""The people of an organization, and the role of each.

One stream has all people of an organization, so that it keeps an owner whatever is written at the same time.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct

from service.domain.errors import Conflict, NotFound
from service.domain.events import Event

Role = Literal["owner", "editor", "viewer"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""From the least to the most."""
MAX_MEMBERS = 1_000
"""Limit for one organization: all of them are in memory, and in one stream."""

PERSON_NOT_FOUND = "person_not_found"
NOT_A_MEMBER = "Person not found in this organization. Look at the list of its people."


def is_at_least(role: Role, least: Role) -> bool:
    return ROLES.index(role) >= ROLES.index(least)


class RoleGiven(Event, frozen=True, tag="role-given"):
    """To someone new, or in place of the role before."""

    person_id: str
    role: Role
    given_at: datetime


class RoleRemoved(Event, frozen=True, tag="role-removed"):
    person_id: str
    removed_at: datetime


MemberEvent = RoleGiven | RoleRemoved


class GiveRole(Struct, frozen=True):
    person_id: str
    role: Role
    now: datetime
    is_member: bool = False
    """Whether the person must have a role already."""


class RemoveRole(Struct, frozen=True):
    person_id: str
    now: datetime


MemberCommand = GiveRole | RemoveRole


class Members(Struct, frozen=True):
    roles: Mapping[str, Role] = {}
    """By the id of the person."""


def decide(command: MemberCommand, members: Members) -> list[MemberEvent]:
    """Return the events of a command. Raise NotFound, or Conflict ``last_owner`` and ``too_many_members``."""
    roles = members.roles
    match command:
        case GiveRole(person_id=person_id, role=role, now=now):
            if command.is_member and person_id not in roles:
                raise NotFound(NOT_A_MEMBER, code=PERSON_NOT_FOUND)
            if roles.get(person_id) == role:
                return []
            if person_id not in roles and len(roles) >= MAX_MEMBERS:
                raise Conflict(
                    f"An organization has at most {MAX_MEMBERS} people. Remove one first.", code="too_many_members"
                )
            if role != "owner":
                _require_other_owner(roles, person_id)
            return [RoleGiven(person_id, role, now)]
        case RemoveRole(person_id=person_id, now=now):
            if person_id not in roles:
                raise NotFound(NOT_A_MEMBER, code=PERSON_NOT_FOUND)
            _require_other_owner(roles, person_id)
            return [RoleRemoved(person_id, now)]
        case _:
            assert_never(command)


def _require_other_owner(roles: Mapping[str, Role], person_id: str) -> None:
    if roles.get(person_id) == "owner" and list(roles.values()).count("owner") == 1:
        raise Conflict(
            "This person is the organization's last owner. Make someone else an owner first.", code="last_owner"
        )


def evolve(members: Members, event: MemberEvent) -> Members:
    match event:
        case RoleGiven(person_id=person_id, role=role):
            return Members({**members.roles, person_id: role})
        case RoleRemoved(person_id=person_id):
            return Members({one: role for one, role in members.roles.items() if one != person_id})
        case _:
            assert_never(event)
