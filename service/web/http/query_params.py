"""Parameters of a request's query."""

import math
import re

from aiohttp import web

from service.domain.errors import Invalid

MAX_CURSOR = 10**18 - 1
NOT_A_CURSOR = "is the nextCursor of an earlier answer"
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,400})?([Ee][+-]?[0-9]{1,4})?", re.ASCII)
"""A number as JSON writes it, with zeros before it, too."""


def query_param(request: web.Request, name: str) -> str | None:
    """Return the value of a parameter, or None. Raise Invalid when it comes twice: it is unclear which one counts."""
    values = request.query.getall(name, [])
    if len(values) > 1:
        raise Invalid(f"The query's {name} comes once.", problems=((f"?{name}", "comes once"),))
    return values[0] if values else None


def read_number(text: str, *, least: float, most: float) -> float | None:
    """Return the number within these limits, in any way to write one; None for anything else."""
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if least <= number <= most else None


def read_whole(text: str, *, least: int, most: int) -> int | None:
    """Return the whole number within these limits, also one written as 20.0; None for anything else."""
    number = read_number(text, least=least, most=most)
    return int(number) if number is not None and number == int(number) else None


def whole_param(request: web.Request, name: str, default: int, *, least: int, most: int) -> int:
    """Return a whole number of the query. Raise Invalid."""
    text = query_param(request, name)
    if text is None:
        return default
    number = read_whole(text, least=least, most=most)
    if number is None:
        raise bad_query(name, f"is a whole number from {least} to {most}")
    return number


def id_cursor(request: web.Request) -> str | None:
    """Return the query's cursor where it is an id. Raise Invalid."""
    cursor = query_param(request, "cursor")
    if cursor is not None and (len(cursor) != 32 or not set(cursor) <= set("0123456789abcdef")):
        raise bad_query("cursor", NOT_A_CURSOR)
    return cursor


def text_cursor(request: web.Request, *, most: int = 100) -> str:
    """Return the query's cursor where it is a text of at most ``most`` characters; empty for none. Raise Invalid."""
    cursor = query_param(request, "cursor") or ""
    if len(cursor) > most:
        raise bad_query("cursor", NOT_A_CURSOR)
    return cursor


def number_cursor(request: web.Request, *, least: int = 0, most: int = MAX_CURSOR) -> int | None:
    """Return the query's cursor where it is a whole number. Raise Invalid."""
    cursor = query_param(request, "cursor")
    if cursor is None:
        return None
    number = read_whole(cursor, least=least, most=most) if cursor.isdigit() else None
    if number is None:
        raise bad_query("cursor", NOT_A_CURSOR)
    return number


def bad_query(name: str, rule: str) -> Invalid:
    return Invalid(f"The query's {name} {rule}.", problems=((f"?{name}", rule),))
