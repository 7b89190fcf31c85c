"""How commands answer: for people, or with ``--json`` one JSON document on standard output and nothing else."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

DONE, FAILED, WRONG_USAGE, VERIFICATION_FAILED = 0, 1, 2, 3
"""Exit codes."""


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, value: Any, text: str) -> None:
        """The command's one result: as JSON, or its text."""
        if self.as_json:
            print(msgspec.json.encode(value).decode(), flush=True)
        elif text:
            print(text, flush=True)

    def line(self, text: str) -> None:
        """Something for people to read on the way."""
        if not self.as_json:
            print(text, flush=True)

    def word(self, text: str) -> None:
        """A piece of a line that goes on."""
        if not self.as_json:
            print(text, end="", flush=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """A bar on a terminal, nothing elsewhere."""
        if not self.as_json and sys.stderr.isatty():
            filled = 30 * done // max(total, 1)
            end = "\n" if done >= total else ""
            print(
                f"\r{what} [{'#' * filled}{' ' * (30 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True
            )


def failure(message: str, *, next_step: str = "") -> None:
    """One line on standard error, with what to do next."""
    print(f"docsmith: {message}" + (f" {next_step}" if next_step else ""), file=sys.stderr, flush=True)


def warning(message: str) -> None:
    """One line on standard error about something that does not stop the command."""
    print(f"docsmith: warning: {message}", file=sys.stderr, flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )
