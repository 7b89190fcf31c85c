"""Providers' JSON as it comes: its bytes, and the fields in it, whatever else than documented stands there.

| Field | Documented | Also seen |
|---|---|---|
| a text | string, null | a number (a token of one digit), parts, an object with ``text``, a boolean |
| arguments of a call | string of JSON | the object itself, null, missing, a string of a string |
| an id, a name, an end reason | string | a number, null, missing, an object |
| an index | number | a string of digits, null, missing, a fraction |
| a count of tokens | number | null, a string of digits, a fraction, negative, an object |
| a list | list | one object without it, null, an object with numbers as names |
| an object | object | null, a list of one, a string |
| a document | one object on a line | over several lines, in a list, with half characters, ``NaN``, raw line feeds |

Each function here takes anything, and returns what the reader can go on with.
"""

import json
import math
from collections.abc import Collection, Iterator
from typing import Any

import msgspec


class _Fraction(str):
    """A number with a point or an exponent, as it was written: ``1.50`` is a text of four characters."""

    __slots__ = ()


_decoder = msgspec.json.Decoder(float_hook=_Fraction)
MAX_DIGITS = 15
"""Digits of a count or an index that are read."""
MAX_DEPTH = 50
"""Nesting of a content whose texts are read."""
_NESTED_TOO_DEEP = "{"
"""In place of such arguments: no JSON, so the model learns that they cannot be read."""


class UnreadableError(ValueError):
    """Bytes that are no JSON."""


def read_document(payload: bytes) -> Any:
    """Return the value of a JSON document. Raise UnreadableError when it is none, or nested too deep."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, RecursionError, ValueError):
        pass
    try:  # halves of characters, control characters in texts, NaN, bytes that are no UTF-8
        return json.loads(payload.decode("utf-8", "replace"), strict=False, parse_float=_Fraction)
    except (RecursionError, ValueError):
        raise UnreadableError from None


def text_of(value: object) -> str:
    """Return the text of a content."""
    return "".join(texts_of(value))


def texts_of(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a content, part by part. Other parts hold the model's reasoning, or are not known yet, or are
    nested too deep.
    """
    match value:
        case _ if depth > MAX_DEPTH:
            pass
        case str():
            yield whole_characters(value)
        case bool() | None:
            pass
        case int() | float():
            yield str(value)
        case list():
            for part in value:
                yield from texts_of(part, depth + 1)
        case {"type": None | "text" | "output_text", **rest}:
            yield from texts_of(rest.get("text"), depth + 1)
        case {"text": text, **rest} if "type" not in rest:
            yield from texts_of(text, depth + 1)
        case _:
            pass


def json_of(value: object) -> str:
    """Return the arguments of a call, or a piece of them, as JSON text."""
    match value:
        case str():
            return whole_characters(value)
        case None:
            return ""
        case _:
            if not is_within(value, MAX_DEPTH):
                return _NESTED_TOO_DEEP
            return whole_characters(json.dumps(_with_numbers(value), ensure_ascii=False))


def _with_numbers(value: Any) -> Any:
    """Return the value with fractions as numbers."""
    match value:
        case _Fraction():
            return float(value)
        case list():
            return [_with_numbers(each) for each in value]
        case dict():
            return {name: _with_numbers(each) for name, each in value.items()}
        case _:
            return value


def is_within(value: object, depth: int) -> bool:
    """Return whether a JSON value is nested no deeper than ``depth`` levels."""
    level = [value]
    for _ in range(depth):
        level = [part for each in level if (parts := _parts(each)) for part in parts]
        if not level:
            return True
    return False


def _parts(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def name_of(value: object) -> str:
    """Return an id, a name or an end reason; empty for none."""
    match value:
        case str():
            return whole_characters(value)
        case bool():
            return ""
        case int():
            return str(value)
        case _:
            return ""


def count_of(value: object) -> int | None:
    """Return a number of tokens; None when it is none."""
    number = index_of(value)
    return None if number is None else max(0, number)


def index_of(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value if abs(value) < 10**MAX_DIGITS else None
        case float():
            return int(value) if math.isfinite(value) and abs(value) < 10**MAX_DIGITS else None
        case str() if 0 < len(value) <= 2 * MAX_DIGITS:
            try:
                return index_of(float(value)) if isinstance(value, _Fraction) else index_of(int(value))
            except ValueError:
                return None
        case _:
            return None


def list_of(value: object) -> list[Any]:
    """Return the list that stands there, or that one object is meant as."""
    match value:
        case list():
            return value
        case dict() if value and all(key.isdigit() for key in value):
            return list(value.values())
        case dict() if value:
            return [value]
        case _:
            return []


def object_of(value: object) -> dict[str, Any]:
    """Return the object that stands there, or that a list of one has; else an empty one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else {}


def whole_characters(text: str) -> str:
    """Return the text with halves of characters joined where they stand together, and replaced where they are alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str(text)
