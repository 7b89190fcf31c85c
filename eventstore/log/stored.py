"""Events as a log stores them, byte for byte: what a hash covers, for those who export or check it."""

from msgspec import Struct

from eventstore.log.chain import event_hash

COLUMNS = "position, stream, stream_version, id, type, schema_version, recorded_at, metadata, data, sealed, hash"


class StoredEvent(Struct, frozen=True):
    """The columns of a row, and the hash of the event before."""

    position: int
    stream: str
    stream_version: int
    id: str
    type: str
    schema_version: int
    recorded_at: str
    metadata: str
    data: str
    sealed: bytes | None
    hash: bytes
    previous_hash: bytes

    def is_sound(self) -> bool:
        """Return whether its hash is that of what is here."""
        found = event_hash(
            self.previous_hash, self.position, self.stream.encode(), self.stream_version, self.id.encode(),
            self.type.encode(), self.schema_version, self.recorded_at.encode(), self.metadata.encode(),
            self.data.encode(), self.sealed,
        )  # fmt: skip
        return found == self.hash
