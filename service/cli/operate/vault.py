"""``docsmith vault``: the wrapping keys of a vault in PostgreSQL, which are in no database."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from service.cli.output import DONE, Output
from service.cli.parsing import FILE, Group, Options
from service.domain.errors import Conflict, Invalid, NotFound
from service.integrity.log_place import log_place
from service.runtime.data_folder import create_private

if TYPE_CHECKING:
    from eventstore.postgres.wrapping.rotation import Rotation

FORMAT = "docsmith-wrapping-keys-1"

PLAIN_BEFORE = (
    "archives of the database and its write-ahead log up to now have the keys as they were: delete them, and make a new"
    " base backup"
)
STATISTICS_LEFT = (
    "samples of keys may be in the server's statistics: let an administrator run VACUUM FULL pg_statistic in the"
    " vault's database"
)

vault = Group("vault")


class WrappingKeysFile(msgspec.Struct):
    """A copy of wrapping keys: each as hexadecimal digits, by its id."""

    format: str
    keys: dict[str, str]


@vault.command(
    "wrap",
    does="encrypt the vault's keys under a wrapping key outside PostgreSQL",
    more="Then archives of the database do not keep the keys of erased text, once a later wrapping key has replaced"
    " this one and it is destroyed. Stop all instances before. It can be interrupted and repeated. It rewrites the"
    " table of keys, so that its files have none as it was; archives and the write-ahead log up to now have them all.",
    examples=["vault wrap"],
    works_alone=True,
)
async def wrap(options: Options, output: Output) -> int:
    """Raises Invalid, Conflict, and EventStoreError."""
    create_private(options.data)

    def wrapped() -> tuple[str, int, bool]:
        with log_place(options.data).served_alone(), _rotation(options.data) as rotation:
            made = rotation.begin()
            if made is None:
                _require_current(rotation)
            is_clean = wrap_all(rotation)
            return next((row.id, row.living, is_clean) for row in rotation.rows() if row.state == "current")

    key_id, number, is_clean = await asyncio.to_thread(wrapped)
    lines = [
        f"{number} keys are wrapped under {key_id}, and no file of their table has them as they were",
        "keep a copy elsewhere: docsmith vault export FILE",
        PLAIN_BEFORE,
    ]
    if not is_clean:
        lines.append(STATISTICS_LEFT)
    output.result({"id": key_id, "keys": number}, "\n".join(lines))
    return DONE


@vault.command(
    "rotate",
    does="replace the wrapping key now",
    more="The running instances hand the new one to each other, wrap all keys under it, and destroy the one before"
    " after vault.keep_days. They do the same by themselves each vault.rotate_days.",
    examples=["vault rotate"],
    works_alone=True,
)
async def rotate(options: Options, output: Output) -> int:
    """Raises Invalid, Conflict, and EventStoreError."""

    def made() -> str:
        with _rotation(options.data) as rotation:
            _require_current(rotation)
            return rotation.make_next()

    key_id = await asyncio.to_thread(made)
    output.result({"id": key_id}, f"{key_id} is the next wrapping key; the running instances use it within seconds")
    return DONE


@vault.command(
    "status",
    does="list the wrapping keys, and what is wrapped under each",
    examples=["vault status"],
    works_alone=True,
)
async def status(options: Options, output: Output) -> int:
    """Raises Invalid, and EventStoreError."""

    def found() -> tuple[list[Any], list[str]]:
        with _rotation(options.data, read_only=True) as rotation:
            here = rotation.keys.ids()
            values: list[Any] = [
                {
                    "id": row.id, "state": row.state, "keys": row.living, "here": row.id in here,
                    "instances": list(row.holders), "createdAt": row.created_at, "retiredAt": row.retired_at,
                    "destroyedAt": row.destroyed_at, "copiedAt": row.copied_at,
                }
                for row in rotation.rows()
            ]  # fmt: skip
            lines = [
                f"{row['id']}  {row['state']}, made {str(row['createdAt'])[:10]}, {row['keys']} keys,"
                f" {'here' if row['here'] else 'not here'}"
                for row in values
            ]
            return values, lines

    values, lines = await asyncio.to_thread(found)
    output.result({"wrappingKeys": values}, "\n".join(lines or ["the vault is not wrapped"]))
    return DONE


@vault.command(
    "export",
    does="copy the wrapping keys into a file, to be kept elsewhere",
    more="Without them, and without an instance that has them, what people typed can never be read again. Keep the"
    " file apart from archives of the database, and replace it after each change of the wrapping key.",
    examples=["vault export /elsewhere/wrapping-keys.json"],
    works_alone=True,
)
@click.argument("file", type=FILE, metavar="FILE")
async def export(options: Options, output: Output) -> int:
    """Raises Invalid, Conflict, NotFound, and EventStoreError."""

    def exported() -> list[str]:
        with _rotation(options.data) as rotation:
            _require_current(rotation)
            found = {key_id: rotation.keys.find(key_id) for key_id in _in_use(rotation)}
            if lacking := [key_id for key_id, key in found.items() if key is None]:
                raise NotFound(f"{rotation.keys.folder} lacks {lacking[0]}. Run this where a running instance has it.")
            kept = WrappingKeysFile(FORMAT, {key_id: key.hex() for key_id, key in found.items() if key is not None})
            _write(options.file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
            rotation.note_copied()
            return list(kept.keys)

    ids = await asyncio.to_thread(exported)
    output.result(
        {"file": str(options.file), "ids": ids},
        f"{options.file}: {len(ids)} wrapping {'key' if len(ids) == 1 else 'keys'}; with an archive of the database it"
        " reads what people typed, so keep the two apart",
    )
    return DONE


@vault.command(
    "import",
    does="put back wrapping keys from a copy",
    examples=["vault import /elsewhere/wrapping-keys.json"],
    works_alone=True,
)
@click.argument("file", type=FILE, metavar="FILE")
async def put_back(options: Options, output: Output) -> int:
    """Raises Invalid, NotFound, and EventStoreError."""
    create_private(options.data)

    def imported() -> list[str]:
        from eventstore.postgres.wrapping.wrapping_keys import id_of

        kept = _read(options.file)
        with _rotation(options.data) as rotation:
            wanted = {key_id: kept[key_id] for key_id in _in_use(rotation) if key_id in kept}
            for key_id, key in wanted.items():
                if id_of(key) != key_id:
                    raise Invalid(f"{options.file}: it does not have the key {key_id} that it says. Use another copy.")
            return [rotation.keys.add(key) for key in wanted.values()]

    ids = await asyncio.to_thread(imported)
    if not ids:
        raise NotFound(f"{options.file} has no wrapping key that this vault uses. Import a newer copy.")
    output.result({"ids": ids}, "\n".join(f"{key_id} is here now" for key_id in ids))
    return DONE


def wrap_all(rotation: "Rotation") -> bool:
    """Wrap all living keys of a wrapped vault under its current wrapping key, and rewrite their table. Return
    whether the server's statistics are clean of them, too. Raise Conflict where others use the vault.
    """
    after: str | None = ""
    while after is not None:
        after = rotation.rewrap(after)
    if not rotation.rewrite():
        raise Conflict(
            "The keys are wrapped, and files of their table still have them as they were: another program uses the"
            " vault. Stop it, and repeat this."
        )
    return rotation.rewrite_statistics()


@contextmanager
def _rotation(data: Path, *, read_only: bool = False) -> "Iterator[Rotation]":
    """Open the wrapping keys of a data folder's vault. Raise Invalid ``bad_store`` where its log is in files."""
    place = log_place(data)
    if place.is_local:
        raise Invalid(
            f"The vault of {data} is the file keys.db, which is not wrapped: keep one copy of it, the newest.",
            code="bad_store",
        )
    from eventstore.postgres.place import TablePlace

    assert isinstance(place, TablePlace)
    with closing(place.rotation(read_only=read_only)) as rotation:
        yield rotation


def _require_current(rotation: "Rotation") -> None:
    """Raise Conflict where the vault is not wrapped, or its current wrapping key is not here."""
    current = next((key_id for key_id, state in rotation.states().items() if state == "current"), None)
    if current is None:
        raise Conflict("The vault is not wrapped. Stop all instances, and run docsmith vault wrap.", code="not_wrapped")
    if rotation.keys.find(current) is None:
        raise Conflict(
            f"{rotation.keys.folder} lacks the wrapping key {current}. Run this with the data folder of an instance, or"
            " import a copy: docsmith vault import FILE.",
            code="wrapping_key_missing",
        )


def _in_use(rotation: "Rotation") -> list[str]:
    return [key_id for key_id, state in rotation.states().items() if state != "destroyed"]


def _write(file: Path, content: bytes) -> None:
    """Raise Conflict where there is a file already."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{file} is there already. Name a new file.") from None
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(descriptor)


def _read(file: Path) -> dict[str, bytes]:
    """Raise Invalid, NotFound."""
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=WrappingKeysFile)
        if kept.format != FORMAT:
            raise Invalid(f"{file} is of the format {kept.format}, which this version does not know.")
        return {key_id: bytes.fromhex(text) for key_id, text in kept.keys.items()}
    except FileNotFoundError:
        raise NotFound(f"{file} not found. Name a file of docsmith vault export.") from None
    except (msgspec.DecodeError, ValueError):
        raise Invalid(f"{file} is not a copy of wrapping keys. Name a file of docsmith vault export.") from None
