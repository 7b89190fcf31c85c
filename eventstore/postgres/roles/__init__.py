"""The roles of a log and of a vault, as SQL for an administrator.

A log has an owner, who makes and changes its tables; a service role, which appends and can neither change nor delete an
event; and a reader, for those who audit it. A vault belongs to its service role: that must delete keys for good, and
``VACUUM``, which takes them out of the table's pages, is for a table's owner alone before PostgreSQL 17.
"""

import re
from importlib import resources
from typing import Literal

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def roles_sql(kind: Literal["log", "vault"], *, owner: str, service: str, reader: str, schema: str) -> str:
    """Return the statements, to be run in the database itself; they can be repeated. Raises ValueError: a bad name."""
    names = {"owner": owner, "service": service, "reader": reader, "schema": schema}
    for name in names.values():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name} is not a name of lower-case letters, digits and _, at most 63")
    if len({owner, service, reader}) < 3:
        raise ValueError("the three roles have the same name")
    text = resources.files(__name__).joinpath(f"{kind}.sql").read_text(encoding="utf-8")
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text
