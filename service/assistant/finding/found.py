"""The passages of one answer, packed while no one reads them.

A model may write for minutes from 50 kB of passages that are read again only when it calls a tool, or when a sentence
is checked after a long silence. A reply that takes a few seconds is never packed.
"""

import threading
from collections.abc import Sequence

from msgspec import Struct

from service.domain.search import Source
from service.ports.model import Passage
from service.runtime.packing import Packed
from service.sentences.passages import GivenPassage


class _Passages(Struct, gc=False):
    held: dict[tuple[str, int], Passage]
    given: dict[int, GivenPassage]
    first: list[Passage]
    sources: dict[tuple[str, int, str], Source]
    urls: dict[int, str]
    addresses: set[str]


class FoundPassages:
    """Unpacked by whatever reads them, until ``pack``."""

    def __init__(self) -> None:
        self._passages: _Passages | None = _Passages({}, {}, [], {}, {}, set())
        self._packed: Packed[_Passages] | None = None
        self._lock = threading.Lock()
        """Prompts are made and sentences judged in threads, while the event loop adds passages."""

    @property
    def held(self) -> dict[tuple[str, int], Passage]:
        """Those that the prompt has, by path and first line."""
        return self._unpacked().held

    @property
    def first(self) -> list[Passage]:
        """Those of the first prompt, in its order."""
        return self._unpacked().first

    @first.setter
    def first(self, passages: list[Passage]) -> None:
        self._unpacked().first = passages

    @property
    def sources(self) -> dict[tuple[str, int, str], Source]:
        """Those of all, by path, first line and heading, in the order of their numbers."""
        return self._unpacked().sources

    def url_of(self, number: int) -> str | None:
        """Return the address of a passage by its number."""
        return self.urls.get(number)

    @property
    def urls(self) -> dict[int, str]:
        """Those of all, by their numbers."""
        return self._unpacked().urls

    def addresses(self) -> set[str]:
        """Return the addresses that their texts name. To be changed in the event loop alone, as all else here."""
        return self._unpacked().addresses

    def given(self) -> Sequence[GivenPassage]:
        """Return all that the answer was given, by their numbers."""
        return tuple(self._unpacked().given.values())

    def give(self, passage: GivenPassage) -> None:
        """Add a passage, or another text of one that is known."""
        self._unpacked().given[passage.number] = passage

    def pack(self) -> None:
        """Keep them in little memory until they are read again. Takes a millisecond for 50 kB."""
        with self._lock:
            if self._passages is not None:
                self._packed, self._passages = Packed(self._passages), None

    def _unpacked(self) -> _Passages:
        passages = self._passages
        if passages is None:
            with self._lock:  # else what is added to one copy is lost when another thread puts its own there
                passages = self._passages
                if passages is None:
                    assert self._packed is not None
                    passages = self._passages = self._packed.unpacked()
        return passages
