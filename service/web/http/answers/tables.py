"""Rows for programs that read tables: CSV and JSON lines.

A cell of a spreadsheet that begins with one of a few characters is a formula, which may fetch addresses and run
programs on the computer that opens the file. Strangers typed what is in these rows, so such a cell is written with an
apostrophe before it (OWASP, "CSV Injection"). Every cell is quoted: a line end or a comma inside does not begin a new
one.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

CSV = "text/csv"
JSON_LINES = "application/jsonl"

Cells = Mapping[str, Callable[[Any], object]]
"""The columns in order: name, and what of a view is in it."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")  # noqa: RUF001


def as_csv(views: Iterable[Any], cells: Cells, *, head: bool = False) -> bytes:
    """RFC 4180, in UTF-8; ``head``: with the line of the columns' names."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if head:
        writer.writerow(cells)
    for view in views:
        writer.writerow([_cell(value_of(view)) for value_of in cells.values()])
    return text.getvalue().encode()


def _cell(value: object) -> str:
    text = "" if value is None else str(value).replace("\0", "")
    return f"'{text}" if text.lstrip(" \ufeff").startswith(_FORMULA) else text


def as_json_lines(views: Iterable[Any]) -> bytes:
    return b"".join(msgspec.json.encode(view) + b"\n" for view in views)
