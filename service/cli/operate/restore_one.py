"""``docsmith restore BACKUP --only PROJECT``: one repository of the embedded code host from a backup, into a folder
that is in use. The log stays as it is, so the repository may be older than what the log says: that is said, too.
"""

import asyncio
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from service.cli.operate.archives import FORMAT, NotSound, check
from service.cli.operate.copying import files_in
from service.cli.output import DONE, VERIFICATION_FAILED, Output
from service.cli.parsing import DEFAULT_DATA, Options
from service.domain.errors import Conflict, Invalid, NotFound
from service.runtime.data_folder import require_data_folder
from service.runtime.durable import sync_all, sync_folder
from service.runtime.file_locks import lock_of, locked
from service.runtime.hosted_place import HOSTED, HostedPlace
from service.runtime.scratch import RESTORE, scratch_folder
from service.runtime.settings.settings import Settings
from service.runtime.system import now

FindDamages = Callable[[list[Path]], dict[str, str]]


async def restore_one(options: Options, output: Output, settings: Settings, find_damages: FindDamages) -> int:
    """Raises NotFound, Invalid, Conflict, OSError."""
    require_data_folder(options.data, DEFAULT_DATA)
    if options.vault is not None or options.to is not None:
        raise Invalid("--only restores a repository, which has no vault. Leave --vault and --to out.")
    place = HostedPlace(options.data, settings.instances.hosted_folder)
    if not options.only.replace("-", "").replace("_", "").isalnum():
        raise Invalid(f"{options.only!r} is not a project's id. List them with: docsmith project list")
    hosted = place.repository(options.only)
    hosted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with scratch_folder(hosted.parent.absolute(), RESTORE) as work:
            made_at, kept = await asyncio.to_thread(_restored, options, hosted, work, find_damages)
    except NotSound as error:
        output.result({"restored": False, "sound": False, "problem": str(error)}, f"NOT sound: {error}")
        return VERIFICATION_FAILED
    did = "would restore" if options.dry_run else "restored"
    at = f"{made_at:%Y-%m-%d %H:%M} UTC"
    lines = [f"{did} {hosted}, as it was at {at}", f"what was merged or pushed after {at} is not in it"]
    if kept is not None:
        lines.append(f"what was there before is kept: {kept}")
    if not options.dry_run:
        lines.append(f"have the site indexed again: docsmith index SITE --data {options.data}")
    value = {
        "restored": not options.dry_run, "sound": True, "repository": str(hosted), "madeAt": made_at,
        "kept": None if kept is None else str(kept),
    }  # fmt: skip
    output.result(value, "\n".join(lines))
    return DONE


def _restored(options: Options, hosted: Path, work: Path, find_damages: FindDamages) -> tuple[datetime, Path | None]:
    """Put the repository in place; when the backup was made, and where the one before is kept."""
    if options.file.is_dir():
        for file in files_in(options.file / HOSTED / hosted.name):
            copy = work / file.relative_to(options.file)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        made_at = datetime.fromtimestamp(options.file.stat().st_mtime, tz=now().tzinfo)
    else:
        made_at = check(options.file, FORMAT, work).made_at
    found = work / HOSTED / hosted.name
    if not found.is_dir():
        raise NotFound(
            f"{options.file} has no repository of the project {options.only}. Try an older or a newer backup."
        )
    for name in ("objects", "refs"):
        (found / name).mkdir(exist_ok=True)  # a backup has files alone
    if (damage := find_damages([found]).get(found.name)) is not None:
        raise NotSound(f"{options.file}: {hosted.name} in it is damaged: {damage}. Try an older backup.")
    with locked(lock_of(hosted)):
        if hosted.is_dir() and not find_damages([hosted]):
            raise Conflict(
                f"{hosted} is sound, and what was merged there since the backup would be lost. Nothing was restored."
                " Move it away first, if you want the older one."
            )
        kept = None
        if hosted.exists():
            kept = hosted.with_name(f"{hosted.name}.damaged-{now():%Y%m%dT%H%M%SZ}")
        if not options.dry_run:
            sync_all(found)
            if kept is not None:
                hosted.rename(kept)
            found.rename(hosted)
            sync_folder(hosted.parent)
    return made_at, kept
