"""Names of those who did something: a person, a key, a user at the terminal."""

from collections.abc import Callable

from aiohttp import web

from service.queries.access.keys import key_names
from service.web.http.access.people import PEOPLE_DIRECTORY
from service.web.http.app_keys import VIEWS

NameOf = Callable[[str], str]

_OTHERS = {
    "": "nobody",
    "keyless": "readers without a key",
    "system": "the service",
    "service": "the service",
    "instance": "an instance of the service",
    "oidc": "the identity provider",
}


async def actor_names(request: web.Request, organization_id: str | None) -> NameOf:
    """Return a function that names an actor as events have it; of keys those of an organization, or all of them."""
    keys, people = await key_names(request.app[VIEWS], organization_id), request.app[PEOPLE_DIRECTORY]

    def name_of(actor: str) -> str:
        kind, has_kind, name = actor.partition(":")
        match kind:
            case "person":
                person = people.find(name)
                return (person.name or person.email) if person else "a person who was removed"
            case "cli":
                return f"{name} at the terminal"
            case "hook" | "review":
                return "the code host"
            case _ if actor in keys:
                return f"key {keys[actor]}"
            case _:
                return actor if has_kind else _OTHERS.get(actor, f"key {actor[:12]}")

    return name_of
