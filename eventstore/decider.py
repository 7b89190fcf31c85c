"""From a command to the events it causes: read the stream, fold, decide, append; again when another was faster.

After Emmett's decider (``src/packages/emmett/src/typing/decider.ts``): ``decide`` and ``evolve`` are pure, all else
is here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventstore.codec import Codec
from eventstore.errors import WrongExpectedVersion
from eventstore.events import DEFAULT_METADATA, Append, Metadata
from eventstore.store import EventStore

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

MAX_TRIES = 100
"""Of n writers to one stream one gets through each time, so the last of them needs n tries."""


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
    """Of the stream's last event; 0 when there is none."""


@dataclass(frozen=True)
class Executed(Generic[S, E]):
    events: Sequence[E]
    state: S
    position: int
    """Of the stream's last event, for whoever waits until a view has it; 0 when there is none."""
    version: int


async def load(store: EventStore, decider: Decider[C, S, E], entity_id: str) -> Loaded[S]:
    return await _load_on(store, decider, entity_id, Loaded(decider.initial, 0, 0))


async def execute(
    store: EventStore,
    decider: Decider[C, S, E],
    entity_id: str,
    command: C,
    *,
    metadata: Metadata = DEFAULT_METADATA,
    known: Executed[S, E] | None = None,
) -> Executed[S, E]:
    """Decide on a command and record what it causes.

    ``known``: what this caller executed last on the same thing; if nobody else has written since, nothing is read.
    What others have written is not seen where ``decide`` refuses the command, or finds nothing to record for it.

    Raises:
        WrongExpectedVersion: other writers were faster each of a hundred times.
        Whatever ``decide`` and ``append`` raise.
    """
    stream = decider.stream(entity_id)
    loaded = Loaded(decider.initial, 0, 0) if known is None else Loaded(known.state, known.version, known.position)
    is_known, tries = known is not None, 0
    while True:
        if not is_known:
            loaded = await _load_on(store, decider, entity_id, loaded)
        is_known = False
        events = decider.decide(command, loaded.state)
        if not events:
            return Executed(events, loaded.state, loaded.position, loaded.version)
        new = [decider.codec.encode(event, metadata) for event in events]
        tries += 1
        try:
            appended = await store.append(stream, new, expected_version=loaded.version)
        except WrongExpectedVersion:
            if tries == MAX_TRIES:
                raise
            continue
        state = loaded.state
        for event in events:
            state = decider.evolve(state, event)
        return Executed(events, state, appended.position, appended.stream_version)


async def plan(
    store: EventStore, decider: Decider[C, S, E], entity_id: str, command: C, *, metadata: Metadata = DEFAULT_METADATA
) -> Append | None:
    """What a command would record, to be appended together with others' by ``append_all``; None when nothing.

    On WrongExpectedVersion plan all of them again.
    """
    loaded = await load(store, decider, entity_id)
    events = decider.decide(command, loaded.state)
    if not events:
        return None
    new = tuple(decider.codec.encode(event, metadata) for event in events)
    return Append(decider.stream(entity_id), new, loaded.version)


async def _load_on(store: EventStore, decider: Decider[C, S, E], entity_id: str, loaded: Loaded[S]) -> Loaded[S]:
    """The state now, from an earlier one and the events since."""
    folded = await store.fold_stream(
        decider.stream(entity_id), decider.codec, decider.evolve, loaded.state, after_version=loaded.version
    )
    return Loaded(folded.state, folded.version, folded.position or loaded.position)
