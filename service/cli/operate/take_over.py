"""The mark of a restored copy, and ``docsmith take-over``, which removes it.

A copy that is served as if it were the original would send webhooks again and work on jobs that the original works on.
"""

import os
from datetime import datetime
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from eventstore import Metadata
from eventstore.sqlite.files import sync_folder
from service.cli.output import DONE, WRONG_USAGE, Output
from service.cli.parsing import Options, command
from service.cli.runtime import Runtime, is_served
from service.commands.copies import record_take_over
from service.domain.copies import TakeOver
from service.domain.errors import Conflict
from service.runtime.data_folder import COPY_MARK, is_copy
from service.runtime.system import cli_actor, new_id, now


class Mark(Struct, frozen=True, rename="camel"):
    id: str
    restored_at: datetime
    position: int
    head: str


def write_mark(folder: Path, position: int, head: str) -> None:
    """Mark a folder as a restored copy, durably once the folder is synced."""
    descriptor = os.open(folder / COPY_MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(Mark(new_id(), now(), position, head)))
        file.flush()
        os.fsync(file.fileno())


@command(
    "take-over",
    more="Do it once the original is stopped for good: from then on the copy sends the webhooks, works on the jobs "
    "and opens the pull requests that were under way. It is recorded in the log.",
    examples=["take-over --data data", "take-over --data data --yes"],
)
@click.option("--yes", is_flag=True, help="do it; without this it only says what it would do")
async def take_over(runtime: Runtime, options: Options, output: Output) -> int:
    """Raises Conflict ``not_a_copy`` and ``already_served``."""
    data: Path = options.data
    if not is_copy(data):
        raise Conflict(f"{data} is not a restored copy, so nothing is to be taken over.", code="not_a_copy")
    if is_served(data):
        raise Conflict(f"{data} is served, as a drill; stop that service first.", code="already_served")
    try:
        mark = msgspec.json.decode((data / COPY_MARK).read_bytes(), type=Mark)
    except msgspec.MsgspecError:
        raise Conflict(f"{data / COPY_MARK} is not as restore wrote it; restore the backup again.") from None
    of = f"the copy of position {mark.position}, restored {mark.restored_at:%Y-%m-%d %H:%M} UTC"
    if not options.yes:
        text = f"{data}: {of}, would go on in place of the original\nnothing was done: add --yes to do it"
        output.result({"takenOver": False, "position": mark.position, "head": mark.head}, text)
        return WRONG_USAGE
    command = TakeOver(mark.restored_at, mark.position, mark.head, now())
    position = await record_take_over(runtime.store, mark.id, command, Metadata(actor=cli_actor()))
    (data / COPY_MARK).unlink(missing_ok=True)
    sync_folder(data)
    text = f"{data}: {of}, goes on in place of the original (event {position})"
    output.result({"takenOver": True, "position": mark.position, "head": mark.head, "event": position}, text)
    return DONE
