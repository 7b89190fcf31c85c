"""``docsmith store copy``: a log and its vault from a data folder to PostgreSQL, back, or to another database."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from eventstore import FilePlace, LogPlace, StoreBusy
from eventstore.log.whole import BEGINNING, Copied, Progress, WholeStore, copy_store
from eventstore.place import open_whole
from service.cli.audit.loss import unserved
from service.cli.operate.vault import wrap_all
from service.cli.output import DONE, Output
from service.cli.parsing import Choice, Group, Options
from service.cli.runtime import Program
from service.domain.errors import Conflict, Invalid, NotFound
from service.integrity.log_place import MOVED_AWAY, VAULT, note_elsewhere, note_here, require_no_password
from service.runtime.data_folder import ELSEWHERE, LOG, WRAPPING, create_private
from service.runtime.settings.settings import Settings

if TYPE_CHECKING:
    from eventstore.postgres.connections import Address

MOVED = "moved"
"""The folder in a data folder for the log that it used before."""
_FILES = (LOG, "keys.db")

store = Group("store")


@store.command(
    "copy",
    does="copy a log and its vault to another storage, event by event",
    more="FROM and TO are each a data folder, an address such as postgresql://USER@HOST/DATABASE, or env:NAME for an "
    "address in a variable, so that no password is typed. The copy has the same events and the same hashes. Repeat it"
    " to continue, or to add what came later; the service may run meanwhile.",
    examples=[
        "store copy data env:DOCSMITH_STORE --to-vault env:DOCSMITH_VAULT",
        "store copy data env:DOCSMITH_STORE --move",
        "store copy data env:DOCSMITH_STORE --wrap --move",
        "store copy env:DOCSMITH_STORE backup",
    ],
    works_alone=True,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--from-vault", metavar="ADDRESS", help=f"the vault of FROM in PostgreSQL (default: env:{VAULT})")
@click.option("--to-vault", metavar="ADDRESS", help=f"the vault of TO in PostgreSQL (default: env:{VAULT})")
@click.option("--wrap", is_flag=True, help="encrypt the keys of TO's vault under a wrapping key outside PostgreSQL")
@click.option(
    "--move",
    is_flag=True,
    help=f"then let the data folder, FROM or TO, use the copy; a log of its own that it had stays in {MOVED}/",
)
async def copy(options: Options, output: Output) -> int:
    """Raises Invalid, NotFound, Conflict, and EventStoreError."""
    source, from_folder = place_at(options.source, options.from_vault)
    target, to_folder = place_at(options.target, options.to_vault)
    folder = from_folder or to_folder
    if options.wrap and target.is_local:
        raise Invalid("--wrap is for a vault in PostgreSQL. Leave it out.", code="bad_store")
    # A data folder that is part of a move has the wrapping keys, else the one that --data names.
    keys_folder = (folder if options.move and folder is not None else options.data) / WRAPPING
    source, target = with_keys(source, keys_folder), with_keys(target, keys_folder)
    if options.move and (folder is None or (from_folder is not None and to_folder is not None)):
        raise Invalid("--move is for a data folder and a database: one of FROM and TO must be each.", code="bad_store")
    is_begun = options.move and from_folder is not None and _is_moving(from_folder, target)
    if not is_begun and not await asyncio.to_thread(source.exists):
        raise NotFound(f"{source.name}: there is no log here. Name a data folder or a database that has one.")
    if to_folder is not None:
        create_private(to_folder)
    copying = StoreCopy(
        source, target, from_folder, to_folder, moves=options.move, is_begun=is_begun, wraps=options.wrap,
        progress=lambda done, total: output.progress("copying", done, total),
    )  # fmt: skip
    found = await asyncio.to_thread(copying.run)
    value = {
        "from": source.name, "to": target.name, "position": found.end.position, "head": found.end.hash.hex(),
        "added": found.added, "moved": options.move,
    }  # fmt: skip
    lines = [f"{target.name}: events up to position {found.end.position}, {found.added} of them new"]
    lines.append(f"head {found.end.hash.hex()}" + ("" if is_begun else f", as in {source.name}"))
    if options.move and folder is not None:
        lines.append(f"{folder} uses {target.name} now")
        if from_folder is not None:
            lines.append(
                f"its previous log is in {folder / MOVED}: delete it once all is well, for its vault has old keys"
            )
    output.result(value, "\n".join(lines))
    return DONE


class StoreCopy(NamedTuple):
    """A copy, or a move, of a log and its vault. Folders are given for those places that are data folders."""

    source: LogPlace
    target: LogPlace
    from_folder: Path | None
    to_folder: Path | None
    moves: bool
    is_begun: bool
    """The folder uses the copy already, since a move was interrupted."""
    wraps: bool
    progress: Progress

    def run(self) -> Copied:
        """Raises Conflict, EventStoreError."""
        source, target, folder = self.source, self.target, self.from_folder or self.to_folder
        with ExitStack() as stack:
            if self.to_folder is not None or self.moves:
                assert folder is not None
                stack.enter_context(unserved(self.to_folder or folder))
            locks = [stack.enter_context(target.served_alone())]
            if self.moves:
                locks.append(stack.enter_context(source.served_alone()))
            if self.is_begun:
                assert folder is not None
                _set_apart(folder)
                target.release()
                return Copied(stack.enter_context(closing(target.log_rows(read_only=True))).end(), 0)
            rows = stack.enter_context(closing(open_whole(source, read_only=True)))
            into = stack.enter_context(closing(open_whole(target, read_only=False)))
            if self.wraps:
                _wrap(target)
            if not self.moves:
                return copy_store(rows, into, self.progress)
            assert folder is not None
            is_repeat = _require_movable(source, into)
            found = copy_store(rows, into, self.progress)
            undo = stack.enter_context(ExitStack())
            if not source.is_local:
                if not is_repeat:
                    undo.callback(source.release, MOVED_AWAY)
                # From now on no append is taken there, as of a command that has begun before.
                source.hold(MOVED_AWAY)
                _require_held(source)
                more = copy_store(rows, into, self.progress)
                found = Copied(more.end, found.added + more.added)
            if why := next((why for lock in locks if (why := lock()) is not None), None):
                raise StoreBusy(why, remedy="nothing was moved; stop what uses it, and repeat this")
            undo.pop_all()
            _move(folder, target)
            target.release()  # what held it is over: it has all that its source has
            if source.is_local and rows.log.end() != found.end:  # a command that had begun before has appended
                more = copy_store(rows, into, self.progress)
                found = Copied(more.end, found.added + more.added)
            return found


def place_at(text: str, vault: str | None) -> tuple[LogPlace, Path | None]:
    """Return a place as it was typed and, where it is a data folder, the folder. Raise Invalid ``bad_store``."""
    address = _read(text)
    if "://" not in address:
        folder = Path(address)
        return FilePlace(folder / LOG, folder / "keys.db"), folder
    from eventstore.postgres.place import TablePlace

    keys = _read(vault or f"env:{VAULT}")
    try:
        return TablePlace(address, keys).checked(), None
    except ValueError as error:
        raise Invalid(f"{'The vault' if '://' not in keys else 'An address'}: {error}.", code="bad_store") from None


def with_keys(place: LogPlace, folder: Path) -> LogPlace:
    """Return a place in PostgreSQL with the folder of its wrapping keys."""
    if place.is_local:
        return place
    from eventstore.postgres.place import TablePlace

    assert isinstance(place, TablePlace)
    return TablePlace(place.log, place.vault, folder)


def _wrap(place: LogPlace) -> None:
    """Make a vault in PostgreSQL a wrapped one, with all keys that it has."""
    from eventstore.postgres.place import TablePlace

    assert isinstance(place, TablePlace)
    with closing(place.rotation()) as rotation:
        rotation.begin()
        wrap_all(rotation)


def _read(text: str) -> str:
    """Return an address, which may be in a variable; what is typed has no password."""
    name = text.removeprefix("env:")
    if name == text:
        if text.startswith(("postgresql://", "postgres://")):
            require_no_password(text, "NAME, and type env:NAME here")
        return text
    if not os.environ.get(name):
        raise Invalid(f"The environment variable {name} is not set. Set it to a database's address.", code="bad_store")
    return os.environ[name]


def _is_moving(folder: Path, target: LogPlace) -> bool:
    """Return whether a data folder uses the copy already, since a move was interrupted. Raise Conflict."""
    mark, moved = folder / ELSEWHERE, folder / MOVED
    if not mark.exists():
        if moved.exists():
            raise Conflict(f"{moved} has an earlier log. Delete it, or move it elsewhere.", code="store_differs")
        return False
    if (known := mark.read_text().strip()) != target.name:
        raise Conflict(f"{folder} uses {known}, not {target.name}: copy from there.", code="store_differs")
    return True


def _require_movable(source: LogPlace, into: WholeStore) -> bool:
    """Return whether a move from here was interrupted, and this repeats it. Raise Conflict where the log was moved to
    another folder, or has lost events.
    """
    if source.held() is None:
        return False
    _require_held(source)
    if into.log.end() == BEGINNING:
        raise Conflict(f"{source.name} is no longer in use: {MOVED_AWAY}. Copy from that folder.", code="store_differs")
    return True


def _require_held(source: LogPlace) -> None:
    """Raise Conflict where the log refuses appends for another reason than a move."""
    if (held := source.held()) != MOVED_AWAY:
        raise Conflict(
            f"{source.name} is not whole: {held}. Run docsmith audit accept-loss before, or restore the server that has"
            " the events.",
            code="log_lost",
        )


def _move(folder: Path, target: LogPlace) -> None:
    """Let a data folder use the copy: one file says so, and appears or goes at once."""
    if target.is_local:
        note_here(folder)
        return
    note_elsewhere(folder, target)
    _set_apart(folder)


def _set_apart(folder: Path) -> None:
    """Move the log that a data folder used before into a folder. Raise Conflict where it has an earlier one."""
    moved = folder / MOVED
    files = [file for name in _FILES for end in ("", "-wal", "-shm") if (file := folder / f"{name}{end}").exists()]
    if files and any((moved / file.name).exists() for file in files):
        raise Conflict(f"{moved} has an earlier log. Delete it, or move it elsewhere.", code="store_differs")
    moved.mkdir(mode=0o700, exist_ok=True)
    for file in files:
        file.rename(moved / file.name)


@store.command(
    "roles",
    does="print the SQL that makes the roles of a log, or of a vault",
    more="An administrator runs it once, in the database itself. The owner then makes the tables (docsmith store"
    " migrate); the service's role can neither change nor delete an event; the reader's is for auditors.",
    examples=["store roles log > log.sql", "store roles vault --service docsmith > vault.sql"],
    works_alone=True,
)
@click.argument("kind", type=Choice(["log", "vault"]), metavar="log|vault")
@click.option(
    "--owner", default="docsmith_owner", metavar="ROLE", help="makes the log's tables (default: docsmith_owner)"
)
@click.option("--service", default="docsmith", metavar="ROLE", help="is used by the service (default: docsmith)")
@click.option(
    "--reader", default="docsmith_reader", metavar="ROLE", help="only reads the log (default: docsmith_reader)"
)
@click.option("--schema", default="public", metavar="NAME", help="has the tables (default: public)")
async def roles(options: Options, output: Output) -> int:
    """Raises Invalid."""
    from eventstore.postgres.roles import roles_sql

    names = {name: getattr(options, name) for name in ("owner", "service", "reader", "schema")}
    try:
        sql = roles_sql(options.kind, **names)
    except ValueError as error:
        raise Invalid(f"{error}.", code="bad_role") from None
    output.result({"sql": sql}, sql.rstrip("\n"))
    return DONE


@store.command(
    "migrate",
    does="make or update the tables of a log as their owner",
    more="A service whose role owns its tables does this itself when it starts. One with fewer rights needs it before"
    " the first start and before each update; services of the old version may run meanwhile. ADDRESS signs in as the"
    " owner; env:NAME is an address in a variable, so that no password is typed.",
    examples=["store migrate env:OWNER_STORE", "store migrate env:OWNER_STORE --vault env:DOCSMITH_VAULT"],
    reads_settings=True,
)
@click.argument("address", metavar="ADDRESS")
@click.option("--vault", metavar="ADDRESS", help="the vault, whose tables are made or updated, too")
async def migrate(options: Options, output: Output, program: Program, _settings: Callable[[], Settings]) -> int:
    """Raises Invalid, and EventStoreError."""
    from eventstore.postgres.schema import Migrated, migrate_database

    def migrated() -> list[Migrated]:
        places = (("log", options.address), ("vault", options.vault))
        addresses = [(part, _address(text)) for part, text in places if text is not None]
        return [
            migrate_database(address, kind, package)
            for part, address in addresses
            for kind, package in program.schemas[part].items()
        ]

    found = await asyncio.to_thread(migrated)
    output.result(
        {"schemas": [{"database": one.name, "schema": one.kind, "from": one.before, "to": one.now} for one in found]},
        "\n".join(f"{one.name}: {one.kind}, {_steps(one.before, one.now)}" for one in found),
    )
    return DONE


def _address(text: str) -> "Address":
    """Return the address of a database as it was typed. Raise Invalid ``bad_store``."""
    from eventstore.postgres.connections import Address

    try:
        return Address(_read(text))
    except ValueError as error:
        raise Invalid(f"{error}.", code="bad_store") from None


def _steps(before: int, now: int) -> str:
    return f"at step {now} already" if before == now else f"from step {before} to {now}"
