"""The changes that a file of entries makes."""

from typing import Literal

from msgspec import Struct

EntryKind = Literal["organization", "person", "project", "site", "key", "webhook"]
Action = Literal["create", "change", "remove", "none"]


class FieldChangeView(Struct, frozen=True, rename="camel"):
    """A value that changes."""

    name: str
    before: str
    after: str


class ChangeView(Struct, frozen=True, rename="camel", kw_only=True):
    """An entry of the file, and the change that it takes."""

    kind: EntryKind
    name: str
    """As people know it: a name, a domain, an email or a URL."""
    action: Action
    """``none``: it is as the file has it."""
    id: str | None = None
    """None where nothing was created yet."""
    fields: tuple[FieldChangeView, ...] = ()
    file: str | None = None
    """The file that the new secret is written to."""
    notes: tuple[str, ...] = ()
    """Sentences for the operator."""


class AppliedView(Struct, frozen=True, rename="camel"):
    """All entries of a file, in the order in which they are applied."""

    dry_run: bool
    changes: tuple[ChangeView, ...]
    """Those that change something, or have a note."""
    unchanged: int
