"""Where the log of a data folder is: in its own files or, for what is served at scale, in PostgreSQL.

The address has a password in it, so it is in no settings file and no argument of a command needs it: the environment
has it for the service and for every command beside it. A folder whose log is in PostgreSQL says so in a file, without
the password, so that a command without the variables begins no second log there.
"""

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from service.domain.errors import Conflict, Invalid
from service.runtime.data_folder import ELSEWHERE, LOG, LOG_COPY, WRAPPING

if TYPE_CHECKING:
    from eventstore import LogPlace

STORE, VAULT = "DOCSMITH_STORE", "DOCSMITH_VAULT"
"""Variables with the addresses of the log and of the vault in PostgreSQL."""
VAULT_SECRET = "DOCSMITH_VAULT_SECRET"  # noqa: S105 - a variable's name
"""Variable with what instances give each other the wrapping keys of a wrapped vault under."""

MOVED_AWAY = "the log was moved into a data folder"
"""Why nothing may be appended to a log in PostgreSQL whose events are in a data folder from now on (``LogPlace.hold``).
A command or an instance that still has the old address finds it there."""

_CONTENT = {STORE: "address", VAULT: "address", VAULT_SECRET: "secret"}


def read_address_files(env: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables of the addresses, and of the vault's secret, from files as the secrets of a container are.

    The files are named by ``DOCSMITH_STORE_FILE``, ``DOCSMITH_VAULT_FILE`` and ``DOCSMITH_VAULT_SECRET_FILE``. A
    variable that is set stays. Raise Invalid ``bad_store``.
    """
    for name in (STORE, VAULT, VAULT_SECRET):
        file = env.get(f"{name}_FILE")
        if not file or env.get(name):
            continue
        try:
            env[name] = Path(file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise Invalid(f"{name}_FILE names {file}, which cannot be read: {reason}.", code="bad_store") from None
        if not env[name]:
            raise Invalid(
                f"{name}_FILE names {file}, which is empty. Put the {_CONTENT[name]} in it.", code="bad_store"
            )


def log_place(data: Path, env: Mapping[str, str] = os.environ) -> "LogPlace":
    """Return where the log of a data folder is.

    Raises:
        Invalid ``bad_store``: an address is none, or the vault has none.
        Conflict ``store_needed``, ``store_differs``: the log of this folder is elsewhere.
    """
    store = env.get(STORE, "")
    mark = data / ELSEWHERE
    if not store:
        if mark.exists():
            raise Conflict(
                f"The log of {data} is in PostgreSQL ({mark.read_text().strip()}): set {STORE} and {VAULT} to its"
                " address and that of its vault.",
                code="store_needed",
            )
        from eventstore import FilePlace

        return FilePlace(data / LOG, data / "keys.db")
    from eventstore.postgres.place import TablePlace

    vault = env.get(VAULT, "")
    if not vault:
        raise Invalid(
            f"{STORE} needs {VAULT}, the address of a database for the keys of what is encrypted: best on another"
            " server, whose archives are not kept.",
            code="bad_store",
        )
    try:
        place = TablePlace(store, vault, data / WRAPPING).checked()
    except ValueError as error:
        raise Invalid(f"{STORE} or {VAULT}: {error}.", code="bad_store") from None
    if (data / LOG).exists() and not mark.exists():  # with it, what a move has left: the log is in PostgreSQL
        raise Conflict(
            f"{data} has a log of its own, {LOG}. Move it with docsmith store copy {data} env:{STORE} --move, or name"
            " a new folder with --data DIR.",
            code="store_differs",
        )
    if mark.exists() and (known := mark.read_text().strip()) != place.name:
        raise Conflict(
            f"The log of {data} is in {known}, and {STORE} names {place.name}: name a new folder with --data DIR, since"
            f" views and indexes are made of one log. If it is the same log at a new address, delete {mark}.",
            code="store_differs",
        )
    return place


def require_no_password(address: str, variable: str) -> None:
    """Raise Invalid ``bad_store`` for an address on a command line that has a password: all users may see it there."""
    from eventstore.postgres.connections import Address

    try:
        has_password = Address(address).has_password
    except ValueError as error:
        raise Invalid(f"{error}.", code="bad_store") from None
    if has_password:
        raise Invalid(
            "The address has a password, which every user of this machine sees in the list of processes. Leave it out"
            f" and put the whole address into the variable {variable}, or the password into ~/.pgpass.",
            code="bad_store",
        )


def note_elsewhere(data: Path, place: "LogPlace") -> None:
    """Write into a data folder that its log is elsewhere, if it is; durably, and whole or not at all."""
    mark, new = data / ELSEWHERE, data / f"{ELSEWHERE}.new"
    if place.is_local or mark.exists():
        return
    with new.open("w", encoding="utf-8") as file:
        file.write(f"{place.name}\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(mark)
    _flush(data)


def note_here(data: Path) -> None:
    """Take back that the log is elsewhere; durably."""
    (data / ELSEWHERE).unlink(missing_ok=True)
    _flush(data)
    forget_copy(data)


def forget_copy(data: Path) -> None:
    """Remove the copy of a log that is elsewhere: it is of another one, or of no use any more. No service may run."""
    for suffix in ("", "-wal", "-shm"):
        (data / f"{LOG_COPY}{suffix}").unlink(missing_ok=True)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
