"""``docsmith restore``: a data folder from a backup, once everything in it has been checked.

With ``--to`` the folder is made first, whole, and then its log is moved into the databases: whatever is killed when,
either nothing is there, or a folder from which ``docsmith store copy --move`` goes on.
"""

import asyncio
import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import click

from eventstore import FilePlace, LogPlace, SQLiteEventStore, StoreForeign, subjects_without_keys
from eventstore.log.whole import BEGINNING
from eventstore.sqlite.files import sync_folder
from service.cli.operate.archives import FORMAT, VAULT_FORMAT, Manifest, Member, NotSound, check
from service.cli.operate.copying import Progress, copy_checkpoints, copy_log, files_in, verified
from service.cli.operate.store import MOVED, StoreCopy, place_at, with_keys
from service.cli.operate.take_over import write_mark
from service.cli.output import DONE, VERIFICATION_FAILED, Output, named, note
from service.cli.parsing import FILE, Options, command
from service.cli.runtime import Program
from service.domain.errors import Conflict, Invalid
from service.integrity.erasing import repeat_erasures
from service.integrity.log_place import STORE
from service.integrity.log_place import VAULT as VAULT_VARIABLE
from service.runtime.data_folder import LOG, WRAPPING, is_copy
from service.runtime.hosted_place import HOSTED
from service.runtime.scratch import RESTORE, scratch_folder
from service.runtime.settings.settings import Settings


@command(
    "restore",
    more="With --to, its log and vault go into databases that have none; env:NAME is an address in a variable, so that"
    " no password is typed.",
    examples=[
        "restore /backups/2026-01-31.tar --vault /elsewhere/vault.tar --data data --dry-run",
        "restore /backups/live --vault /elsewhere/vault.tar --data data",
        f"restore /backups/2026-01-31.tar --vault /elsewhere/vault.tar --data data --to env:{STORE}",
        "restore /backups/2026-01-31.tar --only PROJECT_ID --data data",
    ],
    reads_settings=True,
)
@click.argument("file", type=FILE, metavar="FILE", help="a backup, or a folder that backup --follow made")
@click.option("--vault", type=FILE, metavar="FILE", help="without it, what people typed cannot be read")
@click.option("--to", metavar="ADDRESS", help="a database in PostgreSQL for the log (default: the data folder)")
@click.option(
    "--to-vault", metavar="ADDRESS", help=f"with --to, the vault of TO in PostgreSQL (default: env:{VAULT_VARIABLE})"
)
@click.option(
    "--wrap", is_flag=True, help="with --to, encrypt the keys of TO's vault under a wrapping key outside PostgreSQL"
)
@click.option(
    "--only", metavar="PROJECT", help="the repository of this project alone, by its id, in place of one that is damaged"
)
@click.option("--dry-run", is_flag=True, help="check the backup and say what would be done")
async def restore(options: Options, output: Output, program: Program, read_settings: Callable[[], Settings]) -> int:
    """Raises Invalid, Conflict, NotFound, OSError, and EventStoreError."""
    if options.only is not None:
        from service.cli.operate.restore_one import restore_one

        return await restore_one(options, output, read_settings(), program.find_damages)
    data: Path = options.data
    target = _target(options)
    if _is_used(data):
        says = f"{data} is there already, and not empty. Name a new folder with --data."
        if target is not None and is_copy(data):
            says += f" To finish a restore that was interrupted: {_finishing(options)}"
        raise Conflict(says)
    if target is not None:
        await asyncio.to_thread(_require_unused, target)
    try:
        with scratch_folder(_work_parent(data, is_to_stay=not options.dry_run), RESTORE) as work:
            manifest, erased, without = await _restored(options, work, output)
    except NotSound as error:
        output.result({"restored": False, "sound": False, "problem": str(error)}, f"NOT sound: {error}")
        return VERIFICATION_FAILED
    if target is not None and not options.dry_run:
        note(f"{data} is restored; if the copy into {target.name} is interrupted, finish it: {_finishing(options)}")
        await asyncio.to_thread(_move_log, target, options, output)
    value = {
        "restored": not options.dry_run, "sound": True, "data": str(data), "position": manifest.position,
        "head": manifest.hash, "files": len(manifest.files), "madeAt": manifest.made_at,
        "vault": options.vault is not None, "erasuresRepeated": erased,
        "withoutKeys": without, "to": None if target is None else target.name,
    }  # fmt: skip
    did = "would restore" if options.dry_run else "restored"
    lines = [f"{did} {data}: events up to position {manifest.position}, of {manifest.made_at:%Y-%m-%d %H:%M} UTC"]
    if target is not None:
        lines.append(
            f"its log is {'to be ' if options.dry_run else ''}in {target.name}, its vault in {target.vault_name}"
        )
        lines.append(f"set {STORE} and {VAULT_VARIABLE} to their addresses")
    if options.vault is None:
        lines.append("without --vault, what people typed can never be read again")
    elif erased:
        lines.append(f"what the log says was erased is erased from the vault: {erased}")
    if without:
        lines.append(f"the vault is older than the log, and can never decrypt {named(without)}")
    lines.append("read models and search indexes are made again when the service starts")
    if not options.dry_run:
        lines.append(f"it is marked as a copy: try it with docsmith serve --drill --data {data}, or")
        lines.append(f"go on from it in place of the original with docsmith take-over --data {data} --yes")
    output.result(value, "\n".join(lines))
    return DONE


async def _restored(options: Options, work: Path, output: Output) -> tuple[Manifest, int, list[str]]:
    """Put a copy in place; how many erasures were repeated, and whose keys the vault lacks. Raises NotSound."""
    unpack = _copy_folder if options.file.is_dir() else _unpack
    manifest = await asyncio.to_thread(unpack, options.file, options.vault, work, output.progress)
    # Without --vault this makes an empty one: the caller has decided so, and the service begins with it.
    async with await SQLiteEventStore.open(work / "events.db", vault_path=work / "keys.db") as store:
        erased = await repeat_erasures(store) if options.vault is not None else 0
    without = []
    if options.vault is not None:
        without = await asyncio.to_thread(subjects_without_keys, work / "events.db", work / "keys.db")
    if not options.dry_run:
        await asyncio.to_thread(write_mark, work, manifest.position, manifest.hash)
        await asyncio.to_thread(_put_in_place, work, options.data)
    return manifest, erased, without


def _target(options: Options) -> LogPlace | None:
    """Return the databases to restore into, if there are any. Raise Invalid ``bad_store``."""
    if options.to is None:
        if options.to_vault is not None or options.wrap:
            raise Invalid("--to-vault and --wrap are for --to ADDRESS. Add it, or leave them out.", code="bad_store")
        return None
    target, folder = place_at(options.to, options.to_vault)
    if folder is not None:
        raise Invalid(f"--to names a database, and {folder} is a folder: name that with --data.", code="bad_store")
    return with_keys(target, options.data / WRAPPING)


def _require_unused(target: LogPlace) -> None:
    """Raise Conflict ``store_differs`` for databases with events or keys; tables alone may be there."""
    if target.exists():
        with closing(target.log_rows(read_only=True)) as log:
            if log.end() != BEGINNING:
                raise Conflict(
                    f"{target.name} has a log already. Name an empty database with --to.", code="store_differs"
                )
    try:
        vault = target.vault_rows(read_only=True)
    except StoreForeign:
        return
    with closing(vault):
        if not vault.is_empty():
            raise Conflict(
                f"{target.vault_name} has a vault with keys already. Name an empty database with --to-vault.",
                code="store_differs",
            )


def _move_log(target: LogPlace, options: Options, output: Output) -> None:
    data: Path = options.data
    StoreCopy(
        FilePlace(data / LOG, data / "keys.db"), target, data, None, moves=True, is_begun=False, wraps=options.wrap,
        progress=lambda done, total: output.progress("copying", done, total),
    ).run()  # fmt: skip
    shutil.rmtree(data / MOVED)  # the backup has all of it


def _finishing(options: Options) -> str:
    """Return the command that finishes an interrupted restore into databases."""
    vault = [] if options.to_vault is None else ["--to-vault", options.to_vault]
    wrap = ["--wrap"] if options.wrap else []
    return shlex.join(["docsmith", "store", "copy", str(options.data), options.to, *vault, *wrap, "--move"])


def _is_used(data: Path) -> bool:
    return data.exists() and (not data.is_dir() or any(data.iterdir()))


def _work_parent(data: Path, *, is_to_stay: bool) -> Path:
    """Return a folder on the file system of the data folder, so that files can be renamed from it."""
    parent = data.absolute().parent
    if is_to_stay:
        parent.mkdir(parents=True, exist_ok=True)
    return next(folder for folder in (parent, *parent.parents) if folder.is_dir())


def _put_in_place(work: Path, data: Path) -> None:
    for folder in (work, *(one for one in work.rglob("*") if one.is_dir())):
        sync_folder(folder)
    work.rename(data)  # only in place of an empty folder
    sync_folder(data.absolute().parent)


def _unpack(file: Path, vault: Path | None, work: Path, progress: Progress) -> Manifest:
    manifest = check(file, FORMAT, work)
    if not (work / "events.db").exists():
        raise NotSound(f"{file}: there is no log in it.")
    if verified(work / "events.db", manifest.position, progress) != manifest.hash:
        raise NotSound(f"{file}: its log has another head than the manifest says.")
    if vault is not None:
        check(vault, VAULT_FORMAT, work)
    return manifest


def _copy_folder(folder: Path, vault: Path | None, work: Path, progress: Progress) -> Manifest:
    """Copy as ``_unpack`` does, from a copy that --follow made, and may be writing."""
    place = FilePlace(folder / LOG, folder / "keys.db")
    if not place.exists():
        raise Invalid(f"{folder}: there is no log in it.")
    with closing(place.log_rows(read_only=True)) as log:
        end = log.end()
        if end == BEGINNING:
            raise Invalid(f"{folder}: its log is empty.")
        recorded_at = log.rows(end.position - 1, 1)[0][6]
    copy_checkpoints(folder, work, end.position)
    for file in files_in(folder / HOSTED):
        copy = work / file.relative_to(folder)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    head = copy_log(place, work / LOG, end.position, progress)
    for file in files_in(work):
        with file.open("rb") as made:
            os.fsync(made.fileno())
    members = tuple(Member(file.relative_to(work).as_posix(), file.stat().st_size, "") for file in files_in(work))
    if vault is not None:
        check(vault, VAULT_FORMAT, work)
    return Manifest(FORMAT, datetime.fromisoformat(recorded_at), end.position, head, members)
