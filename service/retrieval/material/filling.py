"""Fill a prompt's budget with sections: the best ones, their neighbours, and each text once.

A section is worth what it scores itself, what its page scores, and a part of its better neighbour's worth, since an
answer often begins in one section and goes on in the next. The sections are chosen in the order of their worth as
long as they fit and come near to the best: a short prompt is better than one that is filled up. No page gets more than
``most_of_page`` while others have sections nearly as good; each query of several gets its part first, so that a
comparison has both sides.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from service.domain.texts.tokens import tokens_in
from service.ports.search_index import Section
from service.retrieval.material.boilerplate import SHORT
from service.retrieval.material.cutting import beginning

PAGE_WEIGHT, SECTION_WEIGHT = 0.6, 1.0
NEIGHBOUR = 0.3
"""The part of the better neighbour's worth that a section has at least."""
LEAST_WORTH, LEAST_PAGE = 0.3, 0.5
"""The part of the best section's worth, below which a section is no help, and a page whose best section is. Of 95
answers, the pages of all had 0.55 or more.
"""
LEAST_OF_FEW = 0.1
"""The same part of a section, where the site has few pages."""
PAGE_SHARE, SMALL_SHARE, PAGE_TOKENS = 0.4, 0.6, 1_800
"""The part of the budget that one page may have while others wait; and in a small one that part, up to a number of
tokens. Of 132 questions .932 and .947 have their answer in prompts of 6,000 and 12,000 tokens, the same as with .6; in
those of 3,000 it is .879 with .6, and .864 with .4.
"""
CLOSE = 0.7
"""The part of a section's worth from which another page's section is as good a candidate."""
FRAME_TOKENS = 32
"""Tokens of the tags, the title and the headings of a section in a prompt."""
LEAST_CUT = 200
"""Tokens; less of a section is not worth a place."""
MAX_SECTIONS_A_PAGE = 12
"""Sections of the result for each page that was asked for: a record of them stays small."""


class Piece(Struct):
    """A section that may become a part of the material."""

    id: int
    """Grows with the page's order: neighbours differ by one."""
    page: int
    section: Section
    page_score: float
    """0 .. 1, the best page being 1."""
    own_scores: tuple[float, ...]
    """0 .. 1, for each query; the best section being 1."""
    is_known: bool = False
    """The prompt has it already."""
    is_expected: bool = False
    """Its page is named by a plan, or by the question: it may answer in other words."""
    worths: tuple[float, ...] = ()
    """For each query; ``worth`` is the most of them."""
    worth: float = 0.0
    tokens: int = 0
    """Tokens of its text; counted when they are not given."""
    key: bytes = b""
    """``repeat_key`` of its text; made when it is not given."""

    def __post_init__(self) -> None:
        self.tokens = self.tokens or tokens_in(self.section.text)
        self.key = self.key or repeat_key(self.section.text)

    @property
    def is_beside(self) -> bool:
        """It is short, not a page's beginning, and has no word of the question: it needs its neighbour."""
        if self.is_expected or self.section.heading in ("", self.section.title):
            return False  # a page may be found by its title alone
        return len(self.section.text) < SHORT and not any(self.own_scores)


def repeat_key(text: str) -> bytes:
    """Return a key that is the same for texts that differ in spaces and case alone."""
    words = "".join(text.split()).casefold()
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def fill(
    pieces: Iterable[Piece], budget_tokens: int, *, most: int, first_page: int = -1, few: int = 0
) -> list[Section]:
    """Return the sections for the budget, at most ``most``, in the order of the prompt.

    ``first_page``: the page that goes whole before all others; -1 for none. ``few``: with no more pages than this,
    weak ones stay, too: a small site has no others to answer from, or to go on with.
    """
    held = _without_repeats(sorted(pieces, key=lambda piece: piece.id), first_page)
    if not held:
        return []
    _weigh(held)
    is_small = len({piece.page for piece in held}) <= few
    held = held if is_small else _without_weak_pages(held, first_page)
    chosen = _Chosen(budget_tokens, most, keeps_all=is_small)
    if first_page >= 0:
        whole = [piece for piece in held if piece.page == first_page]
        if sum(_cost(piece) for piece in whole) > budget_tokens:
            whole.sort(key=lambda piece: (-piece.worth, piece.id))
        chosen.take(whole, budget_tokens, least=0.0)
    queries, each_page = range(len(held[0].worths)), most_of_page(budget_tokens)
    for query in queries if len(queries) > 1 else ():
        # The first query is the whole question, and gets the rest.
        part = budget_tokens // (len(queries) + 1)
        chosen.take(
            sorted(held, key=lambda piece: (-piece.worths[query], piece.id)), part, each_page=each_page, of=query
        )
    ordered = sorted(held, key=lambda piece: (-piece.worth, piece.id))
    chosen.take(ordered, budget_tokens, each_page=each_page)
    chosen.take(ordered, budget_tokens)
    return chosen.in_order(first_page)


def most_of_page(budget_tokens: int) -> float:
    """Return the tokens that one page may have while others wait."""
    return min(max(PAGE_SHARE * budget_tokens, PAGE_TOKENS), SMALL_SHARE * budget_tokens)


def _without_repeats(pieces: Sequence[Piece], first_page: int) -> list[Piece]:
    """Return each text once: where it scores best, which is rarely an older version or another language."""
    best: dict[bytes, Piece] = {}
    for piece in pieces:
        other = best.get(piece.key)
        if other is None or _rank(piece, first_page) > _rank(other, first_page):
            best[piece.key] = piece
    return sorted(best.values(), key=lambda piece: piece.id)


def _rank(piece: Piece, first_page: int) -> tuple[bool, bool, float]:
    return piece.is_known, piece.page == first_page, piece.page_score + max(piece.own_scores)


def _weigh(pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        of_page = PAGE_WEIGHT * piece.page_score
        piece.worths = tuple([of_page + SECTION_WEIGHT * score for score in piece.own_scores])
        piece.worth = max(piece.worths)
    raised: list[tuple[Piece, tuple[float, ...]]] = []
    for one, other in pairwise(pieces):
        if one.page == other.page and other.id - one.id <= 2 and one.worths != other.worths:
            raised += [(one, other.worths), (other, one.worths)]
    for piece, near in raised:
        pairs = zip(piece.worths, near, strict=True)
        piece.worths = tuple([worth + NEIGHBOUR * (by - worth) if by > worth else worth for worth, by in pairs])
        piece.worth = max(piece.worths)


def _without_weak_pages(pieces: Sequence[Piece], first_page: int) -> list[Piece]:
    """Return the pages whose best section comes near to the best of all, for one of the queries."""
    tops = [max(worths) or 1.0 for worths in zip(*(piece.worths for piece in pieces), strict=True)]
    best: dict[int, float] = {first_page: 1.0}
    for piece in pieces:
        part = 1.0 if piece.is_expected else max([worth / top for worth, top in zip(piece.worths, tops, strict=True)])
        if part > best.get(piece.page, 0.0):
            best[piece.page] = part
    return [piece for piece in pieces if best.get(piece.page, 0.0) >= LEAST_PAGE]


class _Chosen:
    def __init__(self, budget_tokens: int, most: int, *, keeps_all: bool) -> None:
        """``keeps_all``: take weak sections, too."""
        self._most, self._keeps_all = most, keeps_all
        self._left = budget_tokens
        self._pieces: dict[int, Piece] = {}
        self._of_page: dict[int, int] = {}

    def take(
        self, ordered: Sequence[Piece], up_to: int, *, each_page: float = inf, of: int | None = None,
        least: float = LEAST_WORTH,
    ) -> None:  # fmt: skip
        """Add pieces, in this order, up to a number of tokens, and of one page up to ``each_page`` while others wait.
        ``least``: the part of the best one's worth that they must have.
        """
        if not ordered:
            return
        used = 0
        least = min(least, LEAST_OF_FEW) if self._keeps_all else least
        best = max(piece.worth if of is None else piece.worths[of] for piece in ordered)
        for piece in ordered:
            if len(self._pieces) >= self._most or self._left < FRAME_TOKENS:
                break
            worth = piece.worth if of is None else piece.worths[of]
            if worth < least * best:
                break
            if piece.id in self._pieces:
                used += _cost(piece) if of is not None else 0
                continue
            if least and not self._keeps_all and piece.is_beside and not self._has_neighbour(piece):
                continue
            cost = _cost(piece)
            left = min(self._left, up_to - used)
            of_page = self._of_page.get(piece.page, 0)
            if of_page and of_page + cost > each_page and self._others_are_close(piece, worth, ordered, of):
                continue
            if cost > left:
                if self._pieces or left < LEAST_CUT:
                    continue
                piece = _cut(piece, left)
                cost = _cost(piece)
            used += cost
            self._left -= cost
            self._of_page[piece.page] = of_page + cost
            self._pieces[piece.id] = piece

    def _has_neighbour(self, piece: Piece) -> bool:
        return any(self._pieces.get(piece.id + by) is not None for by in (-1, 1))

    def _others_are_close(self, piece: Piece, worth: float, ordered: Sequence[Piece], of: int | None) -> bool:
        """Return whether another page waits with a section that is nearly worth as much."""
        return any(
            (other.worth if of is None else other.worths[of]) >= CLOSE * worth
            for other in ordered
            if other.page != piece.page and other.id not in self._pieces
        )

    def in_order(self, first_page: int) -> list[Section]:
        """Return the chosen pages by their best piece, each in its own order."""
        best: dict[int, float] = {}
        for piece in self._pieces.values():
            best[piece.page] = max(best.get(piece.page, 0.0), piece.worth)
        top = max(best.values(), default=1.0) or 1.0
        ordered = sorted(
            self._pieces.values(), key=lambda piece: (piece.page != first_page, -best[piece.page], piece.page, piece.id)
        )
        return [replace(piece.section, score=round(min(1.0, piece.worth / top), 4)) for piece in ordered]


def _cost(piece: Piece) -> int:
    return 0 if piece.is_known else piece.tokens + FRAME_TOKENS


def _cut(piece: Piece, budget_tokens: int) -> Piece:
    text = beginning(piece.section.text, budget_tokens - FRAME_TOKENS)
    cut = replace(piece.section, text=text)
    return Piece(piece.id, piece.page, cut, piece.page_score, piece.own_scores, worths=piece.worths, worth=piece.worth)
