"""All settings, read once, here only: ``docsmith.toml``, then the environment (``DOCSMITH_SECTION__NAME``) on top."""

import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from service.domain.errors import Invalid

PREFIX = "DOCSMITH_"
NOT_SETTINGS = frozenset({"DOCSMITH_DATA", "DOCSMITH_CONFIG"})
"""Variables of the command line's own options."""


class BadSettings(Invalid):
    """A settings file or variable that cannot be used; the message names it."""

    code = "bad_settings"


class ServerSection(Struct, frozen=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    """0 for a free one."""
    public_url: str = ""
    """How people reach the service, for the links that it gives out; what it listens on when empty."""
    trusted_proxies: str | tuple[str, ...] = ()
    """Addresses and networks of the reverse proxies in front, whose word for the caller's address is taken; as one
    text, parted by commas.
    """
    v1_sunset: date | None = None
    """From when on version 1 of the API may be gone, for the ``Sunset`` of its answers."""
    proxy_header: Literal["X-Forwarded-For", "Forwarded"] = "X-Forwarded-For"
    """The one that the proxies set. Only this is read: the other may be the caller's own."""
    max_connections: Annotated[int, Meta(ge=1)] = 4096
    max_connections_per_address: Annotated[int, Meta(ge=0)] = 100
    """From one address that is no trusted proxy and not this machine; 0 for any number."""
    head_seconds: Annotated[float, Meta(gt=0)] = 15
    """For a request's line and headers to arrive."""
    body_seconds: Annotated[float, Meta(gt=0)] = 60
    """For a request's JSON body to arrive."""
    idle_seconds: Annotated[float, Meta(gt=0)] = 75
    """How long a connection is kept that asks nothing; longer than a reverse proxy in front keeps it."""
    write_seconds: Annotated[float, Meta(gt=0)] = 60
    """For a client that reads nothing of its answer, or of its stream, before it is cut off."""


class AgentSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    """An alias, or ``builtin``; empty chooses by the keys in the environment."""
    concurrent_jobs: Annotated[int, Meta(ge=1)] = 8
    """In all projects; further ones wait in a queue."""
    concurrent_jobs_per_project: Annotated[int, Meta(ge=1)] = 4
    max_steps: int = 60
    max_tokens: int = 2_000_000
    max_cost_usd: float = 10.0
    max_minutes: float = 30.0
    author: str = "Docsmith <docsmith@users.noreply.localhost>"
    """Of the commits."""


class AssistantSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    suggestions: bool = True
    max_searches: int = 3
    """Further searches and page reads that a model may make for one answer."""
    concurrent_replies: int = 200


class ThreadsSection(Struct, frozen=True, forbid_unknown_fields=True):
    require_key: bool = False
    grace_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """How long a reply goes on after its reader's connection has broken, for a client that can resume it (it has sent a
    chat id). 0: not at all. A client's stop is a broken connection like any other, so with more than 0 the model writes
    on for so long after it.
    """


class AuditSection(Struct, frozen=True, forbid_unknown_fields=True):
    checkpoint_minutes: float = 60
    """How often the log's state is signed while it grows; 0 for never."""


class NetworkSection(Struct, frozen=True, forbid_unknown_fields=True):
    allow_private: bool = False
    """Addresses that people name (webhooks) may be on this machine and in private networks, and may be plain http."""


class IndexSection(Struct, frozen=True, forbid_unknown_fields=True):
    poll_minutes: Annotated[float, Meta(ge=0)] = 0
    """How often repositories on other code hosts, and live websites, are looked at for changes; 0 for never. Those that
    send webhooks need no looking.
    """


class WebhooksSection(Struct, frozen=True, forbid_unknown_fields=True):
    concurrent_deliveries: Annotated[int, Meta(ge=1, le=1000)] = 100
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 15.0
    """For one attempt, from looking up the name to the answer."""


class LimitsSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Accepted requests in a sliding window; 0 for any number."""

    assistant_key_month: Annotated[int, Meta(ge=0)] = 10_000
    """Of 30 days."""
    organization_hour: Annotated[int, Meta(ge=0)] = 10_000
    address_day: Annotated[int, Meta(ge=0)] = 10_000
    project_hour: Annotated[int, Meta(ge=0)] = 100
    """Of the agent: jobs created and followed up, together."""


class ModelSection(Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    """Any name that litellm knows, such as ``anthropic/claude-sonnet-5-5``."""
    api_base: str = ""
    api_key_env: str = ""
    """The environment variable that holds the key."""
    input_usd_per_million_tokens: float | None = None
    output_usd_per_million_tokens: float | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    """Of a prompt and its reply together, for models that litellm does not know."""
    fallback: str = ""
    """The alias of the model to ask when this one is down, overloaded or refuses its key."""
    first_token_timeout_seconds: Annotated[float, Meta(gt=0)] = 120.0
    """Until the first bytes of an answer; a large model on a small machine takes long to read a prompt."""
    idle_timeout_seconds: Annotated[float, Meta(gt=0)] = 60.0
    """Between one piece of an answer and the next."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    server: ServerSection = ServerSection()
    agent: AgentSection = AgentSection()
    assistant: AssistantSection = AssistantSection()
    threads: ThreadsSection = ThreadsSection()
    audit: AuditSection = AuditSection()
    limits: LimitsSection = LimitsSection()
    network: NetworkSection = NetworkSection()
    webhooks: WebhooksSection = WebhooksSection()
    index: IndexSection = IndexSection()
    models: dict[str, ModelSection] = {}


def load_settings(file: Path | None, environment: Mapping[str, str]) -> Settings:
    """Settings from a TOML file (None: no file) with the environment's on top.

    Raises:
        BadSettings: unreadable, not TOML, an unknown name (the nearest right one is told) or a value that does not fit.
    """
    table: dict[str, Any] = {}
    if file is not None:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise BadSettings(f"{file}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadSettings(f"{file}: {error}") from error
    for name, value in environment.items():
        if name.startswith(PREFIX) and name not in NOT_SETTINGS:
            _set_from_environment(table, name, value)
    _refuse_unknown(table, Settings, str(file) if file else "settings")
    try:
        return msgspec.convert(table, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"{file or 'settings'}: {error}") from error


def _set_from_environment(table: dict[str, Any], name: str, value: str) -> None:
    path = name.removeprefix(PREFIX).lower().split("__")
    for part in path[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise BadSettings(f"{name}: {part} is not a section")
        table = inner
    table[path[-1]] = value


def _refuse_unknown(table: Mapping[str, Any], kind: type[Struct], where: str) -> None:
    types_of = typing.get_type_hints(kind)
    for name, value in table.items():
        if name not in types_of:
            near = difflib.get_close_matches(name, types_of, n=1)
            raise BadSettings(f"{where}: unknown name {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        inner = types_of[name]
        if isinstance(inner, type) and not isinstance(inner, types.GenericAlias) and issubclass(inner, Struct):
            if isinstance(value, dict):
                _refuse_unknown(value, inner, f"{where} [{name}]")
        elif typing.get_origin(inner) is dict and isinstance(value, dict):
            for key, entry in value.items():
                if isinstance(entry, dict):
                    _refuse_unknown(entry, typing.get_args(inner)[1], f"{where} [{name}.{key}]")
