"""The senders that may report changes on code hosts: a project and its secret."""

from eventstore import EventStore, Views, load
from service.domain.events import GONE
from service.domain.hooks.incoming import Open
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.streams import INCOMING
from service.views.projects import ProjectView


async def project_with_secret(
    store: EventStore, views: Views, project_id: str
) -> tuple[ProjectView | None, str | None]:
    """Return a project and the secret of its code host's reports, each None without one."""
    project = await get_project(views, project_id)
    if project is None and await store.stream_version(INCOMING.stream(project_id)) > 0:  # created a moment ago
        await wait_for_head(store, views)
        project = await get_project(views, project_id)
    state = INCOMING.initial if project is None else (await load(store, INCOMING, project.id, may_be_old=True)).state
    return project, state.secret if isinstance(state, Open) and state.secret not in GONE else None
