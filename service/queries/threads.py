"""Threads and their replies: those under way, and those of a chat."""

from collections.abc import Collection

from msgspec import Struct

from eventstore import EventStore, RecordedEvent, Views, load
from service.domain.threads.recorded_reply import Reply, ReplyStarted
from service.domain.threads.replies import ResumeRequest
from service.domain.threads.threads import PostMessage, Thread, ThreadEvent
from service.projections.threads import digest_of_chat
from service.queries.read_models import wait_for_head
from service.streams import THREADS, decoded

MAX_CANDIDATES = 50
"""Replies that are looked at of chats with one name, which people may all give theirs."""
MAX_LAST_REPLIES = 500
"""Replies that are looked at after a crash; more than a service ends in the moment before it."""
EVENTS_OF_REPLY = 250
"""More than most replies have."""


class ActiveReply(Struct, frozen=True):
    thread_id: str
    reply_id: str
    instance: str


class ChatReply(Struct, frozen=True):
    """A reply, and the position in the log of its beginning."""

    thread_id: str
    reply_id: str
    position: int


async def active_replies(views: Views) -> list[ActiveReply]:
    """Return the replies that were begun and have not ended, oldest first."""
    rows = await views.query(
        "SELECT thread_id, id, instance FROM replies WHERE state = 'active' ORDER BY started_at, id", ()
    )
    return [ActiveReply(*row) for row in rows]


async def last_replies(views: Views, instances: Collection[str]) -> list[ActiveReply]:
    """Return the last replies in chats that processes of these names have given and ended, newest first."""
    rows = await views.query(
        "SELECT thread_id, id, instance, state, chat FROM replies ORDER BY rowid DESC LIMIT ?", (MAX_LAST_REPLIES,)
    )
    return [
        ActiveReply(thread_id, reply_id, instance)
        for thread_id, reply_id, instance, state, chat in rows
        if instance in instances and state != "active" and chat is not None
    ]


async def replies_in_chat(
    store: EventStore, views: Views, domain: str, chat_id: str, asker: str | None
) -> list[ChatReply]:
    """Return the last replies in a site's chats of that name, newest first; of one ``asker``, unless None."""
    await wait_for_head(store, views)
    rows = await views.query(
        "SELECT r.thread_id, r.id, r.position FROM replies r JOIN threads t ON t.id = r.thread_id"
        " WHERE r.chat = ? AND t.domain = ? AND (r.asker = ? OR ?) ORDER BY r.position DESC LIMIT ?",
        (digest_of_chat(chat_id), domain, asker, asker is None, MAX_CANDIDATES),
    )
    return [ChatReply(*row) for row in rows]


async def events_of_reply(store: EventStore, thread_id: str, reply_id: str) -> list[ThreadEvent]:
    """Return the events of a thread from the beginning of a reply on."""
    recorded = await recorded_of_reply(store, thread_id, reply_id)
    return [event for _, event in decoded(THREADS, recorded)]


async def recorded_of_reply(store: EventStore, thread_id: str, reply_id: str) -> list[RecordedEvent]:
    """Return the events of a thread from the beginning of a reply on, as they are on record."""
    limit = 0
    while True:
        limit = 2 * limit or EVENTS_OF_REPLY
        read = await store.read_stream(THREADS.stream(thread_id), limit=limit, backwards=True)
        for at, one in enumerate(read):
            if one.type == "reply-started" and _begins(one, reply_id):
                return read[at::-1]
        if len(read) < limit:
            return []


def _begins(recorded: RecordedEvent, reply_id: str) -> bool:
    return any(
        isinstance(event, ReplyStarted) and event.reply_id == reply_id for _, event in decoded(THREADS, [recorded])
    )


class FoundReply(Struct, frozen=True):
    thread_id: str
    reply: Reply


async def find_reply_to_resume(
    store: EventStore, views: Views, chat_id: str, reader: ResumeRequest
) -> FoundReply | None:
    """Return the newest reply in the chat that this reader may have, if it still waits for it."""
    asker = None if reader.thread_key is not None else reader.asker
    for one in await replies_in_chat(store, views, reader.domain, chat_id, asker):
        thread = (await load(store, THREADS, one.thread_id, may_be_old=True)).state
        turn = thread.turn_of(one.reply_id) if isinstance(thread, Thread) else None
        if not isinstance(thread, Thread) or turn is None or turn.reply is None:
            continue  # another reply has taken its place, or it is erased
        if reader.may_hear(thread, turn.reply):
            return FoundReply(one.thread_id, turn.reply) if reader.waits_for(turn.reply) else None
    return None


async def find_thread_of_message(store: EventStore, views: Views, message: PostMessage) -> str | None:
    """Return the thread in which the caller has sent this very message before, in a chat of that name."""
    found = await replies_in_chat(store, views, message.domain, message.chat_id, message.asker)
    for thread_id in dict.fromkeys(one.thread_id for one in found):
        thread = (await load(store, THREADS, thread_id, may_be_old=True)).state
        if isinstance(thread, Thread) and message.client_message_id and thread.index_asked(message) is not None:
            return thread_id
    return None
