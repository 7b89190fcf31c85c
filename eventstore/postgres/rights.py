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


def is_wrapped(vault: Connections) -> bool:
    """Return whether a vault's keys are wrapped, and all of them."""
    if not vault.fetch("SELECT to_regclass('wrapping_keys') IS NOT NULL")[0][0]:
        return False
    sql = (
        "SELECT EXISTS (SELECT FROM wrapping_keys WHERE state = 'current')"
        " AND NOT EXISTS (SELECT FROM keys WHERE key IS NOT NULL AND wrapped_under IS NULL)"
    )
    return bool(vault.fetch(sql)[0][0])
