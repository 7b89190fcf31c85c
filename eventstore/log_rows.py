"""Events from the rows of a log. Plain functions, for a thread to call.

A sealed text that does not open with its key (a bit of it was lost, or of the key) is an event's own misfortune: the
event is handed on without it, marked as damaged, and all others are read as ever.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from eventstore.codec import Codec
from eventstore.errors import StoreCorrupt, Undecodable, UnknownEventType
from eventstore.events import Metadata, RecordedEvent
from eventstore.vault import Key, Vault

S = TypeVar("S")
E = TypeVar("E")


def recorded_events(rows: Iterable[tuple[Any, ...]], vault: Vault) -> list[RecordedEvent]:
    """Return the events of these rows.

    A row is position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed and hash,
    in this order, with metadata and data as bytes.
    """
    events = []
    known, metadata = b"{}", Metadata()
    for position, stream, version, id_, type_, schema_version, recorded_at, raw, data, sealed, hash_ in rows:
        if raw != known:  # neighbours often share theirs
            known, metadata = raw, _decode_metadata(raw)
        personal, damaged = None, False
        if sealed is not None and (key := vault.find(stream)) is not None:
            personal, damaged = _opened(key, sealed, stream.encode(), version, id_.encode())
        events.append(
            RecordedEvent(
                position, stream, version, type_, data, personal,
                sealed is not None and personal is None and not damaged, schema_version, metadata, id_,
                _parse_time(recorded_at), hash_, damaged,
            )
        )  # fmt: skip
    return events


def fold_rows(
    rows: Iterable[tuple[Any, ...]],
    stream: str,
    version: int,
    vault: Vault,
    codec: Codec[E],
    evolve: Callable[[S, E], S],
    state: S,
) -> tuple[S, int, int]:
    """Return the state, and the version, after rows that follow the given version of a stream; and the version of the
    first of them that is damaged, or 0.

    A row is the type, the data as bytes and, when nothing is sealed, the schema version; else the bytes of schema
    version, a space, the length of the id in bytes, a space, the id and what is sealed. There are so few columns
    because their number is most of the cost of reading a row. Raise Undecodable.
    """
    decoders, encoded_stream = codec.decoders, stream.encode()
    unknown = (0, None)
    first_damaged = 0
    for type_, data, rest in rows:
        version += 1  # they have no gaps
        current, decode = decoders.get(type_, unknown)
        if decode is None:
            continue
        try:
            if rest == current:
                event = decode(data)
            elif isinstance(rest, int):
                event = codec.decode_stored(type_, rest, data, None, erased=False)
            else:
                schema_version, length, both = rest.split(b" ", 2)
                id_, sealed = both[: int(length)], both[int(length) :]
                key = vault.find(stream)
                personal, damaged = (None, False) if key is None else _opened(key, sealed, encoded_stream, version, id_)
                if damaged:
                    first_damaged = first_damaged or version
                event = codec.decode_stored(
                    type_, int(schema_version), data, personal, erased=personal is None, damaged=damaged
                )
        except UnknownEventType:
            continue
        except (msgspec.MsgspecError, Undecodable) as error:
            raise Undecodable(f"{type_}, version {version} of {stream}: {error}") from error
        state = evolve(state, event)
    return state, version, first_damaged


def _opened(key: Key, sealed: bytes, stream: bytes, version: int, event_id: bytes) -> tuple[bytes | None, bool]:
    """Return a sealed text, or None; and whether it is damaged."""
    try:
        return key.open(sealed, stream, version, event_id), False
    except StoreCorrupt:
        return None, True


_decode_metadata = msgspec.json.Decoder(Metadata).decode
_parse_time = datetime.fromisoformat
