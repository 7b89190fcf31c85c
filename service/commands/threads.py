"""Threads: start one, post to it, rate a reply."""

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, Executed, Metadata, SubjectErased, execute
from service.domain.errors import NotFound
from service.domain.search import SearchFilter
from service.domain.threads.feedback import GiveFeedback
from service.domain.threads.recorded_reply import Caller
from service.domain.threads.threads import (
    ANONYMOUS,
    DEFAULT_PAGE_SIZE,
    PostMessage,
    RecordEmptySearch,
    StartThread,
    Thread,
    ThreadEvent,
    ThreadState,
    digest_of,
)
from service.runtime.system import new_capability, new_id, now
from service.streams import THREADS
from service.views.projects import ProjectView


class PostedMessage(Struct, frozen=True):
    thread_id: str
    thread_key: str | None
    """Only for a new thread."""
    reply_id: str
    position: int


def plain_question(text: str, *, domain: str, instance: str, caller: Caller) -> PostMessage:
    """Return a question without context or filter as a message to the assistant; ``instance`` will answer it."""
    return PostMessage(
        message_id=new_id(),
        client_message_id="",
        text=text,
        context=(),
        current_path="",
        filter=SearchFilter(),
        page_size=DEFAULT_PAGE_SIZE,
        api_version=2,
        reply_id=f"msg_{new_id()}",
        instance=instance,
        domain=domain,
        fp=ANONYMOUS,
        now=now(),
        caller=caller,
    )


async def start_thread(
    store: EventStore, project: ProjectView, message: PostMessage, metadata: Metadata
) -> PostedMessage:
    """Start a thread with its first message. Raise Invalid for its fields."""
    thread_id, thread_key = new_capability(), new_capability()
    position = await _create(store, thread_id, _start(project, message, thread_key), metadata)
    return PostedMessage(thread_id, thread_key, message.reply_id, position)


async def record_empty_search(
    store: EventStore, project: ProjectView, message: PostMessage, metadata: Metadata
) -> None:
    """Record a search that found nothing as a question without an answer. Raise Invalid for its fields."""
    message = replace(message, instance="")  # no process is to answer it
    await _create(store, new_capability(), RecordEmptySearch(_start(project, message, new_capability())), metadata)


def _start(project: ProjectView, message: PostMessage, thread_key: str) -> StartThread:
    return StartThread(project.organization_id, project.id, project.domain, message.fp, digest_of(thread_key), message)


async def _create(
    store: EventStore, thread_id: str, command: StartThread | RecordEmptySearch, metadata: Metadata
) -> int:
    """Return the position of the last event of a new thread."""
    new: Executed[ThreadState, ThreadEvent] = Executed((), THREADS.initial, position=0, version=0)
    return (await execute(store, THREADS, thread_id, command, metadata=metadata, known=new)).position


async def post_message(store: EventStore, thread_id: str, message: PostMessage, metadata: Metadata) -> PostedMessage:
    """Add a message. Raise NotFound ``thread_not_found``, also when the sender may not write to the thread."""
    try:
        done = await execute(store, THREADS, thread_id, message, metadata=metadata)
    except SubjectErased as error:
        raise NotFound("Thread not found. Leave its id out to begin a new one.", code="thread_not_found") from error
    if not done.events and isinstance(done.state, Thread) and (index := done.state.index_asked(message)) is not None:
        reply = done.state.turns[index].reply  # it was sent before: its reply is sent again
        if reply is not None:
            return PostedMessage(thread_id, None, reply.reply_id, done.position)
    return PostedMessage(thread_id, None, message.reply_id, done.position)


async def give_feedback(store: EventStore, thread_id: str, feedback: GiveFeedback, metadata: Metadata) -> None:
    """Raises NotFound (``thread_not_found``, ``message_not_found``) and Conflict."""
    try:
        await execute(store, THREADS, thread_id, feedback, metadata=metadata)
    except SubjectErased as error:
        raise NotFound("Thread not found. Leave its id out to begin a new one.", code="thread_not_found") from error
