"""The entries of a file that is applied, as operators write them. None: the file leaves the value as it is."""

import difflib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from service.domain.access.keys import KeyKind, KeyScope
from service.domain.access.members import Role
from service.domain.errors import Invalid
from service.domain.hooks.webhooks import JobEventName
from service.domain.projects.settings import CodeHostKind
from service.domain.widget import WidgetForm
from service.runtime.settings.toml_files import problem_of, read_toml

MAX_ENTRIES = 10_000


class OrganizationEntry(Struct, frozen=True, kw_only=True):
    name: str


class PersonEntry(Struct, frozen=True, kw_only=True):
    email: str
    id: str = ""
    """The account that is meant, where several have the email."""
    name: str | None = None
    organization: str | None = None
    role: Role | None = None
    operator: bool | None = None
    remove: bool = False
    """Take the role in the organization."""


class ContextEntry(Struct, frozen=True, kw_only=True):
    name: str
    repository: str | None = None
    ref: str | None = None
    token_env: str | None = None
    public: bool | None = None
    internal: bool | None = None
    remove: bool = False


class ProjectEntry(Struct, frozen=True, kw_only=True):
    domain: str
    name: str | None = None
    organization: str | None = None
    repository: str | None = None
    website: str | None = None
    code_host: CodeHostKind | None = None
    ref: str | None = None
    docs_folder: str | None = None
    api_url: str | None = None
    git_token_env: str | None = None
    github_app_id: str | None = None
    github_app_key_env: str | None = None
    labels: tuple[str, ...] | None = None
    reviewers: tuple[str, ...] | None = None
    site_url: str | None = None
    max_cost_usd_day: float | None = None
    context: tuple[ContextEntry, ...] = ()


class SiteEntry(Struct, frozen=True, kw_only=True):
    domain: str
    public: bool | None = None
    origins: tuple[str, ...] | None = None
    title: str | None = None
    """This, and those after it, are the widget's."""
    greeting: str | None = None
    suggestions: tuple[str, ...] | None = None
    hand_off: str | None = None
    form: WidgetForm | None = None
    accent: str | None = None


class KeyEntry(Struct, frozen=True, kw_only=True):
    name: str
    kind: KeyKind | None = None
    organization: str | None = None
    domains: tuple[str, ...] | None = None
    scope: KeyScope | None = None
    server: bool | None = None
    addresses: tuple[str, ...] | None = None
    origins: tuple[str, ...] | None = None
    reader_tokens: bool | None = None
    expires_days: int | None = None
    """For a new key."""
    token_file: str | None = None
    """The file that a new key's token is written to."""
    remove: bool = False


class WebhookEntry(Struct, frozen=True, kw_only=True):
    url: str | None = None
    url_env: str | None = None
    """The environment variable that holds the URL: many a URL is a secret."""
    organization: str | None = None
    project: str | None = None
    """The domain of the project whose jobs it reports; without one, all of the organization."""
    events: tuple[JobEventName, ...] | None = None
    secret_env: str | None = None
    secret_file: str | None = None
    """The file that a new webhook's secret is written to."""
    remove: bool = False


class Declared(Struct, frozen=True, kw_only=True):
    """Everything that a file declares, in the order in which it is applied."""

    organization: tuple[OrganizationEntry, ...] = ()
    person: tuple[PersonEntry, ...] = ()
    project: tuple[ProjectEntry, ...] = ()
    site: tuple[SiteEntry, ...] = ()
    key: tuple[KeyEntry, ...] = ()
    webhook: tuple[WebhookEntry, ...] = ()


def read_declared(file: Path) -> Declared:
    """Return the entries of a file. Raise Invalid, with every problem."""
    _, table = read_toml(file, "file of entries")
    problems = list(_problems_in(table))
    if problems:
        raise Invalid(f"{file}: {' '.join(problems[:5])}", problems=tuple(("file", one) for one in problems))
    declared = msgspec.convert(table, Declared)
    if sum(len(getattr(declared, name)) for name in Declared.__struct_fields__) > MAX_ENTRIES:
        raise Invalid(f"{file}: a file has at most {MAX_ENTRIES} entries. Divide it.")
    return declared


def _problems_in(table: dict[str, Any]) -> Iterator[str]:
    kinds = {field.name: _item(field.type) for field in msgspec.structs.fields(Declared)}
    for name, entries in table.items():
        if name not in kinds:
            yield f"Unknown table {name!r}{_nearest(name, kinds)}"
        elif not _are_tables(entries):
            yield f"{name} is a list of entries: write [[{name}]] above each."
        else:
            for number, entry in enumerate(entries, 1):
                yield from _problems_of(entry, kinds[name], f"[[{name}]] {number}")


def _problems_of(entry: dict[str, Any], kind: type[Struct], place: str) -> Iterator[str]:
    types_of = typing.get_type_hints(kind)
    named = entry.get(kind.__struct_fields__[0])
    here = f"{place} ({named})" if isinstance(named, str) else place
    for name, value in entry.items():
        if name not in types_of:
            yield f"{here}: unknown name {name!r}{_nearest(name, types_of)}"
        elif name == "context":
            if not _are_tables(value):
                yield f"{here}: context is a list of entries: write [[project.context]] above each."
                continue
            for number, inner in enumerate(value, 1):
                yield from _problems_of(inner, ContextEntry, f"{here} context {number}")
        elif problem := problem_of(value, types_of[name], strict=True):
            yield f"{here}: {name}: {problem}."
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in entry:
            yield f"{here}: {field.name} is required."


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _item(kind: Any) -> type[Struct]:
    found: type[Struct] = typing.get_args(kind)[0]
    return found


def _nearest(name: str, known: typing.Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}."
