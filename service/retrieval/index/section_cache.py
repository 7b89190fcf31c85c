"""Sections as questions need them, read from an index once for many questions.

To unpack a section and to judge its text takes 0.05 ms, with a list in it 1 ms, and a question asks for a hundred of
them: most are of the same pages as for the questions before. An index never changes, so what was read of it holds until
another one takes its place; then it is forgotten (``close``).
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import count
from threading import Lock

from msgspec import Struct

from service.domain.texts.tokens import tokens_in
from service.ports.search_index import Section
from service.retrieval.material.boilerplate import Traits, traits_of
from service.retrieval.material.filling import repeat_key
from service.retrieval.search.words import PAGE_SHIFT

MAX_BYTES = 32_000_000
"""For all indexes together: about 15,000 sections, which is all of a site of 3,000 pages, or what most readers of a
larger one ask for.
"""
SECTION_BYTES = 1_000
"""Memory of a section besides its text."""


class ReadSection(Struct, frozen=True, gc=False):
    """A section, and what is the same for each question."""

    id: int
    section: Section
    tokens: int
    key: bytes
    """The same for texts that differ in spaces and case alone."""
    traits: Traits


def read_section(id_: int, section: Section) -> ReadSection:
    return ReadSection(id_, section, tokens_in(section.text), repeat_key(section.text), traits_of(section))


class CachedPage(Struct, frozen=True):
    ids: Sequence[int]
    """Those of all its sections."""
    sections: Mapping[int, ReadSection]
    """Those that were read."""
    size: int = SECTION_BYTES


class SectionCache:
    """The pages of all indexes, the least recently asked first. Threads share it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._numbers = count()
        self._open: set[int] = set()
        self._pages: OrderedDict[tuple[int, int], CachedPage] = OrderedDict()
        self.size = 0
        """Bytes."""

    def of_index(self) -> "IndexSections":
        """Return the part of an index, empty as yet."""
        with self._lock:
            number = next(self._numbers)
            self._open.add(number)
        return IndexSections(self, number)

    def get(self, index: int, pages: Sequence[int]) -> dict[int, CachedPage]:
        found = dict[int, CachedPage]()
        with self._lock:
            for page in pages:
                cached = self._pages.get((index, page))
                if cached is not None:
                    self._pages.move_to_end((index, page))
                    found[page] = cached
        return found

    def add(self, index: int, page: int, ids: Sequence[int], sections: Mapping[int, ReadSection]) -> None:
        with self._lock:
            if index not in self._open:
                return
            before = self._pages.pop((index, page), None)
            if before is not None:
                self.size -= before.size
                sections = {**before.sections, **sections}
            texts = sum(sys.getsizeof(each.section.text) for each in sections.values())
            size = SECTION_BYTES * (1 + len(sections)) + texts
            self._pages[index, page] = CachedPage(ids, sections, size)
            self.size += size
            while self.size > self._max_bytes:
                _, oldest = self._pages.popitem(last=False)
                self.size -= oldest.size

    def close(self, index: int) -> None:
        with self._lock:
            self._open.discard(index)
            for key in [key for key in self._pages if key[0] == index]:
                self.size -= self._pages.pop(key).size


class IndexSections:
    """The sections that were read of one index. Its connections share them."""

    def __init__(self, cache: SectionCache, number: int) -> None:
        self._cache, self._number = cache, number

    def of_pages(
        self, pages: Sequence[int], matched: Set[int], long: int,
        ids_of: Callable[[int], Sequence[int]], read: Callable[[Sequence[int]], Iterable[ReadSection]],
    ) -> list[ReadSection]:  # fmt: skip
        """Return the sections of pages; of a page with more than ``long`` only those that ``matched``.

        ``ids_of``: the ids of a page's sections; ``read`` reads sections, and is called for the missing ones once.
        """
        cached = self._cache.get(self._number, pages)
        ids = {page: cached[page].ids if page in cached else ids_of(page) for page in pages}
        found = {id_: section for page in cached.values() for id_, section in page.sections.items()}
        wanted = [id_ for all_ in ids.values() for id_ in all_ if len(all_) <= long or id_ in matched]
        missing = [id_ for id_ in wanted if id_ not in found]
        new: dict[int, dict[int, ReadSection]] = {}
        for section in read(missing) if missing else ():
            found[section.id] = new.setdefault(section.id >> PAGE_SHIFT, {})[section.id] = section
        for page, sections in new.items():
            self._cache.add(self._number, page, ids[page], sections)
        return [found[id_] for id_ in wanted]

    def close(self) -> None:
        """Forget the index; what a question under way reads of it is not kept."""
        self._cache.close(self._number)
