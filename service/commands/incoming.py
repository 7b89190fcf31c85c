"""Reports of code hosts: the secret that lets them in, and their pushes."""

from contextlib import suppress

from eventstore import Append, EventStore, Metadata, WrongExpectedVersion, execute, plan
from service.commands.webhooks import new_secret
from service.domain.errors import Conflict
from service.domain.hooks.incoming import (
    CommentedThere,
    Push,
    RecordCommentReport,
    RecordPushReceived,
    SetIncomingSecret,
)
from service.domain.sites import RequestIndex
from service.runtime.system import now
from service.streams import INCOMING, SITES

MAX_TRIES = 20
HOSTS = {"github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea"}


async def set_incoming_secret(store: EventStore, project_id: str, metadata: Metadata) -> str:
    """Give the project a new secret and return it; earlier ones are no longer valid."""
    secret = new_secret()
    await execute(store, INCOMING, project_id, SetIncomingSecret(secret, now()), metadata=metadata)
    return secret


async def record_push(store: EventStore, project_id: str, domain: str, push: Push, metadata: Metadata) -> None:
    """Record the push and ask for the index, together: the host does not report it again once it has its answer.

    The same delivery again does nothing. Raises NotFound, and Conflict when too many come at once.
    """
    at = now()
    received = RecordPushReceived(push.delivery_id, push.host, push.ref, push.commit, at)
    index = RequestIndex(f"a push, reported by {HOSTS[push.host]}", at)
    for _ in range(MAX_TRIES):
        record = await plan(store, INCOMING, project_id, received, metadata=metadata)
        if record is None:
            return  # the same delivery again
        wanted = await plan(store, SITES, domain, index, metadata=metadata)
        writes: list[Append] = [write for write in (record, wanted) if write is not None]
        with suppress(WrongExpectedVersion):
            await store.append_all(writes)
            return
    raise Conflict("Too many pushes arrive at once. Send this one again.")


async def record_comment_report(
    store: EventStore, project_id: str, comment: CommentedThere, metadata: Metadata
) -> None:
    """Record that a pull request has a comment; the same delivery again does nothing. Raises NotFound."""
    report = RecordCommentReport(comment.delivery_id, comment.host, comment.number, now())
    await execute(store, INCOMING, project_id, report, metadata=metadata)
