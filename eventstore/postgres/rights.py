"""Looks whether a log and a vault are kept as they should be: by the rights of roles, and apart from each other."""

from eventstore.errors import EventStoreError
from eventstore.place import Concern
from eventstore.postgres.connections import Connections

_RIGHTS = """
    SELECT current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
        pg_has_role(relowner, 'USAGE'), has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')
    FROM pg_class WHERE oid = 'events'::regclass
"""
_CLUSTER = "SELECT system_identifier FROM pg_control_system()"
"""The identifier of a server's files, which its standbys and archives share
(https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-CONTROL-SYSTEM)."""

_ARCHIVES = """
    SELECT (SELECT setting FROM pg_settings WHERE name = 'archive_mode'),
        (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication)
"""


def concerns_of_log(log: Connections) -> list[Concern]:
    """Return what the role that uses a log may do to its events."""
    ((role, is_superuser, owns, may_change),) = log.fetch(_RIGHTS)
    if is_superuser or owns:
        what = "is a superuser" if is_superuser else "owns the log's tables"
        return [Concern("rights", f"The role {role} {what}, so that a trigger alone keeps events from being changed.")]
    if may_change:
        return [Concern("rights", f"The role {role} has the right to change events, which it does not need.")]
    return []


def share_cluster(log: Connections, vault: Connections) -> bool | None:
    """Return whether both are in one PostgreSQL cluster; None where a server does not say."""
    try:
        return log.fetch(_CLUSTER) == vault.fetch(_CLUSTER)
    except EventStoreError:  # some managed servers keep it to themselves
        return None


def concerns_of_archives(vault: Connections) -> list[Concern]:
    """Return what keeps the keys of a vault that is not wrapped, beside its tables: archives of its server's log, and
    servers that follow it.
    """
    found = []
    try:
        ((archives, slots, followers),) = vault.fetch(_ARCHIVES)
    except EventStoreError:  # some managed servers keep it to themselves
        archives = slots = followers = None
    if archives in {"on", "always"}:
        found.append(f"archives its write-ahead log (archive_mode = {archives})")
    if slots:
        found.append(f"has {slots} replication {'slot' if slots == 1 else 'slots'}")
    if followers:
        found.append(f"sends its write-ahead log to {followers} {'other' if followers == 1 else 'others'}")
    if found:
        return [Concern("archives", f"The vault's server {' and '.join(found)}, which keeps erased keys.")]
    if archives is None:
        says = "Whether the vault's server keeps archives, and with them erased keys, is not known: it does not say."
        return [Concern("archives_unknown", says)]
    return []


def is_wrapped(vault: Connections) -> bool:
    """Return whether a vault's keys are wrapped, and all of them."""
    if not vault.fetch("SELECT to_regclass('wrapping_keys') IS NOT NULL")[0][0]:
        return False
    sql = (
        "SELECT EXISTS (SELECT FROM wrapping_keys WHERE state = 'current')"
        " AND NOT EXISTS (SELECT FROM keys WHERE key IS NOT NULL AND wrapped_under IS NULL)"
    )
    return bool(vault.fetch(sql)[0][0])
