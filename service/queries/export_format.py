"""The parts of an export of the log: its manifest and its lines. service/manual/log-format.md describes them."""

import base64
import csv
import io
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from eventstore import Metadata, RecordedEvent, StoredEvent
from service.domain.errors import Invalid
from service.domain.formats import NewerFormat, require_known
from service.queries.audit import personal_fields_of, state_of

FORMAT = "docsmith-export-2"
MANIFEST = "manifest.json"


class ExportedFile(Struct, frozen=True, rename="camel"):
    name: str
    sha256: str
    bytes: int
    events: int
    first_position: int
    last_position: int
    last_hash: str
    """Hash of the last event, in hex."""


class Manifest(Struct, frozen=True, rename="camel"):
    format: str
    kind: Literal["jsonl", "csv"]
    filters: dict[str, str]
    personal: bool
    """Whether what people typed is in it."""
    log: str = ""
    """The log's id."""
    key: str = ""
    """The public key of its checkpoints, as the log names it, in base64; empty where it names none."""
    through: int = 0
    """The log has been read up to this position."""
    is_complete: bool = False
    """That was the log's last one then."""
    made_at: datetime | None = None
    files: tuple[ExportedFile, ...] = ()


class NotSound(Invalid):
    """An export that is not what was written."""


class Line(Struct, frozen=True, rename="camel"):
    """An event in an export. What the hash covers comes first, byte for byte; what follows is to be read by people."""

    position: int
    stream: str
    stream_version: int
    id: str
    type: str
    schema_version: int
    recorded_at: str
    metadata: str
    data: str
    sealed: str | None
    """In base64."""
    previous_hash: str
    hash: str
    actor: str
    request_id: str
    causation: int | None
    personal: str
    personal_data: dict[str, Any] | None

    @classmethod
    def of(cls, stored: StoredEvent, event: RecordedEvent, *, personal: bool) -> "Line":
        return cls(
            stored.position, stored.stream, stored.stream_version, stored.id, stored.type, stored.schema_version,
            stored.recorded_at, stored.metadata, stored.data,
            None if stored.sealed is None else base64.b64encode(stored.sealed).decode(),
            stored.previous_hash.hex(), stored.hash.hex(),
            event.metadata.actor, event.metadata.correlation_id, event.metadata.causation, state_of(event),
            personal_fields_of(event) if personal else None,
        )  # fmt: skip

    def stored(self) -> StoredEvent:
        """Raises ValueError."""
        return StoredEvent(
            self.position, self.stream, self.stream_version, self.id, self.type, self.schema_version, self.recorded_at,
            self.metadata, self.data, None if self.sealed is None else base64.b64decode(self.sealed, validate=True),
            bytes.fromhex(self.hash), bytes.fromhex(self.previous_hash),
        )  # fmt: skip

    def says_what_is_stored(self) -> bool:
        """Return whether its readable fields are those of its metadata. Raises msgspec.MsgspecError."""
        metadata = msgspec.json.decode(self.metadata, type=Metadata)
        readable = (self.actor, self.request_id, self.causation)
        return readable == (metadata.actor, metadata.correlation_id, metadata.causation)


COLUMNS = Line.__struct_encode_fields__


def encoded(line: Line, kind: str) -> bytes:
    if kind == "jsonl":
        return msgspec.json.encode(line) + b"\n"
    cells = msgspec.to_builtins(line)
    if line.personal_data is not None:
        cells["personalData"] = msgspec.json.encode(line.personal_data).decode()
    return _csv_line([cells[name] for name in COLUMNS])


def heading(kind: str) -> bytes:
    """The beginning of a file."""
    return _csv_line(COLUMNS) if kind == "csv" else b""


def _csv_line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def lines_of(content: bytes, kind: str) -> Iterator[Line]:
    """Raises NotSound."""
    try:
        if kind == "jsonl":
            for line in content.split(b"\n")[:-1]:
                yield msgspec.json.decode(line, type=Line)
        else:
            for row in csv.DictReader(io.StringIO(content.decode(), newline="")):
                cells = {
                    name: value or None if name in {"sealed", "causation"} else value for name, value in row.items()
                }
                cells["personalData"] = None if not row["personalData"] else msgspec.json.decode(row["personalData"])
                yield msgspec.convert(cells, Line, strict=False)
    except (msgspec.MsgspecError, ValueError, KeyError, csv.Error) as error:
        raise NotSound(f"a line cannot be read: {error}") from error


def read_manifest(folder: Path) -> Manifest:
    """Raises NotSound, NewerFormat, and Invalid: there is no export of this format."""
    try:
        content = (folder / MANIFEST).read_bytes()
        found = msgspec.json.decode(content, type=_Formatted).format
        require_known(found, FORMAT)
        if found == FORMAT:
            return msgspec.json.decode(content, type=Manifest)
    except FileNotFoundError:
        raise Invalid(f"{folder}: there is no {MANIFEST} in it, so it is not an export.") from None
    except NewerFormat as error:
        raise NewerFormat(f"{folder}: {error}") from None
    except msgspec.MsgspecError as error:
        raise NotSound(f"{MANIFEST}: {error}") from error
    raise Invalid(f"{folder}: it is a {found}, not a {FORMAT}; export the log again.")


class _Formatted(Struct):
    format: str
