"""TOML files that operators write: read within a bound, with the problems of their values in TOML's words."""

import math
import tomllib
import typing
from pathlib import Path
from typing import Any

import msgspec

from service.domain.errors import Invalid

MAX_BYTES = 1 << 20
"""Limit for a file, in bytes."""


def read_toml(file: Path, kind: str) -> tuple[str, dict[str, Any]]:
    """Return the text and the table of a file of a kind, such as ``settings file``. Raise Invalid, with its name."""
    try:
        text = _text_of(file, kind)
        return text, tomllib.loads(text)
    except OSError as error:
        problem = str(error.strerror)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 text, from byte {error.start} on"
    except RecursionError:
        problem = "brackets within brackets, too deep"
    except ValueError as error:  # TOMLDecodeError is one
        problem = str(error)
    raise Invalid(f"{file}: {problem}")


def _text_of(file: Path, kind: str) -> str:
    """Raises OSError, and ValueError for what is too long."""
    with file.open("rb") as opened:  # it may be a pipe, or a device without an end
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES >> 20} MiB, so it is not a {kind}")
    return content.decode("utf-8-sig").replace("\r\n", "\n")  # some editors begin a file with a mark of its encoding


def problem_of(value: Any, kind: Any, *, strict: bool) -> str:
    """Return why a value does not fit a type; empty when it does. Not strict: numbers may be written as texts."""
    try:
        converted = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        names = ", ".join(map(repr, _names_in(kind)))
        return f"Expected one of {names}; got {value!r}" if names else _plainly(str(error))
    if isinstance(converted, float) and not math.isfinite(converted):
        return f"Expected a number with an end, got {converted}"
    return ""


def _names_in(kind: Any) -> tuple[Any, ...]:
    """Return the values that the type lists, if it does."""
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)
    return next((names for option in typing.get_args(kind) if (names := _names_in(option))), ())


def _plainly(problem: str) -> str:
    """Return msgspec's message without its marks, and with TOML's words in place of Python's names."""
    problem = problem.replace("`", "").replace(" | null", "")
    problem = problem.replace("Expected object,", "Expected a table, such as {top_k = 40},")
    return problem.replace("Expected bool,", "Expected true or false,")
