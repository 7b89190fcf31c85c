"""Lines of JSON by which one instance sends another a reply that it gives."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from service.domain.threads.replies import ReplyEvent

TOPIC_HEADER = "X-Docsmith-Topic"
"""Names the very publication: the number of an event means something only in it."""
SILENCE = b"\n"
"""An empty line, sent while nothing happens."""
MAX_LINE_BYTES = 64 << 20
"""Limit for what is held of a line: all that a reply publishes is far less."""


class LiveLine(Struct, frozen=True, array_like=True):
    published: int
    """The number of events up to the last one of these, however many of them were joined."""
    events: list[ReplyEvent]


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(LiveLine)


def encoded_line(published: int, events: list[ReplyEvent]) -> bytes:
    return _ENCODER.encode(LiveLine(published, events)) + b"\n"


class LineReader:
    """Reads lines from bytes as they arrive."""

    def __init__(self) -> None:
        self._held = bytearray()

    def read(self, received: bytes) -> Iterator[LiveLine]:
        """Yield the lines that are complete by now. Raises ValueError for one that cannot be read, or is too long."""
        first, end, rest = received.rpartition(b"\n")
        self._held += first + end if end else rest
        if len(self._held) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES} bytes")
        if not end:
            return iter(())
        lines, self._held = self._held.split(b"\n"), bytearray(rest)
        return self._decoded(lines)

    def _decoded(self, lines: Iterable[bytes | bytearray]) -> Iterator[LiveLine]:
        for line in lines:
            if line:
                yield _DECODER.decode(line)
