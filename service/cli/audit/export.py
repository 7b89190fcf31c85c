"""``docsmith audit export``: events as files for other programs, with every byte that their hashes cover.

A folder with ``events-000001.jsonl`` and on (or ``.csv``), each of a bounded size, and ``manifest.json``, which lists
those that are complete with their SHA-256. It is rewritten, atomically, after each file: an export that was killed is a
smaller one that is sound. The same command goes on after the last complete file, with the rest or with newer events; it
never writes an event twice.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import IO

import click
import msgspec
from msgspec.structs import replace

from eventstore import LogPlace, RecordedEvent, Witness
from eventstore.sqlite.files import sync_folder
from service.cli.audit.reading import (
    filter_of,
    filter_options,
    log_of,
    reading,
)
from service.cli.output import DONE, Output
from service.cli.parsing import COUNT, FILE, Choice, Options, command
from service.domain.errors import Conflict
from service.integrity.identity import identity_in
from service.queries.audit import pages
from service.queries.export_format import (
    FORMAT,
    MANIFEST,
    ExportedFile,
    Line,
    Manifest,
    encoded,
    heading,
    read_manifest,
)
from service.runtime.system import now

MAX_EVENTS = 50_000
MAX_BYTES = 64 << 20
"""A file ends with the event that makes it this large."""


@command(
    "export",
    does="write events to files; repeat it to continue",
    more="It continues an export with the same options that is in the folder already.",
    examples=["audit export --output export", "audit export --output jobs --category job --format csv --personal"],
    works_alone=True,
)
@click.option("--output", type=FILE, required=True, metavar="FOLDER")
@click.option("--format", type=Choice(("jsonl", "csv")), default="jsonl")
@click.option("--personal", is_flag=True, help="also the text that people typed; else only that there is some")
@click.option("--events-per-file", type=COUNT, default=MAX_EVENTS, metavar="N")
@filter_options
async def export(options: Options, output: Output) -> int:
    folder, wanted = options.output, filter_of(options)
    filters = wanted.as_texts()
    log = await asyncio.to_thread(log_of, options.data)
    identity = await identity_in(log)
    key = "" if identity is None else identity.public_key
    new = Manifest(FORMAT, options.format, filters, options.personal, await asyncio.to_thread(log.log_id), key)
    manifest = await asyncio.to_thread(_begun, folder, new, log)
    before = len(manifest.files)
    start = max(wanted.after, manifest.through)
    asked = filters | {"format": options.format, "personal": str(options.personal).lower()}
    async with (
        reading(options.data, "audit export", asked, after=start) as (store, through),
        aclosing(pages(store, replace(wanted, after=start), through=through)) as all_pages,
    ):
        writer = _Writer(folder, log, manifest, options.events_per_file)
        async for page, reached in all_pages:
            await asyncio.to_thread(writer.write, page)
            output.progress("exporting", reached, through)
        manifest = await asyncio.to_thread(writer.finish, through)
    files = manifest.files[before:]
    value = {
        "folder": str(folder), "events": sum(file.events for file in files), "files": len(files),
        "allEvents": sum(file.events for file in manifest.files), "allFiles": len(manifest.files),
        "through": manifest.through,
    }  # fmt: skip
    text = f"{folder}: {value['events']} events in {len(files)} new files, up to position {manifest.through}"
    output.result(value, text)
    return DONE


def _begun(folder: Path, new: Manifest, log: LogPlace) -> Manifest:
    """The manifest of the export in a folder that is to go on, or a new one's."""
    if not (folder / MANIFEST).exists():
        if folder.exists() and any(not file.name.endswith(".part") for file in folder.iterdir()):
            raise Conflict(f"{folder} has other files in it: name a new folder.")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_manifest(folder, new)
        return new
    found = read_manifest(folder)
    for name in ("kind", "filters", "personal"):
        if getattr(found, name) != getattr(new, name):
            raise Conflict(f"{folder} has an export with other options ({name}): name a new folder.")
    last = found.files[-1] if found.files else None
    if last is not None and log.not_held([Witness("the export", last.last_position, bytes.fromhex(last.last_hash))]):
        raise Conflict(
            f"{folder} has an export of another log, which differs at position {last.last_position}: name a new folder."
        )
    return replace(found, log=new.log, key=new.key, is_complete=False)


class _Writer:
    """Puts events into files, and each complete file into the manifest."""

    def __init__(self, folder: Path, log: LogPlace, manifest: Manifest, events_per_file: int) -> None:
        self._folder, self._log, self._manifest, self._events_per_file = folder, log, manifest, events_per_file
        self._file: IO[bytes] | None = None
        self._sha256 = hashlib.sha256()
        self._first: RecordedEvent | None = None
        self._last: RecordedEvent | None = None
        self._events = self._bytes = 0

    def write(self, events: Sequence[RecordedEvent]) -> None:
        stored = self._log.stored_events([event.position for event in events])
        for event, row in zip(events, stored, strict=True):
            if self._file is None:
                self._begin(event)
            self._put(encoded(Line.of(row, event, personal=self._manifest.personal), self._manifest.kind))
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
        self._put(heading(self._manifest.kind))

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


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    part = folder / f"{MANIFEST}.part"
    with part.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MANIFEST)
    sync_folder(folder)
