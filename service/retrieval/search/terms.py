"""The sections of a term that a question is, or asks for: they go before all others.

A term is a name with a section, a row or an item of its own (``service.markup.terms``). It has to be a name in code,
between backticks or spelled as such or as one word without a capital: a heading of other words, such as "Static pods",
is often on many pages, and only goes first on its own page. Of several sections of a term those of the current version
go first, then those that are no change log, then those that spell the term as the question does; of these a page goes
before a heading, and a heading before a row. The rest is left to the ranking. A name in code without a section of its
own, ``SKIP_BRIDGE``, goes by the sections that have it, first that of a page with it in its title: its parts are words
that many pages may have.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from service.markup.terms import (
    SAME,
    SAME_KEY,
    is_name,
    is_written_as_code,
    mention,
    names_asked,
    names_in,
    nearness,
    term_key,
)
from service.retrieval.readers.entries import Entry
from service.retrieval.search.words import PAGE_SHIFT, Hit

TITLE, HEADING, ENTRY, MENTION = 0, 1, 2, 3
APART = 2.0
"""Points between two sections, the best score of a page being 1, so that no score makes up for a place."""


class TermSection(Struct, frozen=True):
    id: int
    place: tuple[int, ...]
    """The least goes first; sections of one place are ordered by their scores."""
    headings: tuple[str, ...] = ()
    """Those above it and its own."""
    leads: bool = True
    """It goes before all others, and not only on its page."""
    is_heading: bool = False
    """The term is its heading, and no row of it."""


class Spelling(Struct, frozen=True, order=True):
    """The nearest spelling of a term that a section has."""

    is_prose: bool
    nearness: int
    kind: int

    @property
    def is_heading(self) -> bool:
        return self.kind in (TITLE, HEADING)


def spelling(
    question: str, title: str, headings: Sequence[str], entries: Iterable[Entry], *, is_code: bool
) -> Spelling | None:
    """Return the best spelling of a term that a section is about; None where it is about none that was asked for.

    ``title``: that of the page, if this is its first section; ``is_code``: its own heading, the last one, is code.
    """
    asked, bare = [(one, term_key(one)) for one in names_asked(question)], names_in(question)
    own = len(headings) - 1
    texts = [(TITLE, title, False), *((HEADING, text, is_code and at == own) for at, text in enumerate(headings))]
    texts += [(ENTRY, each.term, False) for each in entries]
    return min(
        (
            Spelling(not _is_name(name, one, near, kind, is_code=in_code, is_bare=one in bare), near, kind)
            for kind, text, in_code in texts
            for name in names_in(text)
            for own_key in [term_key(name)]
            for one, key in asked
            if key == own_key
            for near in [nearness(name, one)]
        ),
        default=None,
    )


def _is_name(name: str, asked: str, near: int, kind: int, *, is_code: bool, is_bare: bool) -> bool:
    """Return whether a name that a section has is one in code, and meant by the question. ``is_bare``: the question is
    the name alone; rows of tables have many plain words.
    """
    if near == SAME_KEY and not is_written_as_code(asked):
        return is_code and kind == HEADING
    if is_code or is_written_as_code(name):
        return True
    return is_name(name) and (kind != ENTRY or (is_bare and near == SAME))


def mentioned(written: Iterable[str], title: str, text: str) -> Spelling | None:
    """Return how a section spells one of some names in code; None where it has none of them. ``title``: that of the
    page, if this is its first section.
    """
    places = [(kind, each, each.casefold()) for kind, each in ((TITLE, title), (MENTION, text))]
    return min(
        (
            Spelling(False, near, kind)
            for kind, each, folded in places
            for name in written
            if (near := mention(name, each, folded)) is not None
        ),
        default=None,
    )


def without_outer(sections: Sequence[TermSection]) -> list[TermSection]:
    """Return the sections without those that hold another one of the term: ``## Footer`` above ``### `Footer` ``."""
    inner = {
        (each.id >> PAGE_SHIFT, each.headings[:length]) for each in sections for length in range(1, len(each.headings))
    }
    return [each for each in sections if not each.headings or (each.id >> PAGE_SHIFT, each.headings) not in inner]


def led_by_terms(sections: Sequence[TermSection]) -> Mapping[int, Mapping[int, Hit]]:
    """Return sections as ``Ranking.lead`` takes them: by page, each with its score. ``sections``: best first."""
    places = list(dict.fromkeys(each.place for each in sections))
    found: dict[int, dict[int, Hit]] = {}
    for each in sections:
        points = APART * (len(places) - places.index(each.place))
        found.setdefault(each.id >> PAGE_SHIFT, {})[each.id] = Hit(points, each.id)
    return found
