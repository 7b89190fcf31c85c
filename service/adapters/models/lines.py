"""Bytes of a stream to the JSON documents in it: lines, events, documents over several lines; sans-I/O."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from service.adapters.models.fields import UnreadableError, read_document
from service.domain.errors import Unavailable
from service.ports.model import MODEL_REPLY_BROKEN

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line, or a longer document, is no model's doing."""


def broken(sentence: str) -> Unavailable:
    return Unavailable(f"the model's provider {sentence}", code=MODEL_REPLY_BROKEN)


class Lines:
    """Bytes in, the payloads of whole ``data:`` lines out; of an answer that is no stream, the whole of it at its end.

    A blank line is an empty payload: it ends an event.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._document: bytearray | None = None
        self._has_begun = False
        self._ends_with_return = False
        self._is_between = True
        """Whether a line begins here."""
        self.held_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        if self._is_between and data.endswith(b"\n\n"):  # nearly always: one event, whole
            if data.startswith(b"data:") and data.count(b"\n") == 2:
                self._has_begun = True
                return [data[5:].strip()]
            if data.startswith(b"event:") and data.count(b"\n") == 3 and (at := data.find(b"\ndata:")) > 0:
                self._has_begun = True
                return [data[at + 6 :].strip()]
        if not self._has_begun:
            data = data.lstrip(b"\xef\xbb\xbf \t\r\n")
            if not data:
                return []
            self._has_begun = True
            if data[:1] in b"{[":
                self._document, self._is_between = bytearray(), False
        if self._document is not None:
            self._document += data
            self.held_bytes = len(self._document)
            if self.held_bytes > MAX_LINE_BYTES:
                raise broken("sent a document without end")
            return []
        if self._ends_with_return and data.startswith(b"\n"):
            data = data[1:]
        self._ends_with_return = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest = bytearray()
        self._rest += rest
        self._is_between = not self._rest and not self._ends_with_return
        self.held_bytes = len(self._rest)
        if self.held_bytes > MAX_LINE_BYTES:
            raise broken("sent a line without end")
        return [line[5:].strip() for line in lines if line.startswith(b"data:") or not line or line.isspace()]

    def finish(self) -> list[bytes]:
        """Return the payloads that the end of the bytes completes."""
        if self._document is not None:
            document, self._document = bytes(self._document), bytearray()
            return [document, b""] if document.strip() else []
        line, self._rest = bytes(self._rest.strip()), bytearray()
        return [line[5:].strip(), b""] if line.startswith(b"data:") else [b""]


class Payloads:
    """Documents of payloads, also of those that are over several lines."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        """Lines of a document that has not ended; the same list throughout."""
        self.held_bytes = 0
        """Size of the lines, with the room that each takes besides."""
        self._tried_bytes = 0

    def documents(self, payload: bytes) -> Iterator[dict[str, Any]]:
        """Yield the objects that a payload completes; ``b""`` ends an event.

        Raises UnreadableError for an event that is no JSON.
        """
        if not payload:
            begun = self._take()
            if len(begun) == 1 and b"\n" not in begun[0]:
                raise UnreadableError
            if begun:
                yield from _documents_of(begun)
            return
        self.held_bytes += len(payload) + _LINE_BYTES
        self.begun.append(payload)
        if self._tried_bytes <= _MAX_TRIED * self.held_bytes:
            self._tried_bytes += self.held_bytes
            try:
                document = read_document(b"\n".join(self.begun))
            except UnreadableError:
                pass
            else:
                self._take()
                yield from _objects_in(document)
        if self.held_bytes > MAX_LINE_BYTES:
            self._take()
            raise UnreadableError

    def _take(self) -> list[bytes]:
        begun, self.held_bytes, self._tried_bytes = self.begun.copy(), 0, 0
        self.begun.clear()
        return begun


_LINE_BYTES = 64
_MAX_TRIED = 8
"""Bytes that are read once more for each byte of a document over several lines that does not end with its event."""


def _documents_of(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the document over these lines, or those of lines that are one each, such as NDJSON."""
    joined = b"\n".join(lines)
    try:
        yield from _objects_in(read_document(joined))
        return
    except UnreadableError:
        pass
    for line in joined.split(b"\n"):
        payload = line.strip().removeprefix(b"data:").strip()
        if payload and payload != b"[DONE]":
            yield from _objects_in(read_document(payload))


def _objects_in(document: object) -> Iterator[dict[str, Any]]:
    return (each for each in (document if isinstance(document, list) else [document]) if isinstance(each, dict))


class Repeated:
    """Reads payloads that differ in their text alone, as nearly all of a stream do, without decoding the rest again."""

    def __init__(self) -> None:
        self.head = self.tail = _NEVER
        """Bytes before and behind the letters of the text."""
        self.start = self.end = 0
        """Where the text is, with its quotes; its end from behind."""
        self._left = _MAX_LEARNED

    def learn(self, payload: bytes, text: re.Pattern[bytes], read: Callable[[bytes], str]) -> None:
        """Learn from a payload that has nothing but a text. ``text``: finds it, with its quotes as a group; ``read``
        returns that of such a payload.
        """
        if not self._left:
            return
        self._left -= 1
        if (found := text.search(payload)) is None:
            return
        head, tail = payload[: found.start(1) + 1], payload[found.end(1) - 1 :]
        if read(head + _OTHER + tail) == _OTHER.decode():
            self.head, self.tail = head, tail
            self.start, self.end = len(head) - 1, 1 - len(tail)


CONTENT = re.compile(rb'"content": ?("(?:[^"\\]|\\.)*+")', re.DOTALL)
TEXT = re.compile(rb'"text": ?("(?:[^"\\]|\\.)*+")', re.DOTALL)
_NEVER = b"\0"
_OTHER = b"another text"
_MAX_LEARNED = 8
"""Attempts for one stream: of some each payload has something else besides."""
decode_text = msgspec.json.Decoder(str).decode
