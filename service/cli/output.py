"""How commands answer: for people, or with ``--json`` one JSON document on standard output and nothing else."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

DONE, FAILED, WRONG_USAGE, VERIFICATION_FAILED, NEEDS_INPUT = 0, 1, 2, 3, 4
"""Exit codes."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters besides tab and newline, and those that turn the direction of text."""


class Unwritable(Exception):
    """Standard output accepts no more, for another reason than that its reader has left."""


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._has_result = False

    def result(self, value: Any, text: str) -> None:
        """The command's one result: as JSON, or its text."""
        self._has_result = True
        if self.as_json:
            _print(msgspec.json.encode(value).decode())
        elif text:
            _print(text)

    def failed(self, message: str, code: str) -> None:
        """The command has failed: one line on standard error, and as JSON for programs, unless they have a result."""
        failure(message)
        if self.as_json and not self._has_result:
            self.result({"code": code, "detail": message}, "")

    def line(self, text: str) -> None:
        """Something for people to read on the way."""
        if not self.as_json:
            _print(text)

    def word(self, text: str) -> None:
        """A piece of a line that goes on."""
        if not self.as_json:
            _print(text, end="")

    def progress(self, what: str, done: int, total: int) -> None:
        """A bar on a terminal, nothing elsewhere."""
        if not self.as_json and sys.stderr.isatty():
            filled = 30 * done // max(total, 1)
            end = "\n" if done >= total else ""
            print(
                f"\r{what} [{'#' * filled}{' ' * (30 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True
            )


@contextmanager
def writing() -> Iterator[None]:
    """Raise BrokenPipeError and Unwritable for errors of standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(f"standard output cannot be written: {error.strerror}") from error


def _print(text: str, end: str = "\n") -> None:
    with writing():
        print(text, end=end, flush=True)


def leave_standard_output() -> None:
    """Discard what standard output still holds, since Python would report an error about it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Raises BrokenPipeError and Unwritable."""
    if sys.stdout is not None:  # it was closed before we began
        _print("", end="")


def failure(message: str, *, next_step: str = "") -> None:
    """One line on standard error, with what to do next. Control characters, such as those of a name in a file of
    others, do not reach the terminal.
    """
    said = f"docsmith: {message}" + (f" {next_step}" if next_step else "")
    print(without_controls(said), file=sys.stderr, flush=True)


def without_controls(text: str) -> str:
    """Return others' text for a terminal, with a replacement for each control character."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def note(message: str) -> None:
    """One line on standard error for people, beside a result that programs may read from standard output."""
    print(message, file=sys.stderr, flush=True)


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


def named(names: Sequence[str]) -> str:
    """A few of many."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
