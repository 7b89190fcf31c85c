"""Pages and sections found for an answer, numbered as passages in the order in which they were found."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from service.assistant.addresses import KnownAddresses
from service.assistant.context import clip, passage_limit
from service.assistant.question import Question
from service.assistant.suggestions import page_of
from service.domain.search import Source
from service.domain.threads.replies import SearchFinished, SearchHit
from service.ports.model import Passage
from service.ports.search_index import Page, SearchIndex, Section

MAX_HIT_CHARACTERS = 2_000
"""Limit for a passage in the result of the search step: clients keep it, and send it back with each message."""


class Finder:
    """Finds passages for one answer, and knows those that it has found."""

    def __init__(self, question: Question, index: SearchIndex) -> None:
        self._question, self._index = question, index
        self._found: dict[tuple[str, int, str], Source] = {}
        self._commit = ""
        self._calls = 0
        self.open = _path_in(question.current_path)
        """The path of the page that the reader has open; empty when it is not known."""
        self.instructions = ""
        """The site owner's, of the newest search."""
        self.urls: dict[int, str] = {}
        """By the number of a passage."""
        self.addresses = KnownAddresses(question.domain, question.current_path)
        for text in (question.text, *(item.value for item in question.context)):
            self.addresses.add(text)

    @property
    def sources(self) -> Iterable[Source]:
        """Sources in the order of their numbers."""
        return self._found.values()

    async def page(self, path: str) -> Page | None:
        """A page to read whole, if it is for this reader. Version and language say what to prefer, not what to hide."""
        question = self._question
        return await self._index.read_page(question.domain, page_of(path), readers=question.filter.groups)

    def next_call(self) -> str:
        """Return the id of the next search step."""
        self._calls += 1
        return f"{self._question.reply_id}-{self._calls}"

    async def search(
        self, call_id: str, query: str, *, first: Page | None = None
    ) -> tuple[list[Passage], SearchFinished]:
        """Search the site. ``first``: a page that goes before what is found."""
        question = self._question
        result = await self._index.search(
            question.domain,
            query,
            limit=question.page_size,
            filter=question.filter,
            current_path=self.open,
        )
        self._commit, self.instructions = result.commit, result.instructions
        self.addresses.add(result.instructions)
        sections = [*([whole(first)] if first is not None else []), *result.sections]
        return self.add(call_id, query, sections, limit=passage_limit(len(sections)))

    def add(
        self, call_id: str, query: str, sections: Iterable[Section], *, limit: int
    ) -> tuple[list[Passage], SearchFinished]:
        """Number the sections: one that is known keeps its number. ``limit``: characters for each."""
        passages: list[Passage] = []
        new: list[Source] = []
        hits: list[SearchHit] = []
        for section in sections:
            self.addresses.add(section.text)
            key = (section.path, section.start_line, section.heading)
            source = self._found.get(key)
            if source is None:
                source = Source(
                    len(self._found) + 1, section.path, section.url, section.title, section.heading,
                    section.start_line, section.end_line, self._commit,
                )  # fmt: skip
                self._found[key] = source
                self.urls[source.number] = source.url
                new.append(source)
            heading = " › ".join(section.heading_path) or section.heading  # noqa: RUF001
            text = clip(section.text, limit)
            passages.append(Passage(source.number, section.title, heading, section.url, text, section.score))
            hits.append(
                SearchHit(
                    source.number, section.path, section.url, section.title, section.heading,
                    clip(section.text, MAX_HIT_CHARACTERS), section.score,
                )
            )  # fmt: skip
        return passages, SearchFinished(call_id, query, tuple(hits), tuple(new))


def whole(page: Page) -> Section:
    """Return a page as one section."""
    lines = page.content.count("\n") + 1
    return Section(page.path, page.url, page.title, "", (), page.content, 1, lines, 1.0)


def _path_in(place: str) -> str:
    """Return the path of an address or a path; clients send either."""
    return urlsplit(place).path if place.startswith(("http://", "https://")) else place
