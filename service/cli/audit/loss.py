"""``docsmith audit accept-loss``: go on with a log that lost its end, or that is another one, on the record."""

import asyncio
import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from eventstore import LogPlace, Loss, Metadata, Views
from service.cli.audit.reading import log_of
from service.cli.output import DONE, FAILED, Output
from service.cli.parsing import Options, command
from service.commands.audit import record_audit
from service.domain.audit import AcceptLoss
from service.domain.errors import Conflict, Invalid, NotFound
from service.integrity.checkpoints import CHECKPOINTS, LOST_CHECKPOINTS, set_apart
from service.integrity.continuity import loss_in
from service.integrity.log_place import MOVED_AWAY, forget_copy
from service.queries.read_models import catch_up, read_models
from service.runtime.system import cli_actor, now


@command(
    "accept-loss",
    does="go on with a log that has lost events, or with another one",
    more="Restoring a backup into a new folder is better. This records both heads, the lost range and the reason as"
    " an event, rebuilds the views, and moves the checkpoints that the log does not hold to"
    f" {LOST_CHECKPOINTS}. Of several instances stop all, and run it on the one that has seen most; the others follow"
    " when they start. It also lets a log go on that another instance, which may be gone, has stopped.",
    examples=['audit accept-loss --reason "the disk failed on 31 January; the backups are older"'],
    works_alone=True,
)
@click.option("--reason", required=True, metavar="TEXT", help="what happened, for those who read the log later")
async def accept_loss(options: Options, output: Output) -> int:
    """Raises Invalid, Conflict, NotFound, and EventStoreError."""
    log, vault = await asyncio.to_thread(log_of, options.data), options.data / "keys.db"
    reason = options.reason.strip()
    if not reason:
        raise Invalid("--reason is empty: say what happened to the log.")
    if log.is_local and not vault.exists():
        raise NotFound(f"{vault} is missing: put it back, or restore a backup (docsmith restore BACKUP --vault VAULT).")
    with unserved(options.data), log.served_alone():
        held = await asyncio.to_thread(log.held)
        if held == MOVED_AWAY:
            raise Conflict(
                f"{log.name} is not in use: {held}. Use that folder, or repeat the move: docsmith store copy FROM TO"
                " --move.",
                code="store_differs",
            )
        loss = await asyncio.to_thread(loss_in, options.data, tail_bytes=None)
        if loss is not None:
            command = _command(loss, reason)
        elif held is not None:
            command = await asyncio.to_thread(_command_of_others, log, held, reason)
        else:
            output.failed(f"{log.name} holds all that was seen of it: there is no loss to accept.", "nothing_lost")
            return FAILED
        await asyncio.to_thread(log.release)
        if not log.is_local:
            forget_copy(options.data)
        async with await log.open() as store:
            position = await record_audit(store, command, Metadata(actor=cli_actor()))
            apart = await asyncio.to_thread(set_apart, options.data / CHECKPOINTS, log)
            async with await Views.open(options.data / "views.db", store, read_models()) as views:
                await catch_up(views)  # those that were made of another log begin again
    through = f"to {command.expected_position}" if command.expected_position else "on"
    value = {
        "position": position, "witness": command.witness or None,
        "expectedPosition": command.expected_position or None, "expectedHash": command.expected_hash or None,
        "foundPosition": command.found_position, "foundHash": command.found_hash, "lostFrom": command.lost_from,
        "lostThrough": command.expected_position or None, "checkpointsSetApart": apart, "held": held,
    }  # fmt: skip
    lines = [f"recorded at position {position}: events from {command.lost_from} {through} are lost"]
    if loss is None:
        lines = [f"recorded at position {position}: {command.witness}; {options.data} lacks nothing that it had seen"]
    if apart:
        lines.append(f"{apart} checkpoints are in {options.data / LOST_CHECKPOINTS} now")
    output.result(value, "\n".join(lines))
    return DONE


def _command(loss: Loss, reason: str) -> AcceptLoss:
    one = loss.witness
    return AcceptLoss(
        reason,
        "" if one is None else one.name,
        0 if one is None else one.position,
        "" if one is None else one.hash.hex(),
        loss.position,
        loss.hash.hex(),
        loss.lost_from,
        now(),
    )


def _command_of_others(log: LogPlace, held: str, reason: str) -> AcceptLoss:
    """Return what to record where only another instance has seen more: it may be gone for good."""
    with closing(log.log_rows(read_only=True)) as rows:
        end = rows.end()
    return AcceptLoss(reason, f"another instance: {held}", 0, "", end.position, end.hash.hex(), end.position + 1, now())


@contextmanager
def unserved(data: Path) -> Iterator[None]:
    """Keep the service from starting meanwhile. Raises Conflict: it runs."""
    with (data / "server.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"{data} is being served: stop the service first.") from None
        yield
