"""Settings, read once, here only: ``docsmith.toml``, then the environment (``DOCSMITH_SECTION__NAME``) on top."""

import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from service.domain.access.callers import checked_networks
from service.domain.errors import Invalid
from service.runtime.settings.settings import ModelSection, Settings, listed
from service.runtime.settings.toml_files import problem_of, read_toml

PREFIX = "DOCSMITH_"
NOT_SETTINGS = frozenset(
    f"DOCSMITH_{name}"
    for name in ("DATA", "CONFIG", "STORE", "VAULT", "STORE_FILE", "VAULT_FILE", "VAULT_SECRET", "VAULT_SECRET_FILE")
)
"""Variables of the command line's own options, and of files with their values."""


_OF_SERVICE_LINK = re.compile(
    rf"{PREFIX[:-1]}(?:_[A-Z0-9]+)*_(?:SERVICE_(?:HOST|PORT(?:_[A-Z0-9]+)*)"
    r"|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_LINKED_PORT = re.compile(rf"{PREFIX[:-1]}(?:_[A-Z0-9]+)*_PORT=(?:tcp|udp|sctp)://.*")


def is_service_link(name: str, value: str) -> bool:
    """Return whether Kubernetes or Docker made a variable for a service that is called ``docsmith``, or ``docsmith-…``
    (kubernetes.io, "Service", "Environment variables"). No setting has the form of one: each has ``__``.
    """
    return bool(_OF_SERVICE_LINK.fullmatch(name) or _LINKED_PORT.fullmatch(f"{name}={value}"))


class BadSettings(Invalid):
    """A settings file or variable that cannot be used; the message names it."""

    code = "bad_settings"


class Value(Struct, frozen=True):
    """One setting in effect, and where it comes from."""

    name: str
    """As ``section.name``."""
    value: Any
    origin: str
    """``default``, ``FILE:LINE`` or a variable's name."""


class Reading(Struct, frozen=True):
    settings: Settings | None
    """None when there are problems."""
    problems: tuple[str, ...]
    """Each names the place: a line of the file, or a variable."""
    values: tuple[Value, ...]


def load_settings(file: Path | None, environment: Mapping[str, str]) -> Settings:
    """Settings from a TOML file (None: no file) with the environment's on top.

    Raises:
        BadSettings: unreadable, not TOML, an unknown name (the message suggests the nearest known one) or a value that
        does not fit.
    """
    reading = read_settings(file, environment)
    if reading.settings is None:
        more = len(reading.problems) - 1
        raise BadSettings(
            reading.problems[0] + (f" (and {more} more: docsmith config check)" if more else ""),
            problems=tuple(("settings", problem) for problem in reading.problems),
        )
    return reading.settings


def read_settings(file: Path | None, environment: Mapping[str, str]) -> Reading:
    """Read settings as ``load_settings`` does, with every problem, and where each value comes from."""
    text = ""
    table: dict[str, Any] = {}
    if file is not None:
        try:
            text, table = read_toml(file, "settings file")
        except Invalid as error:
            return Reading(None, (str(error),), ())
    problems: list[str] = []
    origins = {name: f"{file}:{line}" for name, line in _lines(text).items()}
    environment = {name: value for name, value in environment.items() if not is_service_link(name, value)}
    for name, value in environment.items():
        if name.startswith(PREFIX) and name not in NOT_SETTINGS:
            path = name.removeprefix(PREFIX).lower().split("__")
            if _put(table, path, _extra_value(value) if _is_extra(path) else value):
                origins[".".join(path)] = name
            else:
                problems.append(f"{name}: {path[0]} is not a section")
    problems += _mistaken(table, environment)
    given = _Given(origins, str(file) if file else "settings")
    _check(table, Settings, (), given)
    problems += given.problems
    if problems:
        return Reading(None, tuple(problems), ())
    settings = msgspec.convert(table, Settings, strict=False)
    values = [Value(name, value, given.origin(name) or "default") for name, value in _flat(settings, ())]
    return Reading(settings, (), tuple(values))


def values_of(settings: Settings) -> list[tuple[str, Any]]:
    """Return each setting by its name, as ``section.name``."""
    return list(_flat(settings, ()))


def _mistaken(table: dict[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """Problems of variables that name no section, which are taken out of the table: what was meant may be guessed."""
    sections = typing.get_type_hints(Settings)
    right = [f"{PREFIX}{section}__{field}".upper() for section in sections for field in _fields_of(sections[section])]
    for name in environment:
        section = name.removeprefix(PREFIX).lower()
        if not name.startswith(PREFIX) or name in NOT_SETTINGS or "__" in section or section in sections:
            continue
        table.pop(section, None)  # another may be spelt like it, but for capitals
        near = [one for one in right if one.replace("__", "_") == name or one.partition("__")[2].lower() == section]
        near = near or difflib.get_close_matches(name, [*right, *NOT_SETTINGS], n=1, cutoff=0.8)
        yield f"{name}: unknown name {section!r}" + (f"; did you mean {near[0]}?" if near else "")


def _fields_of(kind: Any) -> tuple[str, ...]:
    return kind.__struct_fields__ if isinstance(kind, type) and issubclass(kind, Struct) else ()


def _is_extra(path: Sequence[str]) -> bool:
    """Return whether it is a model's ``extra``, or within it."""
    return path[:1] == ["models"] and path[2:3] == ["extra"]


def _extra_value(text: str) -> Any:
    """Return the value of a variable for parameters of any type: JSON where it is JSON, else the text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _put(table: dict[str, Any], path: Sequence[str], value: str) -> bool:
    for part in path[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            return False
        table = inner
    table[path[-1]] = value
    return True


class _Given:
    """The values that were given: where, and what is wrong with them."""

    def __init__(self, origins: Mapping[str, str], elsewhere: str) -> None:
        self._origins, self._elsewhere = origins, elsewhere
        self.problems: list[str] = []

    def origin(self, name: str) -> str | None:
        return self._origins.get(name)

    def wrong(self, path: Sequence[str], problem: str) -> None:
        name, section_name = ".".join(path), ".".join(path[:-1])
        inside = (at for each, at in self._origins.items() if each.startswith(f"{name}."))
        place = self._origins.get(name) or next(inside, "") or self._origins.get(section_name)
        section = f" [{section_name}]" if section_name else ""
        self.problems.append(f"{place or self._elsewhere}{section}: {problem}")


def _check(table: Mapping[str, Any], kind: type[Struct], path: tuple[str, ...], given: _Given) -> None:
    """Note what does not fit the struct: unknown names, missing ones, values."""
    types_of = typing.get_type_hints(kind, include_extras=True)
    for name, value in table.items():
        here = (*path, name)
        if name not in types_of:
            near = difflib.get_close_matches(name, types_of, n=1)
            given.wrong(here, f"unknown name {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
            continue
        inner = types_of[name]
        if typing.get_origin(inner) is dict and isinstance(value, dict) and _fields_of(typing.get_args(inner)[1]):
            for key, entry in value.items():
                _check_section(entry, typing.get_args(inner)[1], (*here, key), given)
        elif isinstance(inner, type) and not isinstance(inner, types.GenericAlias) and issubclass(inner, Struct):
            _check_section(value, inner, here, given)
        elif problem := _problem_of(value, inner, _CHECKS.get(".".join((*path[:1], name)), _nothing)):
            given.wrong(here, f"{name}: {problem}")
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in table:
            given.wrong((*path, field.name), f"{field.name} is required")


def _problem_of(value: Any, kind: Any, check: Callable[[Any], str]) -> str:
    return problem_of(value, kind, strict=False) or check(msgspec.convert(value, kind, strict=False))


def _nothing(_value: Any) -> str:
    return ""


def _networks(value: str | tuple[str, ...]) -> str:
    try:
        checked_networks(one.strip() for one in (value.split(",") if isinstance(value, str) else value) if one.strip())
    except Invalid as error:
        return str(error).rstrip(".")
    return ""


def _folders(value: str | tuple[str, ...]) -> str:
    wrong = [one for one in listed(value) if not Path(one).is_absolute()]
    return f"Expected full paths of folders, such as /srv/docs; got {wrong[0]!r}" if wrong else ""


def _host(value: str) -> str:
    is_one = re.fullmatch(r"[A-Za-z0-9_.:%-]+", value)
    return "" if is_one else "Expected an address or a name of this machine, such as 127.0.0.1"


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_one = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        is_one = False
    return "" if is_one or not value else "Expected an address, such as https://docs.example.com"


def _public_url(value: str) -> str:
    if problem := _url(value):
        return problem
    parts = urlsplit(value)
    # Links to pages are made by writing a path after it.
    return "Expected an address without user, ? and #" if parts.username or parts.query or parts.fragment else ""


def _variable(value: str) -> str:
    # Not said is what is there: it may be the secret itself.
    is_one = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value)
    return "" if is_one or not value else "Expected the name of a variable that holds the secret, not the secret"


def _extra(value: Mapping[str, Any]) -> str:
    for name in value:
        if name in _OF_MODELS:
            return f"{name!r} has a setting of its own; write it beside extra"
        if name in _OWN_PARAMETERS:
            return f"{name!r} is set by Docsmith; leave it out"
    return "" if _is_json(value, MAX_EXTRA_DEPTH) else "Expected texts, numbers, true, false, lists and tables of them"


def _is_json(value: object, depth: int) -> bool:
    match value:
        case dict() | list():
            return depth > 0 and all(
                _is_json(each, depth - 1) for each in (value.values() if isinstance(value, dict) else value)
            )
        case float():
            return math.isfinite(value)
        case _:
            return value is None or isinstance(value, str | int)


MAX_EXTRA_DEPTH = 8
"""Levels of tables within a model's ``extra``."""
_OF_MODELS = frozenset(ModelSection.__struct_fields__) - {"extra"}
_OWN_PARAMETERS = frozenset(
    {
        "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "timeout", "max_retries",
        "num_retries", "tools", "tool_choice", "functions", "response_format", "n", "api_key", "base_url", "client",
        "drop_params", "mock_response", "fallbacks", "callbacks", "no-log",
    }
)  # fmt: skip
"""Parameters of litellm's call that the adapter gives, or that would get around it."""

_CHECKS: dict[str, Callable[[Any], str]] = {
    "server.host": _host,
    "server.public_url": _public_url,
    "server.trusted_proxies": _networks,
    "network.local_folders": _folders,
    "metrics.host": _host,
    "metrics.token_env": _variable,
    "sign_in.issuer": _public_url,
    "sign_in.client_secret_env": _variable,
    "models.api_base": _url,
    "models.api_key_env": _variable,
    "models.extra": _extra,
}
"""Checks of values beyond their types; each returns what is wrong with the value, or nothing."""


def _check_section(value: Any, kind: type[Struct], path: tuple[str, ...], given: _Given) -> None:
    if isinstance(value, dict):
        _check(value, kind, path, given)
    else:
        given.wrong(path, f"{path[-1]} is a section: write [{'.'.join(path)}] above its names")


def _flat(section: Struct, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if isinstance(value, Struct):
            yield from _flat(value, (*path, name))
        elif isinstance(value, dict):
            for key, entry in value.items():
                if isinstance(entry, Struct):
                    yield from _flat(entry, (*path, name, key))
                else:
                    yield ".".join((*path, name, key)), entry
        else:
            yield ".".join((*path, name)), value


_TABLE = re.compile(r"\s*+\[([^\[\]]+)\]\s*+(#.*)?$")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_KEY = re.compile(rf"\s*((?:{_PART.pattern})(?:\s*\.\s*(?:{_PART.pattern}))*)\s*=\s*(.*)")


def _lines(text: str) -> dict[str, int]:
    """The line of each name of a TOML file, which tomllib does not report; for messages, so that of a name inside of a
    text of several lines may be wrong.
    """
    found: dict[str, int] = {}
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = [part.strip("\"'") for part in _PART.findall(header[1])]
            found.setdefault(".".join(table), number)
        elif entry := _KEY.match(line):
            path = ".".join([*table, *(part.strip("\"'") for part in _PART.findall(entry[1]))])
            found.setdefault(path, number)
            if entry[2].startswith("{"):  # an inline table: its names are on this line
                for name in re.findall(r"[{,]\s*([A-Za-z0-9_-]+)\s*=", entry[2]):
                    found.setdefault(f"{path}.{name}", number)
    return found
