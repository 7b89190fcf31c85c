from service.ports.search_index import MaterialRequest, Section
from service.retrieval.index.section_cache import ReadSection, SectionCache, read_section
from tests.retrieval.sites import DOMAIN, Indexed

SECTIONS_A_PAGE = 3


class Reader:
    """Reads any section, and notes which."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def ids(self, page: int) -> list[int]:
        return [page << 16 | at for at in range(SECTIONS_A_PAGE)]

    def __call__(self, sections: list[int]) -> list[ReadSection]:
        self.read += sections
        return [
            read_section(each, Section("p.md", "/p", "P", "", (), f"Text {each}. " * 50, 1, 2)) for each in sections
        ]


def test_section_cache_reads_each_section_once():
    sections, reader = SectionCache().of_index(), Reader()
    first, second = (sections.of_pages([2, 1], {1 << 16}, 9, reader.ids, reader) for _ in range(2))
    assert [each.id for each in first] == [*reader.ids(2), *reader.ids(1)]
    assert second == first
    assert reader.read == [each.id for each in first]


def test_section_cache_adds_sections_of_a_long_page():
    sections, reader = SectionCache().of_index(), Reader()
    one, two, three = reader.ids(1)
    assert [each.id for each in sections.of_pages([1], {two}, 2, reader.ids, reader)] == [two]
    assert [each.id for each in sections.of_pages([1], {one, two}, 2, reader.ids, reader)] == [one, two]
    assert [each.id for each in sections.of_pages([1], set(), 9, reader.ids, reader)] == [one, two, three]
    assert reader.read == [two, one, three]


def test_section_cache_keeps_the_newest_within_its_bytes():
    cache = SectionCache(max_bytes=20_000)
    sections, reader = cache.of_index(), Reader()
    for page in range(1, 20):
        sections.of_pages([page], set(), 9, reader.ids, reader)
        assert 0 < cache.size <= 20_000
    reader.read.clear()
    sections.of_pages([19, 1], set(), 9, reader.ids, reader)
    assert reader.read == reader.ids(1)


def test_closed_index_is_neither_kept_nor_mixed_up():
    cache, reader = SectionCache(), Reader()
    old, new = cache.of_index(), cache.of_index()
    old.of_pages([1], set(), 9, reader.ids, reader)
    old.close()
    assert cache.size == 0
    assert old.of_pages([1], set(), 9, reader.ids, reader)  # a question under way
    assert cache.size == 0
    reader.read.clear()
    new.of_pages([1], set(), 9, reader.ids, reader)
    assert reader.read == reader.ids(1)


async def test_material_is_that_of_the_newest_index(indexed: Indexed):
    request = MaterialRequest(("How is a kite flown?",), budget_tokens=500)
    for text in ("Run into the wind.", "Wait for the wind.", "Let out the line."):
        await indexed.fill({"docs/kite.md": f"# Flying a kite\n\n{text}\n"})
        for _ in range(2):
            (section,) = (await indexed.index.find_material(DOMAIN, request)).sections
            assert text in section.text
