"""Sections found for an answer, numbered as passages, within one budget of tokens.

The first search fills the budget of the first prompt (``first_tokens``). What the model then searches and reads itself
adds at most as much again; a section that it has already is not sent twice. Each section is a passage of its own, so a
citation leads to its heading and lines. The most relevant one has the lowest number; the prompt has them page after
page, each page in its own order.
"""

from collections.abc import Sequence
from sys import intern

from msgspec import Struct
from msgspec.structs import replace

from service.assistant.addresses import KnownAddresses, addresses_in, path_in
from service.assistant.context import clip, passage_cost
from service.assistant.finding.found import FoundPassages
from service.assistant.question import AnswerSettings, Question
from service.domain.search import QueryWord, Source
from service.domain.threads.progress import ReplyProgress
from service.domain.threads.replies import SearchFinished, SearchHit
from service.markup.languages.detection import known_language
from service.markup.suggestions import page_of
from service.ports.model import Passage
from service.ports.search_index import Material, MaterialRequest, Page, SearchIndex, Section
from service.sentences.passages import GivenPassage

TOKENS_A_PAGE = 2_400
"""Tokens of the first prompt for each page that was asked for: 12,000 at five."""
FAR_TOKENS = 1_500
"""The same for a question that is far from the documentation."""
SEARCH_PART, READ_PART = 3, 2
"""One search of the model gets a third of the first budget, one reading of a page a half."""
HEADING_LINES = 2
"""A section begins with its heading, which its text has not, and nearly always with a blank line behind it."""
MAX_HIT_CHARACTERS = 2_000
"""Limit for a passage in the result of the search step: clients keep it, and send it back with each message."""


class Added(Struct, frozen=True):
    """The result of a search or a reading by the model."""

    passages: tuple[Passage, ...]
    """New ones, in the order of the prompt."""
    known: tuple[Passage, ...]
    """Those that the prompt has already."""
    finished: SearchFinished


class Finder:
    """Finds passages for one answer, and knows those that it has found."""

    def __init__(self, question: Question, index: SearchIndex, settings: AnswerSettings) -> None:
        self._question, self._index = question, index
        self.found = FoundPassages()
        self._commit = ""
        self._language = ""
        """The reader's, where the site is in several."""
        self._calls = 0
        self.first_tokens = max(1, min(TOKENS_A_PAGE * question.page_size, settings.max_context_tokens))
        """The budget of the first prompt."""
        self.left_tokens = self.first_tokens
        """Tokens that the model's own searches and readings may still add."""
        self.coverage = 0.0
        """As ``Material.coverage`` has it, of the newest search for the prompt."""
        self.words: tuple[QueryWord, ...] = ()
        """As ``Material.words`` has them, of the same search."""
        self.alone: tuple[Sequence[Passage], tuple[QueryWord, ...]] | None = None
        """The passages and words for the question alone, where the same search has more of the conversation."""
        self.open = path_in(question.current_path)
        """The path of the page that the reader has open; empty when it is not known."""
        self.lacking: tuple[str, ...] = ()
        """As ``Material.lacking`` has them, of the same search."""
        self.is_far = False
        """As ``Material.is_far`` has it, of the same search."""
        self._least_score = 0.0
        """As ``Material.least_score`` has it, of the same search."""
        self.site_title = ""
        """The title of the site's start page."""
        self.instructions = ""
        """The site owner's, of the newest search."""
        self.addresses = KnownAddresses(question.domain, question.current_path, self.found.addresses)
        for text in (question.text, *(item.value for item in question.context)):
            self.addresses.add(text)
        self._unread: list[str] = []
        """Texts that were found since addresses were last read."""

    @property
    def sources(self) -> Sequence[Source]:
        """Return the sources in the order of their numbers: the most relevant of each search first."""
        return tuple(self.found.sources.values())

    async def page(self, path: str) -> Page | None:
        """A page to read whole, if it is for this reader. Version and language say what to prefer, not what to hide."""
        question = self._question
        return await self._index.read_page(question.domain, page_of(path), readers=question.filter.groups)

    def next_call(self) -> str:
        """Return the id of the next search step."""
        self._calls += 1
        return f"{self._question.reply_id}-{self._calls}"

    async def search(
        self, call_id: str, queries: Sequence[str], *, pages: Sequence[str] = (), whole_page: str = "", alone: str = ""
    ) -> tuple[list[Passage], SearchFinished]:
        """Return the passages of the first prompt, in its order.

        ``queries``, ``pages``, ``whole_page``: as ``MaterialRequest`` has them. ``alone``: as ``Queries`` has it. A
        second call replaces the passages of the first; a section that both found keeps its number.
        """
        material = await self._material(queries, self.first_tokens, pages=tuple(pages), whole_page=whole_page)
        self.coverage = material.coverage
        self._read_question(material)
        self.found.held.clear()
        sections, passages = await self._with_alone(alone, material.sections)
        return passages, self._finished(call_id, queries[0], passages, sections)

    async def _with_alone(self, alone: str, sections: Sequence[Section]) -> tuple[Sequence[Section], list[Passage]]:
        """Return the sections, and behind them those that only the question alone finds, and all as passages."""
        self.alone = None
        if not alone:
            return sections, self._numbered(sections)
        own = await self._material((alone,), self.first_tokens)
        known = {_key(section) for section in sections}
        every = [*sections, *(section for section in own.sections if _key(section) not in known)]
        passages = self._numbered(every)
        by_place = {_key(section): passage for section, passage in zip(every, passages, strict=True)}
        scored = [replace(by_place[_key(section)], score=section.score) for section in own.sections]
        self.alone = scored, own.words
        return every, passages

    async def recall(self, progress: ReplyProgress, *, whole_page: str = "", alone: str = "") -> list[Passage]:
        """Return the passages that are on record, under their numbers, each with the text that the site has now.

        The search is made once more, for it gives the first prompt as it was; what it does not find, since the model
        found it or the documentation has changed, is read where it is by now. One that is gone keeps its number and
        its address.
        """
        for source in progress.sources:
            self.found.sources[_key(source)] = source
            self._address(source.number, source.url)
        self._calls = progress.searches
        queries = (progress.query, *progress.planned)
        material = await self._material(queries, self.first_tokens, pages=progress.expected, whole_page=whole_page)
        self._read_question(material)
        every, found = await self._with_alone(alone, material.sections)
        pairs = [each for each in zip(every, found, strict=True) if _key(each[0]) in self.found.sources]
        again, passages = [section for section, _ in pairs], [passage for _, passage in pairs]
        places = {_key(section) for section in again}
        missing = [source for source in progress.sources if _key(source) not in places]
        question = self._question
        sections = await self._index.sections_at(question.domain, missing, readers=question.filter.groups)
        for source, section in zip(missing, sections, strict=True):
            if section is None:
                continue
            passage = self._passage(source.number, replace(section, score=1.0))  # the model looked for it
            self._unread.append(section.text)
            cost = passage_cost(passage)
            if cost <= self.left_tokens:
                self.found.held[section.path, section.start_line] = passage
                passages.append(passage)
                self.first_tokens += cost
                self.left_tokens -= cost
        return passages

    def _read_question(self, material: Material) -> None:
        self.words, self.lacking = material.words, material.lacking
        self.is_far, self._least_score = material.is_far, material.least_score

    def for_model(self) -> tuple[list[Passage], int]:
        """Return the passages that help a language model, which pays for each, and the tokens that they may have."""
        passages = [one for one in self.found.first if self.helps(one)]
        return passages, min(self.first_tokens, FAR_TOKENS) if self.is_far else self.first_tokens

    def helps(self, passage: Passage) -> bool:
        """Return whether a passage comes near to the best one."""
        return passage.score >= self._least_score

    async def search_more(self, call_id: str, query: str) -> Added:
        """Search for the model."""
        budget = min(self.left_tokens, self.first_tokens // SEARCH_PART)
        material = await self._material((query,), budget, known=frozenset(self.found.held))
        return self._added(call_id, query, material.sections)

    def read(self, call_id: str, page: Page, sections: Sequence[Section]) -> Added:
        """Add sections of a page that the model reads."""
        self._commit = page.commit or self._commit
        return self._added(call_id, page.url, sections)

    @property
    def read_tokens(self) -> int:
        """The budget of one reading of a page."""
        return min(self.left_tokens, self.first_tokens // READ_PART)

    def holds(self, section: Section) -> bool:
        """Return whether the prompt has the section, whole."""
        held = self.found.held.get((section.path, section.start_line))
        return held is not None and held.text == section.text

    async def _material(
        self, queries: Sequence[str], budget_tokens: int, *, pages: tuple[str, ...] = (), whole_page: str = "",
        known: frozenset[tuple[str, int]] = frozenset(),
    ) -> Material:  # fmt: skip
        question = self._question
        self.addresses.know_pages(await self._index.links(question.domain), question.filter.groups)
        material = await self._index.find_material(
            question.domain,
            MaterialRequest(
                tuple(queries), budget_tokens, pages, question.page_size, question.filter, self.open, whole_page, known
            ),
        )
        self._commit, self.instructions, self.site_title = material.commit, material.instructions, material.site_title
        self._language = known_language(material.language)
        if material.instructions:
            self._unread.append(material.instructions)
        return material

    def read_addresses(self) -> dict[str, None]:
        """Return the addresses in the texts found since this was last done, for ``know_addresses``. For a thread, the
        one that makes the prompt: a passage may consist of addresses, and no answer links to one before its prompt.
        """
        return addresses_in(self._unread)

    def know_addresses(self, addresses: dict[str, None]) -> None:
        """Let the answer link to what ``read_addresses`` has returned."""
        self.addresses.add_all(addresses)
        self._unread.clear()

    def _address(self, number: int, url: str) -> None:
        self.found.urls[number] = url
        self.addresses.add_url(url)

    def _added(self, call_id: str, query: str, sections: Sequence[Section]) -> Added:
        known = [one for one in sections if self.holds(one)]
        fresh = [one for one in sections if not self.holds(one)]
        had = tuple(self.found.held[one.path, one.start_line] for one in known)
        passages = self._numbered(fresh)
        self.left_tokens -= sum(passage_cost(passage) for passage in passages)
        finished = self._finished(call_id, query, [*passages, *had], [*fresh, *known])
        return Added(tuple(passages), had, finished)

    def _numbered(self, sections: Sequence[Section]) -> list[Passage]:
        """Return the sections as passages: one that is known keeps its number, the best of the others gets the next."""
        sources, urls, held = self.found.sources, self.found.urls, self.found.held
        numbers: dict[tuple[str, int, str], int] = {}
        for section in sorted(sections, key=lambda section: -section.score):
            key = _key(section)
            source = sources.get(key)
            numbers[key] = number = len(urls) + 1 if source is None else source.number
            self._address(number, section.url)
        passages = [self._passage(numbers[_key(section)], section) for section in sections]
        held.update(((one.path, one.start_line), passage) for one, passage in zip(sections, passages, strict=True))
        self._unread += [section.text for section in sections]
        return passages

    def _finished(
        self, call_id: str, query: str, passages: Sequence[Passage], sections: Sequence[Section]
    ) -> SearchFinished:
        """Return what clients and the record get: every new source, and one hit for each of the best pages."""
        new: list[Source] = []
        hits: dict[str, SearchHit] = {}
        sources, most_hits = self.found.sources, self._question.page_size
        for passage, section in sorted(zip(passages, sections, strict=True), key=lambda pair: pair[0].number):
            if (key := _key(section)) not in sources:
                source = Source(
                    passage.number,
                    intern(section.path),
                    intern(section.url),
                    intern(section.title),
                    intern(section.heading),
                    section.start_line,
                    section.end_line,
                    intern(self._commit),
                )  # fmt: skip  (kept until the reply's end: of each text there is one for all replies)
                sources[key] = source
                new.append(source)
            if len(hits) < most_hits and section.path not in hits:
                hits[section.path] = SearchHit(
                    passage.number, section.path, section.url, section.title, section.heading,
                    clip(section.text, MAX_HIT_CHARACTERS), section.score,
                )  # fmt: skip
        return SearchFinished(call_id, query, tuple(hits.values()), tuple(new))

    def _passage(self, number: int, section: Section) -> Passage:
        heading = " › ".join(section.heading_path) or section.heading  # noqa: RUF001
        start = section.start_line + (HEADING_LINES if section.heading else 0)
        self.found.give(GivenPassage(number, section.text, start, f"{section.title} {heading}", section.end_line))
        other = section.language if self._language and section.language != self._language else ""
        return Passage(number, section.title, heading, section.url, section.text, section.score, other)


def _key(place: Section | Source) -> tuple[str, int, str]:
    return place.path, place.start_line, place.heading
