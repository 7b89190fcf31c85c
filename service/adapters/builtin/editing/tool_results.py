"""The parts of tool results that the builtin editor reads: values, and never the words around them."""

import unicodedata

from service.domain.tool_values import DeadLink, DeadLinks, Declined, Found, Lines, Listed, Replaced, UnknownLinks
from service.ports.model import ToolMessage

_READING = frozenset({"list", "search", "read", "replace", "check_links"})
"""The tools whose values are read."""


def is_known(result: ToolMessage) -> bool:
    """Return whether it has what is read here; results from before there were values have not."""
    return result.is_error or result.value is not None or result.name not in _READING


def paths_in(result: ToolMessage) -> list[str]:
    """Return what is listed: files, and folders with a slash and perhaps a number behind."""
    return result.lines(result.value.paths) if isinstance(result.value, Listed) else []


def number_listed(result: ToolMessage) -> int:
    return result.value.count if isinstance(result.value, Listed) else 0


def found_in(result: ToolMessage) -> tuple[tuple[str, ...], int]:
    """Return the files that are named, and the number of all that were found."""
    return (result.value.paths, result.value.count) if isinstance(result.value, Found) else ((), 0)


def dead_links(result: ToolMessage) -> tuple[tuple[DeadLink, ...], int]:
    """Return the links that are named, and the number of all that are broken."""
    return (result.value.links, result.value.count) if isinstance(result.value, DeadLinks) else ((), 0)


def unknown_links(result: ToolMessage) -> tuple[UnknownLinks, ...]:
    """Return the links of which it is not known where they lead."""
    return result.value.unknown if isinstance(result.value, DeadLinks) else ()


def lines_in(result: ToolMessage) -> tuple[list[str], bool]:
    """Return the lines of a part of a file, and whether more follow."""
    match result.value:
        case Lines(text=text, next_line=next_line, numbered=numbered):
            lines = result.lines(text)
            return [line.partition("\t")[2] for line in lines] if numbered else lines, next_line is not None
        case _:
            return [], False


def title_read(result: ToolMessage) -> str | None:
    """Return the title of a changed page that was read; None where it is not known."""
    return result.value.title if isinstance(result.value, Lines) else None


def times_replaced(result: ToolMessage) -> int:
    return result.value.times if isinstance(result.value, Replaced) else 0


def docs_folder(result: ToolMessage) -> str:
    """Return the folder in which the path would have to be; empty when that is not what is wrong."""
    return result.value.docs_folder if isinstance(result.value, Declined) else ""


def path_read(result: ToolMessage) -> str:
    """Return the path of the file that was read; empty where none was."""
    return unicodedata.normalize("NFC", result.value.path) if isinstance(result.value, Lines) else ""


def reason_of(result: ToolMessage) -> str:
    """Return why a tool did nothing, without what would do."""
    start, end = result.value.reason if isinstance(result.value, Declined) else (0, len(result.text))
    return result.text[start:end]


def shown(link: DeadLink) -> str:
    """Return a link for people, with what it may mean."""
    could_be = f", perhaps `{_bare(link.suggestion)}`" if link.suggestion and not link.is_clear else ""
    return f"`{_bare(link.found)}`{could_be}"


def _bare(link: str) -> str:
    return link.strip("()<>\"' ")
