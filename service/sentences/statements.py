"""Statements that a change adds to a page, held against what their author read, by the checks of answers.

A number, unit, version, name or promise needs a source. Pages cite nothing, so any source supports. Pure: no clock, no
I/O, no model; the work grows with the text and its sources, up to the limits of ``SentenceChecker``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from service.sentences import claims
from service.sentences.checker import MAX_SENTENCES, SentenceChecker
from service.sentences.numbers import numbers_in
from service.sentences.passages import GivenPassage
from service.sentences.units import Unit, UnitReader

CHUNK_CHARACTERS = 50_000
"""Sources are read in pieces of this size: a longer passage would be cut."""
_NUMBERED = re.compile(r"^[ \t]{0,8}\d{1,7}(?:\t|: )", re.MULTILINE)
"""The numbers of lines, as files are shown: they are no source of a number."""
_MARKUP = re.compile(r"[ \t>]*(?:<|\{[%{]|:::|\.\. |(?:import|export)\s|\[[^\]\n]{1,100}\]:)")
"""A line that is no prose."""
_ADDRESS = re.compile(r"(?<=\]\()(?:\{[{%][^{}\n]{0,200}+\}{1,2}|[^()\s{]|\{){1,2000}+(?=[)\s])")
"""That of a link, also with a template's marks: it states nothing, and has checks of its own."""
_PROMISE = re.compile(
    r"\b(?P<word>guarante\w{1,4}|unlimited|SLAs?|free of charge|at no (?:extra )?(?:cost|charge)|zero[- ]downtime"
    r"|lifetime|certified|compliant|risk-free|fully compatible|bug-free|will (?:always|never)|24/7"
    r"|(?:always|never) (?:fails?|loses?|breaks?|down)|instant(?:ly|aneous\w{0,2})|industry[- ]leading"
    r"|military[- ]grade|100 ?% (?:safe|secure|reliable|compatible))\b",
    re.IGNORECASE,
)


class Statement(Struct, frozen=True):
    """A sentence, list item or row of a table that a page did not have before."""

    start: int
    """Where it begins in the page, in characters."""
    missing: tuple[str, ...]
    """Its numbers and promises that no source has, or has otherwise."""
    names: tuple[str, ...]
    """Its names that no source has."""


def unsourced_statements(text: str, before: str, sources: Iterable[str], said: Sequence[str] = ()) -> list[Statement]:
    """Return what a page states newly and none of the sources does; at most ``MAX_SENTENCES`` are looked at.

    ``text``, ``before``: the page without its front matter, now and as it was, which is a source. ``said``: words of
    those who asked for the change; they need no source.
    """
    units = _new_units(text, before)
    if not units:
        return []
    checker = SentenceChecker(said, is_one_language=True)
    texts = [_NUMBERED.sub("", one) for one in (before, *sources)]
    checker.add_passages(_passages(texts))
    found = {check.start: check.missing for check in checker.judge(units) if check.status == "unsupported"}
    all_said = "\n".join(said).casefold()
    known = "\n".join((*texts, *said)).casefold()
    statements: list[Statement] = []
    for unit in units:
        missing = [  # paths are links, which have checks of their own
            piece for piece in found.get(unit.start, ()) if piece.casefold() not in all_said and "/" not in piece
        ]
        promises = [match["word"] for match in _PROMISE.finditer(unit.text) if match["word"].casefold() not in known]
        if missing or promises:
            names = tuple(piece for piece in missing if piece != "not" and not _is_quantity(piece))
            others = tuple(piece for piece in missing if piece not in names)
            statements.append(Statement(unit.start, (*others, *promises), names))
    return statements


def _new_units(text: str, before: str) -> list[Unit]:
    known = {_bare(unit.text) for unit in _units(before)}
    new = (unit for unit in _units(text) if _bare(unit.text) not in known)
    return [unit for _, unit in zip(range(MAX_SENTENCES), new, strict=False)]


def _units(text: str) -> Iterator[Unit]:
    reader = UnitReader()
    for unit in (*reader.feed(text), *reader.finish()):
        if unit.kind not in ("code", "heading") and not _MARKUP.match(unit.text) and not claims.is_question(unit.text):
            yield replace(unit, text=_ADDRESS.sub("#", unit.text))


def _bare(text: str) -> str:
    return " ".join(text.split())


def _passages(texts: Iterable[str]) -> Iterator[GivenPassage]:
    number = 0
    for text in dict.fromkeys(texts):
        for at in range(0, len(text), CHUNK_CHARACTERS):
            number += 1
            yield GivenPassage(number, text[at : at + CHUNK_CHARACTERS])


def _is_quantity(piece: str) -> bool:
    return next(iter(numbers_in(piece)), None) is not None
