"""Jupyter notebooks (nbformat 4, and 3's worksheets): Markdown cells are read as Markdown, code cells are shown as
code; what they printed is not, since it is made, not written. Lines are those of the ``.ipynb`` file.
"""

import msgspec
from msgspec import Struct

from service.domain.sites import Skipped
from service.markup.dialects.dialect import Dialect
from service.markup.fences import fenced
from service.ports.docs_source import PAGE_BYTES
from service.retrieval.readers.markdown import ParsedPage, parse_page
from service.retrieval.readers.outline import TooLong

MAX_NOTEBOOK_BYTES = PAGE_BYTES["ipynb"]
"""Pictures in outputs are most of it."""
MAX_CELLS = 5_000
MAX_CELL = 200_000
"""Characters of one cell's source."""


class _Cell(Struct):
    cell_type: str = ""
    source: msgspec.Raw = msgspec.Raw(b'""')
    input: msgspec.Raw = msgspec.Raw(b'""')
    """nbformat 3's name for the source of a code cell."""
    level: int = 1


class _Worksheet(Struct, frozen=True):
    cells: list[msgspec.Raw] = []


class _KernelSpec(Struct, frozen=True):
    language: str = ""


class _Metadata(Struct, frozen=True):
    kernelspec: _KernelSpec = _KernelSpec()


class _Notebook(Struct, frozen=True):
    cells: list[msgspec.Raw] = []
    worksheets: list[_Worksheet] = []
    metadata: _Metadata = _Metadata()


def parse_notebook(data: bytes, path: str, dialect: Dialect) -> ParsedPage | Skipped:
    """Never raises for what is in the file."""
    if len(data) > MAX_NOTEBOOK_BYTES:
        return Skipped(path, f"It is larger than {MAX_NOTEBOOK_BYTES >> 20} MiB.")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
        cells = [*notebook.cells, *(cell for sheet in notebook.worksheets for cell in sheet.cells)]
        if len(cells) > MAX_CELLS:
            return Skipped(path, f"It has more than {MAX_CELLS:,} cells.")
        return _read(data, path, dialect, cells, notebook.metadata.kernelspec.language)
    except (msgspec.DecodeError, UnicodeError):
        return Skipped(path, "It is not a Jupyter notebook.")
    except (RecursionError, TooLong):
        return Skipped(path, "It is nested too deeply, or has too many parts.")


def _read(data: bytes, path: str, dialect: Dialect, cells: list[msgspec.Raw], language: str) -> ParsedPage:
    """Read the cells as one page of Markdown; then set for each of its lines where it is in the file."""
    lines: list[str] = []
    where: list[int] = []
    counted, at = 1, 0
    for raw in cells:
        cell = msgspec.json.decode(raw, type=_Cell)
        source = cell.source if bytes(cell.source) != b'""' else cell.input
        begin = data.find(raw, at)
        if begin < 0:
            at = len(data)  # the cells are not in order: the file is looked through once
        elif (position := data.find(source, begin, begin + len(bytes(raw)))) >= 0:
            counted, at = counted + data.count(b"\n", at, position), position
        text = _text(source)
        if not text.strip():
            continue
        shown = text[:MAX_CELL].replace("\r\n", "\n").split("\n")
        # nbformat writes one line of source in one line of JSON, after the line of its bracket.
        is_spread = bytes(source).count(b"\n") >= len(shown)
        at_each = [counted + 1 + n if is_spread else counted for n in range(len(shown))]
        if cell.cell_type == "code":
            shown, at_each = fenced("\n".join(shown), language).split("\n"), [counted, *at_each, at_each[-1]]
        elif cell.cell_type == "heading":
            shown = ["#" * min(max(cell.level, 1), 6) + " " + " ".join(shown)]
            at_each = at_each[:1]
        elif cell.cell_type not in ("markdown", "raw"):
            continue
        lines += [*shown, ""]
        where += [*at_each, at_each[-1]]
    page = parse_page("\n".join(lines).encode(), path, dialect)
    if isinstance(page, Skipped):
        raise TooLong
    return _moved(page, where)


def _text(source: msgspec.Raw) -> str:
    value = msgspec.json.decode(source, type=str | list[str])
    return "".join(value) if isinstance(value, list) else value


def _moved(page: ParsedPage, where: list[int]) -> ParsedPage:
    def line(number: int) -> int:
        return where[min(max(number, 1), len(where)) - 1] if where else 1

    return msgspec.structs.replace(
        page,
        sections=tuple(
            msgspec.structs.replace(one, start_line=line(one.start_line), end_line=line(one.end_line))
            for one in page.sections
        ),
        links=tuple(msgspec.structs.replace(one, line=line(one.line)) for one in page.links),
    )
