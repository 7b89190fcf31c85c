"""The question of a reply, from its thread."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from eventstore import Loaded, RecordedEvent
from service.assistant.question import Exchange, Question
from service.domain.events import DAMAGED
from service.domain.threads.threads import Thread, ThreadState, Turn
from service.streams import THREADS

MAX_FIRST_EVENTS = 8
"""More than a thread and its first reply begin with."""
MAX_EARLIER_TURNS = 50
"""More than fits any prompt; the assistant takes what fits of them. The newest, and the very first."""


def up_to(batch: Sequence[RecordedEvent], place: int) -> Sequence[RecordedEvent]:
    """Return the thread of an event from its first event to this one, if all are in the batch; else the event alone.

    Most replies are the first of their thread, whose events are recorded together.
    """
    last = batch[place]
    first = place + 1 - last.stream_version
    is_new = last.stream_version <= MAX_FIRST_EVENTS and first >= 0 and batch[first].stream == last.stream
    has_more = place + 1 < len(batch) and batch[place + 1].stream == last.stream
    begun = batch[first : place + 1] if is_new and not has_more else ()
    return begun if begun and all(event.stream == last.stream for event in begun) else (last,)


def thread_of(begun: Sequence[RecordedEvent]) -> Loaded[ThreadState] | None:
    """Return a thread from its first events, without reading the log; None where they are not all there and whole."""
    last = begun[-1]
    if len(begun) != last.stream_version or any(event.erased or event.damaged for event in begun):
        return None
    state = THREADS.initial
    for event in begun:
        state = THREADS.evolve(state, THREADS.codec.decode(event))
    return Loaded(state, last.stream_version, last.position)


def question_of(thread: Thread, reply_id: str) -> Question:
    """Return the question of a reply, with the turns before it as the thread's own record has them."""
    index = thread.index_of(reply_id)
    assert index is not None
    asked = thread.turns[index].message
    before = thread.turns.first(index)
    earlier = list(islice(_exchanges(reversed(before)), MAX_EARLIER_TURNS))
    if len(earlier) == MAX_EARLIER_TURNS:  # however long it is, what the thread began with stays known
        earlier[-1] = next(_exchanges(before), earlier[-1])
    return Question(
        domain=thread.domain,
        reply_id=reply_id,
        text=asked.text,
        earlier=tuple(reversed(earlier)),
        context=asked.context,
        current_path=asked.current_path,
        filter=asked.filter,
        page_size=asked.page_size,
    )


def _exchanges(turns: Iterable[Turn]) -> Iterator[Exchange]:
    """Yield the turns that have an answer and can be read."""
    for turn in turns:
        reply = turn.reply
        if reply is not None and reply.text and DAMAGED not in (turn.message.text, reply.text):
            cited = tuple(source for source in reply.sources if source.number in reply.cited)
            yield Exchange(turn.message.text, reply.text, cited)
