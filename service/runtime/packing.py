"""Objects that are not needed for a while, in little memory; of a long text that several of them have there is one.

Many replies on one subject hold the same passages. Packed, a text takes a third.
"""

import pickle
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from io import BytesIO
from typing import Generic, TypeVar, cast
from weakref import WeakValueDictionary

T = TypeVar("T")

LEVEL = 6
"""How strongly texts are compressed: a tenth less than at the quickest level, in 0.2 ms more for a reply."""
SHARED_CHARACTERS = 200
"""A text from this length on is packed by itself: to share it takes some 300 bytes."""


class Packed(Generic[T]):
    """One object. To pack or unpack 50 kB takes a millisecond."""

    __slots__ = ("_data", "_texts")

    def __init__(self, value: T) -> None:
        packer = _Packer(packed := BytesIO())
        packer.dump(value)
        self._data = zlib.compress(packed.getvalue(), LEVEL)
        self._texts = tuple(packer.texts)
        """The longer texts of the object."""

    def unpacked(self) -> T:
        """Return a copy of the object."""
        unpacker = _Unpacker(BytesIO(zlib.decompress(self._data)))
        unpacker.texts = [zlib.decompress(text.data).decode(errors="surrogatepass") for text in self._texts]
        return cast("T", unpacker.load())


class _PackedText:
    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data


_packed_texts: WeakValueDictionary[bytes, _PackedText] = WeakValueDictionary()
"""Those of all that is packed, by their hashes."""


def _packed_text(text: str) -> _PackedText:
    data = text.encode(errors="surrogatepass")
    key = blake2b(data, digest_size=16).digest()
    packed = _packed_texts.get(key)
    if packed is None:
        packed = _packed_texts[key] = _PackedText(zlib.compress(data, LEVEL))
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
