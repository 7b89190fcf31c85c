"""Passages taken apart: the pieces that can be quoted, and the units that are quoted together.

A unit is what a reader understands by itself: a paragraph; a list, a table or code with the sentence that leads to it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from service.adapters.builtin.question_words import stems_of
from service.adapters.builtin.quotable import Block, Kind, blocks, sentences
from service.ports.model import Passage

CUT = ("\n…", "\n...")
"""How a passage ends that was longer than there was room for."""
MAX_PASSAGE_READ = 24_000
MAX_READ = 160_000
"""Limit for the characters of all passages together that are taken apart."""
_LEAD_ENDS = (":", "：")  # noqa: RUF001  (the full-width colon of Chinese and Japanese)


class Piece(Struct):
    """A sentence, list item, table row or code block of a passage."""

    kind: Kind
    text: str
    """Markdown, as it is quoted."""
    block: int
    """Pieces of one paragraph, list or table share it."""
    lead: str = ""
    indent: str = ""
    is_link: bool = False
    stems: tuple[str, ...] = ()
    headings: frozenset[str] = frozenset()
    """Stems of the headings between the passage's own and the piece."""
    score: float = 0.0

    @property
    def leads(self) -> bool:
        """Whether it leads to what stands below it."""
        text = self.text.rstrip("*_ ")
        return self.kind != "code" and (text.endswith(_LEAD_ENDS) or self.is_label)

    @property
    def is_label(self) -> bool:
        """Nothing but bold words: the name of what stands below."""
        return self.kind == "sentence" and self.text.startswith("**") and self.text.find("**", 2) == len(self.text) - 2

    @property
    def size(self) -> int:
        """Characters as a reader sees them, roughly: code is shorter than its lines look."""
        return len(self.text) if self.kind != "code" else 24 + len(self.text) * 2 // 3


class Apart:
    """A passage and what it is made of."""

    def __init__(self, passage: Passage, language: str, kindred: Mapping[str, str] = {}) -> None:
        """``kindred``: as ``Wanted`` has it; such stems are read as those of the question."""

        def stems(text: str) -> tuple[str, ...]:
            found = stems_of(text, language)
            return tuple(kindred.get(stem, stem) for stem in found) if kindred else found

        self.passage = passage
        self.page = passage.url.partition("#")[0]
        own = passage.heading.rpartition(" › ")[2]  # noqa: RUF001
        self.title = stems(passage.title)
        self.own = stems(own) or self.title
        """Stems of the nearest heading."""
        self.above = stems(f"{passage.title} {passage.heading}")
        self.pieces = _pieces(passage, stems)
        self.units = _units(self.pieces)
        self.body = frozenset[str]().union(*(piece.stems for piece in self.pieces))
        self.has = self.body.union(self.above, *(piece.headings for piece in self.pieces))
        self.score = 0.0
        self.explains = 0.0
        """How surely it is the section of the term that is asked for, 0 .. 1."""

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


def taken_apart(passages: Sequence[Passage], language: str, kindred: Mapping[str, str] = {}) -> list[Apart]:
    """Return the passages that have something to quote; of too much text, the best."""
    left = MAX_READ
    read: list[tuple[int, Passage]] = []
    for at, passage in sorted(enumerate(passages), key=lambda each: (-each[1].score, each[0])):
        left -= min(len(passage.text), MAX_PASSAGE_READ)
        if left < 0 and read:
            break
        read.append((at, passage))
    apart = (Apart(passage, language, kindred) for _, passage in sorted(read, key=lambda each: each[0]))
    return [one for one in apart if one.pieces]


def _pieces(passage: Passage, stems_of: Callable[[str], tuple[str, ...]]) -> list[Piece]:
    pieces: list[Piece] = []
    headings: frozenset[str] = frozenset()
    for block in blocks(passage.text[:MAX_PASSAGE_READ]):
        if block.kind == "heading":
            headings = frozenset(stems_of(block.text))
            continue
        for text in sentences(block.text) if block.kind == "sentence" else [block.text]:
            if block.kind == "code" and text.rstrip("\n").endswith(CUT) and passage.text.endswith(CUT):
                continue  # the passage was cut inside of it
            if text.strip() == "…":
                continue
            stems = stems_of(_with_head(block, text))
            if stems or block.kind == "code":
                pieces.append(
                    Piece(
                        block.kind, text, block.number, block.lead, block.indent, block.is_link, stems,
                        headings,
                    )
                )  # fmt: skip
    return pieces


def _with_head(block: Block, text: str) -> str:
    """A row says what it does under the head of its table."""
    head, _, _ = block.lead.partition("\n")
    return f"{head} {text}" if block.kind == "row" else text


def _units(pieces: Sequence[Piece]) -> list[range]:
    """Return the pieces, by their places, that are quoted together."""
    units: list[range] = []
    for at, piece in enumerate(pieces):
        before = pieces[at - 1] if at else None
        if before is not None and (
            before.block == piece.block or (before.leads and (piece.kind != "sentence" or before.is_label))
        ):
            units[-1] = range(units[-1].start, at + 1)
        else:
            units.append(range(at, at + 1))
    return units


def total(pieces: Sequence[Piece], places: Iterable[int]) -> int:
    return sum(pieces[at].size for at in places)
