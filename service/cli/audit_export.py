"""``docsmith audit export``: events as files for other programs, and the check that such files are what was written.

A folder with ``events-000001.jsonl`` and on (or ``.csv``), each of a bounded size, and ``manifest.json``, which lists
those that are complete with their SHA-256. It is written anew, atomically, after each file: an export that was killed
is a smaller one that is sound. The same command goes on after the last complete file, be it with what was left or with
what came since; it never writes an event twice.
"""

import argparse
import asyncio
import csv
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventstore import RecordedEvent
from eventstore.files import sync_folder
from service.cli.audit_reading import (
    Filter,
    add_filter_options,
    at_least_1,
    fields_of,
    pages,
    personal_fields_of,
    reading,
    state_of,
)
from service.cli.output import DONE, VERIFICATION_FAILED, Output
from service.cli.parsing import add_command
from service.domain.errors import Conflict, Invalid
from service.system import now

FORMAT = "docsmith-export-1"
MANIFEST = "manifest.json"
MAX_EVENTS = 50_000
MAX_BYTES = 64 << 20
"""A file ends with the event that makes it this large."""

COLUMNS = (
    "position", "stream", "streamVersion", "id", "type", "schemaVersion", "recordedAt", "actor", "requestId",
    "causation", "data", "personal", "personalData", "hash",
)  # fmt: skip


class ExportedFile(Struct, frozen=True, rename="camel"):
    name: str
    sha256: str
    bytes: int
    events: int
    first_position: int
    last_position: int
    last_hash: str
    """Of the last event, in hex."""


class Manifest(Struct, frozen=True, rename="camel"):
    format: str
    kind: Literal["jsonl", "csv"]
    filters: dict[str, str]
    personal: bool
    """Whether what people typed is in it."""
    through: int = 0
    """The log has been read up to this position."""
    is_complete: bool = False
    """That was the log's last one then."""
    made_at: datetime | None = None
    files: tuple[ExportedFile, ...] = ()


class NotSound(Invalid):
    """An export that is not what was written."""


def add_commands(actions: Any, common: argparse.ArgumentParser) -> None:
    one = add_command(
        actions,
        "export",
        "write events to files; again to go on where it ended",
        more="It goes on when the folder has an export with the same options already.",
        examples=["audit export --output export", "audit export --output jobs --category job --format csv --personal"],
        parents=[common],
    )
    one.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    one.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    one.add_argument("--personal", action="store_true", help="also what people typed; else only that it is there")
    one.add_argument("--events-per-file", type=at_least_1, default=MAX_EVENTS, metavar="N")
    add_filter_options(one)
    one.set_defaults(command=export, works_alone=True)
    one = add_command(
        actions,
        "verify-export",
        "check that an export is what was written",
        examples=["audit verify-export export"],
        parents=[common],
    )
    one.add_argument("folder", type=Path, metavar="FOLDER")
    one.set_defaults(command=verify_export, works_alone=True)


async def export(options: argparse.Namespace, output: Output) -> int:
    folder, wanted = options.output, Filter.of(options)
    filters = wanted.as_texts()
    manifest = await asyncio.to_thread(_begun, folder, Manifest(FORMAT, options.format, filters, options.personal))
    before = len(manifest.files)
    start = max(wanted.after, manifest.through)
    asked = filters | {"format": options.format, "personal": str(options.personal).lower()}
    async with (
        reading(options.data, "audit export", asked, after=start) as (store, through),
        aclosing(pages(store, replace(wanted, after=start), through=through)) as all_pages,
    ):
        writer = _Writer(folder, manifest, options.events_per_file)
        async for page, reached in all_pages:
            await asyncio.to_thread(writer.write, page)
            output.progress("exporting", reached, through)
        manifest = await asyncio.to_thread(writer.finish, through)
    new = manifest.files[before:]
    value = {
        "folder": str(folder), "events": sum(file.events for file in new), "files": len(new),
        "allEvents": sum(file.events for file in manifest.files), "allFiles": len(manifest.files),
        "through": manifest.through,
    }  # fmt: skip
    text = f"{folder}: {value['events']} events in {len(new)} new files, up to position {manifest.through}"
    output.result(value, text)
    return DONE


def _begun(folder: Path, new: Manifest) -> Manifest:
    """The manifest of the export in a folder that is to go on, or a new one's."""
    if not (folder / MANIFEST).exists():
        if folder.exists() and any(not file.name.endswith(".part") for file in folder.iterdir()):
            raise Conflict(f"{folder} has other files in it: name a new folder.")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_manifest(folder, new)
        return new
    found = _read_manifest(folder)
    for name in ("format", "kind", "filters", "personal"):
        if getattr(found, name) != getattr(new, name):
            raise Conflict(f"{folder} has an export with other options ({name}): name a new folder.")
    return replace(found, is_complete=False)


class _Writer:
    """Puts events into files, and each complete file into the manifest."""

    def __init__(self, folder: Path, manifest: Manifest, events_per_file: int) -> None:
        self._folder, self._manifest, self._events_per_file = folder, manifest, events_per_file
        self._file: IO[bytes] | None = None
        self._sha256 = hashlib.sha256()
        self._first: RecordedEvent | None = None
        self._last: RecordedEvent | None = None
        self._events = self._bytes = 0

    def write(self, events: Sequence[RecordedEvent]) -> None:
        for event in events:
            if self._file is None:
                self._begin(event)
            encoded = _exported(event, self._manifest.personal)
            self._put(_json_line(encoded) if self._manifest.kind == "jsonl" else _csv_line(_cells(encoded)))
            self._last = event
            self._events += 1
            if self._events >= self._events_per_file or self._bytes >= MAX_BYTES:
                self._end()

    def finish(self, through: int) -> Manifest:
        if self._file is not None:
            self._end()
        self._save(replace(self._manifest, through=through, is_complete=True, made_at=now()))
        return self._manifest

    def _begin(self, event: RecordedEvent) -> None:
        path = self._folder / f"{self._name}.part"
        path.unlink(missing_ok=True)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._sha256, self._events, self._bytes, self._first = hashlib.sha256(), 0, 0, event
        if self._manifest.kind == "csv":
            self._put(_csv_line(COLUMNS))

    @property
    def _name(self) -> str:
        return f"events-{len(self._manifest.files) + 1:06}.{self._manifest.kind}"

    def _put(self, line: bytes) -> None:
        assert self._file is not None
        self._file.write(line)
        self._sha256.update(line)
        self._bytes += len(line)

    def _end(self) -> None:
        assert self._file is not None
        assert self._first is not None
        assert self._last is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        (self._folder / f"{self._name}.part").replace(self._folder / self._name)
        done = ExportedFile(
            self._name, self._sha256.hexdigest(), self._bytes, self._events, self._first.position, self._last.position,
            self._last.hash.hex(),
        )  # fmt: skip
        self._save(replace(self._manifest, through=self._last.position, files=(*self._manifest.files, done)))

    def _save(self, manifest: Manifest) -> None:
        self._manifest = manifest
        _write_manifest(self._folder, manifest)


def _exported(event: RecordedEvent, personal: bool) -> dict[str, Any]:
    shown = personal_fields_of(event) if personal else None
    return {
        "position": event.position, "stream": event.stream, "streamVersion": event.stream_version, "id": event.id,
        "type": event.type, "schemaVersion": event.schema_version, "recordedAt": event.recorded_at.isoformat(),
        "actor": event.metadata.actor, "requestId": event.metadata.correlation_id,
        "causation": event.metadata.causation, "data": fields_of(event, personal=False), "personal": state_of(event),
        "personalData": shown, "hash": event.hash.hex(),
    }  # fmt: skip


def _json_line(event: dict[str, Any]) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _cells(event: dict[str, Any]) -> list[Any]:
    objects = {name: msgspec.json.encode(event[name]).decode() for name in ("data", "personalData") if event[name]}
    return [objects.get(name, event[name]) for name in COLUMNS]


def _csv_line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    part = folder / f"{MANIFEST}.part"
    with part.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MANIFEST)
    sync_folder(folder)


def _read_manifest(folder: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise Invalid(f"{folder}: there is no {MANIFEST} in it, so it is not an export.") from None
    except msgspec.MsgspecError as error:
        raise NotSound(f"{MANIFEST}: {error}") from error
    if manifest.format != FORMAT:
        raise Invalid(f"{folder}: it is a {manifest.format}, not a {FORMAT}.")
    return manifest


# Checking


async def verify_export(options: argparse.Namespace, output: Output) -> int:
    try:
        manifest = await asyncio.to_thread(_check, options.folder, output)
    except NotSound as error:
        output.result({"sound": False, "problem": str(error)}, f"NOT sound: {error}")
        return VERIFICATION_FAILED
    events = sum(file.events for file in manifest.files)
    value = {
        "sound": True, "problem": None, "events": events, "files": len(manifest.files), "through": manifest.through,
        "complete": manifest.is_complete, "head": manifest.files[-1].last_hash if manifest.files else None,
    }  # fmt: skip
    ended = "" if manifest.is_complete else "; it was not finished: run the same export again to go on"
    output.result(value, f"sound: {events} events in {len(manifest.files)} files, to {manifest.through}{ended}")
    return DONE


def _check(folder: Path, output: Output) -> Manifest:
    """Raises NotSound."""
    manifest = _read_manifest(folder)
    position = 0
    for number, file in enumerate(manifest.files, start=1):
        if file.name != f"events-{number:06}.{manifest.kind}":
            raise NotSound(f"{file.name} is not the name of file {number}")
        try:
            content = (folder / file.name).read_bytes()
        except FileNotFoundError:
            raise NotSound(f"{file.name} is missing") from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise NotSound(f"{file.name} is not what was written")
        positions = [position, *_positions(content, manifest.kind)]
        if (positions[1:2], positions[-1:], len(positions) - 1) != (
            [file.first_position], [file.last_position], file.events,
        ):  # fmt: skip
            raise NotSound(f"{file.name} has other events than the manifest says")
        for before, after in pairwise(positions):
            if after <= before or (not manifest.filters and after != before + 1):
                raise NotSound(f"{file.name}: position {after} follows {before}")
        position = positions[-1]
        output.progress("checking", number, len(manifest.files))
    if manifest.is_complete and not manifest.filters and position != manifest.through:
        raise NotSound(f"it ends at position {position}, and should at {manifest.through}")
    return manifest


class _Positioned(Struct):
    position: int


def _positions(content: bytes, kind: str) -> Iterator[int]:
    try:
        if kind == "jsonl":
            decode = msgspec.json.Decoder(_Positioned).decode
            for line in content.splitlines():
                yield decode(line).position
        else:
            for row in csv.DictReader(io.StringIO(content.decode(), newline="")):
                yield int(row["position"])
    except (msgspec.MsgspecError, ValueError, KeyError, csv.Error) as error:
        raise NotSound(f"a line cannot be read: {error}") from error
