"""The lines that open and close directives: MyST's, in fences of backticks, tildes or colons."""

import re

from msgspec import Struct

_OPEN = re.compile(
    r"(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,}|:{3,})[ \t]*(?:\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)|(?P<info>.*))"
)


class Opening(Struct, frozen=True):
    indent: str
    mark: str
    name: str
    """The directive's; empty for a block of code, and for colons without a name."""
    argument: str
    info: str
    """Behind the mark where there is no directive."""

    @property
    def is_code(self) -> bool:
        return not self.name and self.mark[0] != ":"


def opening(line: str) -> Opening | None:
    """Return what a line opens; None where it opens nothing."""
    match = _OPEN.fullmatch(line) if line.lstrip()[:3] in ("```", "~~~", ":::") else None
    if match is None or (match["mark"][0] == "`" and "`" in (match["info"] or "")):
        return None
    name, argument, info = ((match[group] or "").strip() for group in ("name", "argument", "info"))
    return Opening(match["indent"], match["mark"], name, argument, info)


def is_closing(line: str, mark: str) -> bool:
    """Return whether a line ends what was opened with this mark."""
    bare = line.strip()
    return len(bare) >= len(mark) and bare == mark[0] * len(bare)
