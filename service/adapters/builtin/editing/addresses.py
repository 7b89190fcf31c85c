"""The fields of front matter that say at which addresses a page is: a text in them is not a text of the page."""

import re
from collections.abc import Sequence

_FIELD = re.compile(
    r"(?P<indent>\s*(?:-\s+)?)[\"']?(?P<name>[\w-]*slug|[\w-]*url|id|permalink|alias(?:es)?|path|canonical[\w-]*|redirect[\w-]*)"
    r"[\"']?\s*[:=]",
    re.IGNORECASE,
)
_MARKS = {"---": ("---", "..."), "+++": ("+++",)}


def front_matter_end(lines: Sequence[str]) -> int | None:
    """Return the number of lines of the front matter, its marks included: 0 for none, None where it goes on."""
    ends = _MARKS.get(lines[0].rstrip()) if lines else None
    if ends is None:
        return 0
    return next((at + 1 for at, line in enumerate(lines) if at and line.rstrip() in ends), None)


def address_fields(lines: Sequence[str]) -> dict[int, str]:
    """Return the fields that hold addresses, by the line numbers, from 1, of the front matter that they take."""
    found: dict[int, str] = {}
    name, indent = "", 0
    for at in range(1, (front_matter_end(lines) or len(lines)) - 1):
        line = lines[at].rstrip()
        depth = len(line) - len(line.lstrip())
        if name and line and not (depth > indent or line.lstrip().startswith(("- ", "]"))):
            name = ""
        if not name and (field := _FIELD.match(line)):
            name, indent = field["name"], len(field["indent"])
        if name and line:
            found[at + 1] = name
    return found


def names_a_field(text: str) -> bool:
    """Return whether a text that people give has the name of such a field before a value."""
    return any(_FIELD.match(line) for line in text.splitlines())
