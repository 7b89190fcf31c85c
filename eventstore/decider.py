"""From a command to the events it causes: read the stream, fold, decide, append; again when another was faster.

After Emmett's decider (``src/packages/emmett/src/typing/decider.ts``): ``decide`` and ``evolve`` are pure, all else
is here.

What is recorded here carries ids that were made for the command, so that an append of unknown outcome can be repeated.
A store does so by itself, a few times. If the outcome is still unknown, the caller may execute the command again with
the same ``CommandId``: what an earlier try has recorded is found by its id, and not decided on again.

A decision is on the log itself, never on the copy that others read while it is away: the copy may lack what was just
recorded, and the command would be refused for good.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from eventstore.codec import Codec
from eventstore.errors import DuplicateEventId, OutcomeUnknown, WrongExpectedVersion
from eventstore.events import DEFAULT_METADATA, Append, Metadata, new_event_id
from eventstore.store import EventStore

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

MAX_TRIES = 100
"""For one command: of n processes that write to one stream, one gets through each time; within one they take turns."""


class CommandId:
    """The identity of one command over its tries: the ids of its events, and whether one may be recorded."""

    __slots__ = ("_first", "is_in_doubt")

    def __init__(self) -> None:
        self._first = new_event_id()
        self.is_in_doubt = False
        """A try has ended without an answer."""

    def of_event(self, number: int) -> str:
        """Return the id of one of the events that the command causes, the first being 0."""
        return f"{self._first}-{number}" if number else self._first


@dataclass(frozen=True)
class Decider(Generic[C, S, E]):
    """The rules of one kind of thing, and the streams its events are in."""

    category: str
    initial: S
    decide: Callable[[C, S], Sequence[E]]
    evolve: Callable[[S, E], S]
    codec: Codec[E]

    def stream(self, entity_id: str) -> str:
        return f"{self.category}-{entity_id}"

    def owns(self, stream: str) -> bool:
        return stream.startswith(f"{self.category}-")

    def entity_id(self, stream: str) -> str:
        return stream[len(self.category) + 1 :]


@dataclass(frozen=True)
class Loaded(Generic[S]):
    state: S
    version: int
    position: int
    """The position of the stream's last event; 0 when there is none."""
    damaged: int = 0
    """The version of the first event whose personal fields are damaged; 0 when there is none."""


@dataclass(frozen=True)
class Executed(Generic[S, E]):
    events: Sequence[E]
    state: S
    position: int
    """The position of the stream's last event, to wait until a view has it; 0 when there is none."""
    version: int
    damaged: int = 0
    """See Loaded."""


async def load(store: EventStore, decider: Decider[C, S, E], entity_id: str, *, may_be_old: bool = False) -> Loaded[S]:
    """Return the state now. ``may_be_old``: see ``EventStore.fold_stream``; for what is only shown."""
    return await _load_on(store, decider, entity_id, Loaded(decider.initial, 0, 0), may_be_old=may_be_old)


async def execute(
    store: EventStore,
    decider: Decider[C, S, E],
    entity_id: str,
    command: C,
    *,
    metadata: Metadata = DEFAULT_METADATA,
    known: Executed[S, E] | None = None,
    command_id: CommandId | None = None,
) -> Executed[S, E]:
    """Decide on a command and record what it causes.

    ``command_id``: the same for each try of one command, by a caller that tries again after OutcomeUnknown, or after it
    was cancelled. Without one the events have ids of their own.

    ``known``: what this caller executed last on the same thing; if no one else has written since, nothing is read.
    What others have written is not seen where ``decide`` refuses the command, or finds nothing to record for it.

    Raises:
        WrongExpectedVersion: writers of other processes were faster each of a hundred times.
        What ``decide`` and ``append`` raise.
    """
    stream = decider.stream(entity_id)
    contended = asyncio.get_running_loop(), stream
    if contended not in _CONTENDED:
        try:
            return await _execute(store, decider, entity_id, command, metadata, known, command_id, tries_left=1)
        except WrongExpectedVersion:
            known = None
    lock = _CONTENDED.setdefault(contended, asyncio.Lock())
    async with lock:
        return await _execute(store, decider, entity_id, command, metadata, known, command_id, tries_left=MAX_TRIES)


_CONTENDED: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = WeakValueDictionary()
"""Streams that several writers of one event loop want at once: each try of one would spoil those of all others."""


async def _execute(
    store: EventStore,
    decider: Decider[C, S, E],
    entity_id: str,
    command: C,
    metadata: Metadata,
    known: Executed[S, E] | None,
    command_id: CommandId | None,
    *,
    tries_left: int,
) -> Executed[S, E]:
    stream, command_id = decider.stream(entity_id), command_id or CommandId()
    loaded = (
        Loaded(decider.initial, 0, 0)
        if known is None
        else Loaded(known.state, known.version, known.position, known.damaged)
    )
    is_known = known is not None
    while True:
        if command_id.is_in_doubt and (done := await _recorded(store, decider, entity_id, command_id)) is not None:
            return done
        if not is_known:
            loaded = await _load_on(store, decider, entity_id, loaded, may_be_old=False)
        is_known = False
        events = decider.decide(command, loaded.state)
        if not events:
            return Executed(events, loaded.state, loaded.position, loaded.version, loaded.damaged)
        new = [
            decider.codec.encode(event, metadata, command_id.of_event(number)) for number, event in enumerate(events)
        ]
        tries_left -= 1
        try:
            appended = await store.append(stream, new, expected_version=loaded.version)
        except (OutcomeUnknown, asyncio.CancelledError):
            command_id.is_in_doubt = True
            raise
        except WrongExpectedVersion:
            if tries_left <= 0:
                raise
            continue
        except DuplicateEventId:  # an earlier try was not to be found yet
            if not command_id.is_in_doubt or tries_left <= -MAX_TRIES:
                raise
            continue
        state = loaded.state
        for event in events:
            state = decider.evolve(state, event)
        return Executed(events, state, appended.position, appended.stream_version, loaded.damaged)


async def plan(
    store: EventStore, decider: Decider[C, S, E], entity_id: str, command: C, *, metadata: Metadata = DEFAULT_METADATA
) -> Append | None:
    """Return what a command would record, to be appended together with others' by ``append_all``; None when nothing.

    After WrongExpectedVersion, plan all of them again. After OutcomeUnknown, append the same again.
    """
    loaded = await load(store, decider, entity_id)
    events = decider.decide(command, loaded.state)
    if not events:
        return None
    new = tuple(decider.codec.encode(event, metadata, new_event_id()) for event in events)
    return Append(decider.stream(entity_id), new, loaded.version)


async def _recorded(
    store: EventStore, decider: Decider[C, S, E], entity_id: str, command_id: CommandId
) -> Executed[S, E] | None:
    """Return what an earlier try of a command has recorded, and the state now; None when it has recorded nothing."""
    first = await store.find(command_id.of_event(0), may_be_old=False)
    if first is None or first.stream != decider.stream(entity_id):
        return None
    events: list[E] = []
    async for recorded in store.iterate_stream(first.stream, after_version=first.stream_version - 1):
        if recorded.id != command_id.of_event(len(events)):
            break
        events.append(decider.codec.decode(recorded))
    loaded = await load(store, decider, entity_id)
    return Executed(events, loaded.state, loaded.position, loaded.version, loaded.damaged)


async def _load_on(
    store: EventStore, decider: Decider[C, S, E], entity_id: str, loaded: Loaded[S], *, may_be_old: bool
) -> Loaded[S]:
    """Return the state now, from an earlier one and the events since."""
    folded = await store.fold_stream(
        decider.stream(entity_id), decider.codec, decider.evolve, loaded.state,
        after_version=loaded.version, may_be_old=may_be_old,
    )  # fmt: skip
    return Loaded(folded.state, folded.version, folded.position or loaded.position, loaded.damaged or folded.damaged)
