"""The passages of one answer, packed while no one reads them.

A model may write for minutes from 50 kB of passages that are read again only when it calls a tool, or when a sentence
is checked after a long silence. Packed they take a third, and of a text that many replies have there is one. A reply
that takes a few seconds is never packed.
"""

import pickle
import threading
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from io import BytesIO
from weakref import WeakValueDictionary

from msgspec import Struct

from service.assistant.sentence_checks.passages import GivenPassage
from service.domain.search import Source
from service.ports.model import Passage

SHARED_CHARACTERS = 200
"""A text from this length on is packed by itself: to share it takes some 300 bytes."""


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
        self._packed = b""
        self._texts: list[_PackedText] = []
        """The longer texts of what is packed."""
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
                packer = _Packer(packed := BytesIO())
                packer.dump(self._passages)
                self._packed, self._texts, self._passages = zlib.compress(packed.getvalue(), 1), packer.texts, None

    def _unpacked(self) -> _Passages:
        passages = self._passages
        if passages is None:
            with self._lock:  # else what is added to one copy is lost when another thread puts its own there
                passages = self._passages
                if passages is None:
                    unpacker = _Unpacker(BytesIO(zlib.decompress(self._packed)))
                    unpacker.texts = [zlib.decompress(text.data).decode(errors="surrogatepass") for text in self._texts]
                    passages = self._passages = unpacker.load()
        return passages


class _PackedText:
    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data


_packed_texts: WeakValueDictionary[bytes, _PackedText] = WeakValueDictionary()
"""Those of all replies that are packed, by their hashes."""


def _packed_text(text: str) -> _PackedText:
    data = text.encode(errors="surrogatepass")
    key = blake2b(data, digest_size=16).digest()
    packed = _packed_texts.get(key)
    if packed is None:
        packed = _packed_texts[key] = _PackedText(zlib.compress(data, 1))
    return packed


class _Packer(pickle.Pickler):
    """Leaves the longer texts out."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places: dict[str, int] = {}
        self.texts: list[_PackedText] = []

    def persistent_id(self, value: object) -> int | None:
        if type(value) is not str or len(value) < SHARED_CHARACTERS:
            return None
        place = self._places.setdefault(value, len(self.texts))
        if place == len(self.texts):
            self.texts.append(_packed_text(value))
        return place


class _Unpacker(pickle.Unpickler):
    texts: Sequence[str] = ()

    def persistent_load(self, place: int) -> str:
        return self.texts[place]
