"""The turns of a thread, in a form that is cheap to change for each event."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import eq
from typing import Generic, TypeVar, overload

T = TypeVar("T")
Name = Callable[[T], str]
"""Gives one of the names of a turn."""


class _Chunk(Generic[T]):
    """Turns that are never changed, and their names, found when first looked for."""

    __slots__ = ("_names", "turns")

    def __init__(self, turns: tuple[T, ...]) -> None:
        self.turns = turns
        self._names: dict[Name[T], frozenset[str]] = {}

    def has(self, name: Name[T], wanted: str) -> bool:
        names = self._names.get(name)
        if names is None:
            names = self._names[name] = frozenset(map(name, self.turns))
        return wanted in names


class Turns(Sequence[T]):
    """Oldest first; never changed in place.

    In chunks, so that a long thread is not copied for each event: ``with_next`` and ``with_changed`` copy one chunk and
    the list of chunks.
    """

    __slots__ = ("_chunks", "_last")
    _SIZE = 64

    def __init__(self, chunks: tuple[_Chunk[T], ...] = (), last: tuple[T, ...] = ()) -> None:
        self._chunks, self._last = chunks, last

    def with_next(self, turn: T) -> "Turns[T]":
        if len(self._last) < self._SIZE:
            return Turns(self._chunks, (*self._last, turn))
        return Turns((*self._chunks, _Chunk(self._last)), (turn,))

    def with_changed(self, index: int, turn: T) -> "Turns[T]":
        """Return the turns with another one at an index from 0."""
        number, at = divmod(index, self._SIZE)
        if number == len(self._chunks):
            return Turns(self._chunks, (*self._last[:at], turn, *self._last[at + 1 :]))
        chunk = self._chunks[number].turns
        changed = _Chunk((*chunk[:at], turn, *chunk[at + 1 :]))
        return Turns((*self._chunks[:number], changed, *self._chunks[number + 1 :]), self._last)

    def first(self, count: int) -> "Turns[T]":
        """Return the oldest ones, at most ``count``."""
        if count >= len(self):
            return self
        number = max(0, count - 1) // self._SIZE  # of the chunk that is the last one then, never an empty one
        chunk = self._last if number == len(self._chunks) else self._chunks[number].turns
        return Turns(self._chunks[:number], chunk[: count - number * self._SIZE])

    def last_index(self, name: Name[T], wanted: str) -> int | None:
        """Return the index of the last turn of that name, or None. ``name`` is a function of a module: the names that
        it gives are kept. A name that no turn has is looked up once for each 64 turns.
        """
        for at in range(len(self._last) - 1, -1, -1):  # nearly always it is the last one of all
            if name(self._last[at]) == wanted:
                return len(self._chunks) * self._SIZE + at
        for number in range(len(self._chunks) - 1, -1, -1):
            chunk = self._chunks[number]
            if chunk.has(name, wanted):
                at = max(at for at, turn in enumerate(chunk.turns) if name(turn) == wanted)
                return number * self._SIZE + at
        return None

    def __len__(self) -> int:
        return len(self._chunks) * self._SIZE + len(self._last)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        number, at = divmod(range(len(self))[index], self._SIZE)
        return self._last[at] if number == len(self._chunks) else self._chunks[number].turns[at]

    def __iter__(self) -> Iterator[T]:
        return chain(*(chunk.turns for chunk in self._chunks), self._last)

    def __reversed__(self) -> Iterator[T]:
        return chain(reversed(self._last), *(reversed(chunk.turns) for chunk in reversed(self._chunks)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Turns) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))
