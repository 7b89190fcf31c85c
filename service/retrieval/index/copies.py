"""The pages of an index that are copies of one another, and the one of them that a reader is shown.

Copies are one page in several languages, or of several versions (``service.retrieval.site.translations``). One of them
stands for all: in the language that serves the reader best, also where the words of the question are only on another
one; among the versions in that language, that of the page which is open, else the one that ranks best.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from service.markup.languages.detection import known_language
from service.retrieval.search.ranking import Ranking
from service.retrieval.search.reader import KINDRED, Open, Reader
from service.retrieval.search.words import PAGE_SHIFT, Hit

LEAST_SHARE = 0.02
"""The part of a site's pages that a language needs which only their texts show: a page of names may look like any."""
AFTER = 0.99
"""The part of the last page's score that other versions of pages have at most: they come after all others."""
COLUMNS = "id, language, text_language, version, copy_group"

Allowed = Callable[[Sequence[int]], Iterable[int]]
"""A function of pages: those of them that may be found."""
Counted = Callable[[int], int]
"""A function of a page: the number of its sections."""


class Kind(Struct, frozen=True):
    """The language of a page's place and of its text, and its version; many pages share one."""

    place: str
    text: str
    version: str


class Copies:
    """The languages of all pages, and the groups of copies."""

    def __init__(self, db: sqlite3.Connection) -> None:
        kinds: dict[tuple[str, str, str], Kind] = {}
        self._kinds: dict[int, Kind] = {}
        self._group: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        for page, place, text, version, group in db.execute(f"SELECT {COLUMNS} FROM pages"):  # noqa: S608  (ours)
            kind = kinds.get((place, text, version))
            if kind is None:
                kind = kinds[place, text, version] = Kind(place, text, version)
            self._kinds[page] = kind
            if group:
                self._group[page] = group
                self._members.setdefault(group, []).append(page)
        self.languages = _languages(self._kinds.values())
        """Languages of the site."""
        self.translated = self._translated()
        """Languages that have a copy of a page in another one."""
        self.exist = bool(self._members)
        self.most = max((self._versions(members) for members in self._members.values()), default=1)
        """Versions of a page in one language, at most."""

    def _versions(self, members: Sequence[int]) -> int:
        return max(Counter((self._kinds[page].place, self._kinds[page].text) for page in members).values())

    def _translated(self) -> frozenset[str]:
        found: set[str] = set()
        for members in self._members.values():
            languages = {known_language(self._kinds[page].place) or self._kinds[page].text for page in members}
            found |= languages if len(languages) > 1 else set()
        return frozenset(found)

    def kind_of(self, page: int) -> Kind:
        return self._kinds[page]

    def count(self, page: int) -> int:
        """Return the number of a page's copies."""
        return max(0, len(self._members.get(self._group.get(page, 0), ())) - 1)

    def reader_on(self, page: int) -> Open:
        """Return what a page says of its reader."""
        kind = self._kinds[page]
        return Open(kind.place or kind.text, kind.version)

    def level(self, page: int, reader: Reader) -> int:
        kind = self._kinds[page]
        return reader.level(kind.place, kind.text)

    def foreign(self, pages: Iterable[int], reader: Reader) -> list[int]:
        """Return those of the pages, in other languages than the reader's, that a question may bring: where it is in
        the reader's language, only pages without a copy in it.
        """
        if not reader.asks_in_own:
            return list(pages)
        return [page for page in pages if not self._has_own_copy(page, reader)]

    def reader_as_found(self, page: int, reader: Reader) -> Reader:
        """Return the reader of a question whose words are on no page in the language that was assumed: one of the best
        page's language, unless the filter names another. The first letters of a word seldom show its language.
        """
        kind = self._kinds[page]
        language = reader.language if reader.is_asked else kind.place or kind.text
        return replace(reader, language=language, asks_in_own=False)

    def _has_own_copy(self, page: int, reader: Reader) -> bool:
        return any(self.level(copy, reader) >= KINDRED for copy in self._members.get(self._group.get(page, 0), ()))

    def shown(self, pages: Iterable[int], reader: Reader, allowed: Allowed) -> list[int]:
        """Return pages without their copies, each as the reader is shown it, in the order of the first of each."""
        found = list(dict.fromkeys(pages))
        instead = self._instead(found, reader, allowed)
        return list(dict.fromkeys(instead.get(self._group.get(page, 0), page) for page in found))

    def collapse(
        self, ranking: Ranking, first: Sequence[int], reader: Reader, allowed: Allowed, counted: Counted
    ) -> list[int]:
        """Return the pages without their copies, and last other versions of these. The copy that stays has the score of
        the best; where no word of the question is on it and it has the same number of sections, those that stand
        where those of the best stand.
        """
        ordered = sorted(first, key=lambda page: (-ranking.scores[page], page))
        instead = self._instead(ordered, reader, allowed)
        kept: dict[int, None] = {}
        versions = []
        for page in ordered:
            shown = instead.get(self._group.get(page, 0), page)
            if shown not in kept:
                kept[shown] = None
                if shown != page:
                    _take_over(ranking, shown, page, same=counted(shown) == counted(page))
            if shown != page and self._is_version(page, shown):
                versions.append(page)
        last = min((ranking.scores[page] for page in kept), default=0.0)
        ranking.versions.update(versions)
        for page in versions:
            ranking.scores[page] = min(AFTER * last, ranking.scores[page])
        return [*kept, *versions]

    def _is_version(self, page: int, other: int) -> bool:
        """Return whether two copies are in one language."""
        one, two = self._kinds[page], self._kinds[other]
        return (one.place, one.text) == (two.place, two.text)

    def _instead(self, ordered: Sequence[int], reader: Reader, allowed: Allowed) -> Mapping[int, int]:
        """Return the page to show of each group that some of these pages are of; they are ordered, the best first."""
        found: dict[int, list[int]] = {}
        for page in ordered:
            if page in self._group:
                found.setdefault(self._group[page], []).append(page)
        further = [page for group, pages in found.items() for page in self._members[group] if page not in pages]
        may = set(allowed(further)) if further else set()
        return {
            group: self._best(pages, [page for page in self._members[group] if page in may], reader)
            for group, pages in found.items()
        }

    def _best(self, found: Sequence[int], further: Sequence[int], reader: Reader) -> int:
        """Return the page for the reader. ``found``: by the question, the best first; ``further``: other copies."""
        levels = {page: self.level(page, reader) for page in (*found, *further)}
        best = max(levels.values())
        fit = [page for page, level in levels.items() if level == best]
        open_ = [page for page in fit if reader.version and self._kinds[page].version == reader.version]
        version = self._kinds[found[0]].version
        same = [page for page in fit if page in found or self._kinds[page].version == version]
        return (open_ or same or fit)[0]


def _languages(kinds: Collection[Kind]) -> frozenset[str]:
    """Return the languages that the site says its pages are in, and those that several texts show by themselves."""
    placed = {known_language(kind.place) for kind in set(kinds)} - {""}
    shown = Counter(kind.text for kind in kinds if not known_language(kind.place))
    return frozenset(placed.union(text for text, count in shown.items() if count >= LEAST_SHARE * len(kinds)))


def _take_over(ranking: Ranking, shown: int, page: int, *, same: bool) -> None:
    """Give a page the score of its copy. ``same``: and its sections, unless it has some of its own."""
    ranking.scores[shown] = max(ranking.scores.get(shown, 0.0), ranking.scores[page])
    ranking.places.setdefault(shown, ranking.places.get(page, 1.0))
    if same and shown not in ranking.sections:
        first, numbers = shown << PAGE_SHIFT, (1 << PAGE_SHIFT) - 1
        ranking.sections[shown] = [Hit(hit.score, first | hit.id & numbers) for hit in ranking.sections.get(page, ())]
