"""Comments on pull requests: take one as a message, and record how comments were answered."""

from datetime import datetime
from functools import partial

from msgspec.structs import replace

from eventstore import EventStore, Metadata, SubjectErased, Views, execute, load, plan
from service.commands.idempotency import record_once
from service.domain.access.idempotency import ClaimRequest, fingerprint_of
from service.domain.errors import NotFound
from service.domain.jobs.comments import CommentSource, Said, said_before
from service.domain.jobs.decider import Absent, AddMessage, ReceiveComment, RecordAnswer
from service.ports.review_host import Comment
from service.queries.jobs.job_transcript import comments_of
from service.queries.jobs.jobs import jobs_of_pull_request
from service.runtime.system import new_id, now
from service.streams import JOBS


async def is_new_comment(store: EventStore, views: Views, project_id: str, number: int, comment_id: str) -> bool:
    """Return whether no job of the pull request knows the comment yet."""
    for job_id in await jobs_of_pull_request(views, project_id, number):
        state = (await load(store, JOBS, job_id)).state
        if not isinstance(state, Absent) and comment_id in state.work.review.seen:
            return False
    return True


def comment_of(comment: Comment, number: int, *, may_write: bool, per_hour: int, at: datetime) -> ReceiveComment:
    """Return the command for a comment on the pull request of this number."""
    source = replace(comment.source, number=number)
    return ReceiveComment(source, comment.text, may_write, per_hour, new_id(), at)


async def receive_comment(
    store: EventStore, views: Views, project_id: str, received: ReceiveComment, metadata: Metadata
) -> None:
    """Hand a comment to the newest job of its pull request that was not erased. One that is known does nothing."""
    comment = received.comment
    key = f"\ncomment {comment.number} {comment.id}"  # no caller's key has a newline
    for job_id in reversed(await jobs_of_pull_request(views, project_id, comment.number)):
        claim = ClaimRequest(project_id, job_id, fingerprint_of(key, b""), now())
        planned = partial(plan, store, JOBS, job_id, received, metadata=metadata)
        try:
            await record_once(store, key, claim, planned, metadata)
        except SubjectErased:
            continue
        return


async def comment_on_page(
    store: EventStore, views: Views, project_id: str, comment: CommentSource, text: str, metadata: Metadata
) -> None:
    """Send a comment from the page of a pull request to its newest job that was not erased; a known one does nothing.
    Comments on the same line, and their answers, are its thread.

    Raises NotFound without such a job, Invalid, Conflict (``too_many_messages``).
    """
    if comment.last_line is not None:
        place, said = (comment.path, comment.last_line), list[Said]()
        for one in await comments_of(store, views, project_id, comment.number):
            if (one.comment.path, one.comment.last_line) == place and one.comment.id != comment.id:
                said += [Said(one.comment.author, one.text), *([Said("Docsmith", one.answer)] if one.answer else [])]
        comment = replace(comment, before=said_before(said))
    key = f"\ncomment {comment.number} {comment.id}"
    for job_id in reversed(await jobs_of_pull_request(views, project_id, comment.number)):
        claim = ClaimRequest(project_id, job_id, fingerprint_of(key, b""), now())
        planned = partial(plan, store, JOBS, job_id, AddMessage(text, now(), comment), metadata=metadata)
        try:
            await record_once(store, key, claim, planned, metadata)
        except SubjectErased:
            continue
        return
    raise NotFound("The pull request has no job that could read a comment. Create a job.", code="job_not_found")


async def record_answer(store: EventStore, job_id: str, answer: RecordAnswer, metadata: Metadata) -> None:
    """Record that comments were answered, or that the answer was given up; again does nothing."""
    await execute(store, JOBS, job_id, answer, metadata=metadata)
