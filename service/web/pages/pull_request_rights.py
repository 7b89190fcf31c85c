"""Rights on the embedded code host's pull requests: its link is enough to read, and a role is needed to act."""

from aiohttp import web

from eventstore import Metadata
from service.domain.access.members import is_at_least
from service.queries.projects import get_project
from service.web.http.access.people import known_person, metadata
from service.web.http.app_keys import VIEWS
from service.web.pages.pull_request_views import Rights

ACT_BY_LINK: web.AppKey[bool] = web.AppKey("ACT_BY_LINK")
"""Anyone who has the link of a pull request may merge and close it."""


async def rights_of(request: web.Request, project_id: str) -> Rights:
    by_link = request.app[ACT_BY_LINK]
    person = known_person(request)
    if person is None:
        return Rights(may_decide=by_link)
    project = await get_project(request.app[VIEWS], project_id)
    role = person.roles.get(project.organization_id) if project else None
    if project is None or role is None:
        return Rights(may_decide=by_link, is_signed_in=True)
    is_editor = is_at_least(role, "editor")
    name = person.name or person.email
    return Rights(by_link or is_editor, is_editor, True, name, project.organization_id)


def actor_of(request: web.Request, rights: Rights) -> Metadata:
    """Return the cause of what the reader does: the person, or no one by name for a reader with the link alone."""
    return metadata(request) if rights.is_signed_in else Metadata()
