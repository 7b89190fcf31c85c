"""Events from the rows of a log. Plain functions, for a thread to call.

A sealed text that does not open with its key (a bit of it was lost, or of the key) is an event's own misfortune: the
event is handed on without it, marked as damaged, and all others are read as ever.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from eventstore.codec import VERSION_MARK, Codec
from eventstore.errors import StoreCorrupt, Undecodable, UnknownEventType
from eventstore.events import Metadata, RecordedEvent
from eventstore.vault import Key, Vault

S = TypeVar("S")
E = TypeVar("E")


def recorded_events(rows: Iterable[tuple[Any, ...]], vault: Vault) -> list[RecordedEvent]:
    """Return the events of these rows.

    A row is position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed and hash,
    in this order, with metadata and data as bytes.

    Nothing is left to be decoded later, since that was measured to cost more: eleven columns take 1.2 to 1.5 µs of an
    event from SQLite alone, where fewer columns, packed into one, would save 0.03 to 0.15, and a time or metadata (one
    decoding for neighbours that share it) take less than the object that would put it off. Several pages in one turn of
    the thread gain nothing: a turn costs some 50 µs beside 1,000 events.
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

    A row is a kind and the data as bytes. When nothing is sealed, the kind is a key of ``Codec.folders``; else the
    bytes of schema version, a space, the length of the type in bytes, a space, the length of the id, a space, the type,
    the id and what is sealed. There are so few columns because their number is most of the cost of reading a row.
    Raise Undecodable.
    """
    folders, encoded_stream = codec.folders, stream.encode()
    first_damaged = 0
    for kind, data in rows:
        version += 1  # they have no gaps
        decode = folders.get(kind)
        type_ = kind
        try:
            if decode is not None:
                event = decode(data)
            elif isinstance(kind, str):
                type_, _, number = kind.partition(VERSION_MARK)
                if not number.isdecimal():
                    type_, number = kind, "1"
                event = codec.decode_stored(type_, int(number), data, None, erased=False)
            else:
                number, type_length, id_length, both = kind.split(b" ", 3)
                id_at = int(type_length)
                sealed_at = id_at + int(id_length)
                type_ = both[:id_at].decode()
                if type_ not in codec.types:
                    continue
                key = vault.find(stream)
                personal, damaged = None, False
                if key is not None:
                    personal, damaged = _opened(key, both[sealed_at:], encoded_stream, version, both[id_at:sealed_at])
                if damaged:
                    first_damaged = first_damaged or version
                event = codec.decode_stored(
                    type_, int(number), data, personal, erased=personal is None, damaged=damaged
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
