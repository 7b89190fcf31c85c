"""The turns of a thread, in a form that is cheap to change for each event."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar, overload

T = TypeVar("T")


class Turns(Sequence[T]):
    """Oldest first; never changed in place.

    In chunks, so that a long thread is not copied for each event: ``with_next`` and ``with_changed`` copy one chunk and
    the list of chunks.
    """

    __slots__ = ("_chunks", "_last")
    _SIZE = 64

    def __init__(self, chunks: tuple[tuple[T, ...], ...] = (), last: tuple[T, ...] = ()) -> None:
        self._chunks, self._last = chunks, last

    def with_next(self, turn: T) -> "Turns[T]":
        if len(self._last) < self._SIZE:
            return Turns(self._chunks, (*self._last, turn))
        return Turns((*self._chunks, self._last), (turn,))

    def with_changed(self, index: int, turn: T) -> "Turns[T]":
        """Return the turns with another one at an index from 0."""
        number, at = divmod(index, self._SIZE)
        if number == len(self._chunks):
            return Turns(self._chunks, (*self._last[:at], turn, *self._last[at + 1 :]))
        chunk = self._chunks[number]
        changed = (*chunk[:at], turn, *chunk[at + 1 :])
        return Turns((*self._chunks[:number], changed, *self._chunks[number + 1 :]), self._last)

    def first(self, count: int) -> "Turns[T]":
        """Return the oldest ones, at most ``count``."""
        if count >= len(self):
            return self
        number = max(0, count - 1) // self._SIZE  # of the chunk that is the last one then, never an empty one
        chunk = self._last if number == len(self._chunks) else self._chunks[number]
        return Turns(self._chunks[:number], chunk[: count - number * self._SIZE])

    def last_index(self, fits: Callable[[T], bool]) -> int | None:
        """Return the index of the last turn that fits, or None: nearly always it is the last one of all."""
        for back, turn in enumerate(reversed(self), start=1):
            if fits(turn):
                return len(self) - back
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
        return self._last[at] if number == len(self._chunks) else self._chunks[number][at]

    def __iter__(self) -> Iterator[T]:
        return chain(*self._chunks, self._last)

    def __reversed__(self) -> Iterator[T]:
        return chain(reversed(self._last), *map(reversed, reversed(self._chunks)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Turns) and (self._chunks, self._last) == (other._chunks, other._last)

    def __hash__(self) -> int:
        return hash((self._chunks, self._last))
