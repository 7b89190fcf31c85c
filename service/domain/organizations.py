"""An organization: who owns projects and keys."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from service.domain.errors import Conflict, Invalid
from service.domain.events import Event

MAX_NAME_CHARACTERS = 200


class OrganizationCreated(Event, frozen=True, tag="organization-created"):
    name: str
    created_at: datetime


OrganizationEvent = OrganizationCreated


class CreateOrganization(Struct, frozen=True):
    name: str
    now: datetime


OrganizationCommand = CreateOrganization


class Absent(Struct, frozen=True):
    pass


class Organization(Struct, frozen=True):
    name: str


OrganizationState = Absent | Organization


def decide(command: OrganizationCommand, state: OrganizationState) -> list[OrganizationEvent]:
    """Return the events of a command. Raise Conflict when it exists, Invalid for its name."""
    match command, state:
        case CreateOrganization(name=name, now=now), Absent():
            return [OrganizationCreated(checked_name(name), created_at=now)]
        case CreateOrganization(), Organization():
            raise Conflict("This organization exists already.")
        case _:
            raise AssertionError(command)


def evolve(_state: OrganizationState, event: OrganizationEvent) -> OrganizationState:
    match event:
        case OrganizationCreated(name=name):
            return Organization(name)
        case _:
            assert_never(event)


def checked_name(name: str) -> str:
    """Return the name of an organization, project or key without outer space.

    Raise Invalid unless it has 1 to 200 printable characters.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise Invalid(f"A name has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    return name
