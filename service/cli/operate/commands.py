"""``docsmith backup``: all data that cannot be derived in one file; the vault in another.

A backup is a tar file:

    checkpoints.jsonl, checkpoint.pub    what was signed, and the key to check it
    events.db                            the log up to some position
    hosted/                              the repositories and pull requests of the embedded code host
    manifest.json                        the last one: SHA-256 of each, the log's position and head

Read models and indexes are derived, and made again.

The vault is not in it. Anyone with an old copy of the vault can read what was erased since, so there should be one
copy, the newest: ``--vault FILE`` writes it (and the key that signs checkpoints) to a file of its own, in place of the
last one. Keep it apart from the backups. A restored vault is erased again of all that the log says was erased. With
``--follow``, a folder takes the place of the tar file, and is never much older than the service: see following.py.

A log in PostgreSQL becomes the same files: its events with their hashes, and its vault opened, if it is wrapped.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import click

from eventstore import EventStore, LogPlace
from eventstore.sqlite.files import sync_folder
from service.cli.audit.reading import log_of, reading
from service.cli.operate.archives import Manifest
from service.cli.operate.copying import Repositories, write, write_vault
from service.cli.operate.following import follow
from service.cli.output import DONE, VERIFICATION_FAILED, Output
from service.cli.parsing import COUNT, FILE, Options, command
from service.cli.runtime import Program
from service.domain.errors import Conflict, Invalid, NotFound
from service.domain.projects.decider import ProjectCreated
from service.integrity.continuity import require_continuous
from service.runtime.hosted_place import HostedPlace
from service.runtime.settings.settings import Settings
from service.runtime.system import now
from service.streams import PROJECTS, decoded

NAME = "docsmith-*Z.tar"
"""Names of the backups in a folder: with their times in UTC, so that their order is that of their names."""


@command(
    "backup",
    more="The log may be in files or in PostgreSQL. docsmith init --systemd-backup and --systemd-follow have systemd do"
    " it, again and again.",
    examples=[
        "backup /backups/2026-01-31.tar --vault /elsewhere/vault.tar",
        "backup /backups --keep 30 --vault /elsewhere/vault.tar",
        "backup /backups/live --follow --vault /elsewhere/vault.tar",
    ],
    reads_settings=True,
    at_most_one=[("keep", "follow")],
)
@click.argument(
    "file", type=FILE, metavar="FILE", help="a tar file that is not there yet, or a folder, for one of a new name"
)
@click.option(
    "--vault",
    type=FILE,
    metavar="FILE",
    help="also copy the keys of what is encrypted, into a file of its own, in place of the last one",
)
@click.option("--keep", type=COUNT, metavar="N", help="of the backups in the folder, delete all but the last N")
@click.option("--follow", is_flag=True, help="make FILE a folder that is a copy, and keep it one until stopped")
async def backup(options: Options, output: Output, program: Program, read_settings: Callable[[], Settings]) -> int:
    """Raises Invalid, Conflict, NotFound, BadSettings."""
    log = await asyncio.to_thread(log_of, options.data)
    # a copy of what is left could take the place of a whole one
    await asyncio.to_thread(require_continuous, options.data)
    repositories = _repositories(log, options.data, read_settings())
    if options.follow:
        return await follow(log, options, output, repositories)
    file = _new_file(options.file, now())
    if options.keep is not None and file == options.file:
        raise Invalid(f"{file}: --keep is for a folder of backups; make it first.")
    if file.exists():
        raise Conflict(f"{file} is there already. Name a new file.")
    for one in (file, options.vault):
        if one is not None and not one.parent.is_dir():
            raise NotFound(f"There is no folder {one.parent}. Make it first.")
    async with reading(options.data, "backup", {}) as (store, through):
        manifest = await asyncio.to_thread(
            write, log, options.data, repositories.folder, file, through, output.progress
        )
        if options.vault is not None:  # later than the log: a key is older than the events that need it
            await asyncio.to_thread(_write_vault, log, options.data, options.vault, manifest)
        damages = {}
        if repositories.folder is not None and repositories.elsewhere is None:
            wanted = [repositories.folder / f"{one}.git" for one in await _hosted_projects(store)]
            damages = await asyncio.to_thread(program.find_damages, wanted)
    # An older one may have what is damaged now.
    deleted = _forget_all_but(options.keep, file.parent) if options.keep is not None and not damages else []
    size = file.stat().st_size
    lines = [f"{file}: events up to position {manifest.position}, {len(manifest.files)} files, {size} bytes"]
    if options.vault is None:
        lines.append("the vault (keys.db) is not in it: keep one copy of it elsewhere, the newest, with --vault FILE")
    else:
        lines.append(f"{options.vault}: the vault; keep it apart, and no older one")
    if repositories.note:
        lines.append(repositories.note)
    lines += [f"deleted {one}" for one in deleted]
    for name, says in damages.items():
        lines.append(f"NOT sound: {name}: {says}; docsmith restore OLDER_BACKUP --only {name.removesuffix('.git')}")
    if damages and options.keep is not None:
        lines.append("no older backup was deleted: one of them may have what is damaged now")
    value = {
        "file": str(file), "bytes": size, "position": manifest.position, "head": manifest.hash,
        "files": len(manifest.files), "vault": None if options.vault is None else str(options.vault),
        "deleted": [str(one) for one in deleted], "repositoriesElsewhere": repositories.elsewhere,
        "damaged": damages,
    }  # fmt: skip
    output.result(value, "\n".join(lines))
    return VERIFICATION_FAILED if damages else DONE


async def _hosted_projects(store: EventStore) -> list[str]:
    """Return the ids of the projects that the embedded code host keeps."""
    kept: dict[str, bool] = {}
    after = 0
    while page := await store.read_all(after=after, category=PROJECTS.category):
        after = page[-1].position
        for project_id, event in decoded(PROJECTS, page):
            if isinstance(event, ProjectCreated):
                kept[project_id] = event.code_host == "local"
    return [project_id for project_id, is_kept in kept.items() if is_kept]


def _write_vault(log: LogPlace, data: Path, file: Path, of: Manifest) -> None:
    with closing(log.vault_rows(read_only=True)) as vault:
        write_vault(vault, data, file, of)


def _repositories(log: LogPlace, data: Path, settings: Settings) -> Repositories:
    """Return where the hosted repositories are: in a shared folder, in this data folder or, where the log is in
    PostgreSQL, in that of the home.
    """
    place, home = HostedPlace(data, settings.instances.hosted_folder), settings.instances.home
    if log.is_local or place.is_shared or (any(place.root.glob("*.git")) if home is None else home):
        return Repositories(place.root, None)
    elsewhere = "the folder hosted in the data folder of the home, another instance"
    return Repositories(place.root if home is None else None, elsewhere)


def _new_file(file: Path, at: datetime) -> Path:
    """Return a file's name in a folder: that of this second, or of the next one that is free."""
    if not file.is_dir():
        return file
    while (made := file / f"docsmith-{at:%Y-%m-%dT%H-%M-%SZ}.tar").exists():
        at += timedelta(seconds=1)
    return made


def _forget_all_but(number: int, folder: Path) -> list[Path]:
    """Delete the older backups of a folder, those alone that were given their names here."""
    old = sorted(file for file in folder.glob(NAME) if file.is_file() and not file.is_symlink())[:-number]
    for file in old:
        file.unlink()
    sync_folder(folder)
    return old
