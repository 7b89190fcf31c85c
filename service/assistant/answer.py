"""From a question to cited text.

The documentation is searched before any model is asked, so a reader sees the search step and its sources at once. The
model then answers from the numbered passages, and may search and read pages itself, a bounded number of times. Its
text goes out as it comes, with citations turned into links (``citations``), and made safe to show (``markup``).

An answer counts as given (``resolution``) when it cites at least one passage and the model did not mark it as missing
from the documentation (``citations``). Both are read from what was sent, not from what the model claims about itself. A
greeting needs no passage.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.assistant import suggestions
from service.assistant.addresses import KnownAddresses
from service.assistant.answer_text import AnswerText
from service.assistant.context import (
    MAX_PAGE_CHARACTERS,
    Exchange,
    clip,
    mark_for,
    messages_for,
    passage_limit,
    results_text,
    share,
)
from service.assistant.failures import ModelFailed, as_readers_learn
from service.assistant.query import is_about_this_page, is_small_talk, query_for
from service.assistant.suggestions import Suggestion, page_of
from service.domain.errors import ServiceError, Unavailable
from service.domain.model import ToolCall, Usage, decoded_arguments
from service.domain.search import SearchFilter, Source
from service.domain.threads.replies import (
    AnswerEvent,
    ModelFailure,
    ReplyBroken,
    ReplyDone,
    SearchFinished,
    SearchHit,
    SearchStarted,
    TextDelta,
    Thought,
)
from service.domain.threads.threads import (
    DEFAULT_PAGE_SIZE,
    ContextItem,
)
from service.ports.context_budget import ContextBudget, context_budget, reply_within
from service.ports.model import (
    AssistantMessage,
    Grounding,
    Model,
    ModelChunk,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    Passage,
    Tool,
    ToolMessage,
)
from service.ports.search_index import Page, SearchIndex, Section

MAX_HALVINGS = 3
"""Limit for the halvings of a prompt that its provider finds too long."""
NO_ANSWER = "I could not find an answer to this in the documentation."
"""When a model ends without a word."""

MAX_HIT_CHARACTERS = 2_000
"""Limit for a passage in the result of the search step: clients keep it, and send it back with each message."""

SEARCH = Tool(
    "search",
    "Search this documentation. Returns numbered passages to answer from and to cite.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "A few words, as the documentation would put it."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
READ_PAGE = Tool(
    "read_page",
    "Read a whole page of this documentation. Returns it as one numbered passage.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The page's url, as a passage has it."}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


class Question(Struct, frozen=True):
    """A reader's question, with everything that its answer depends on."""

    domain: str
    reply_id: str
    text: str
    earlier: tuple[Exchange, ...] = ()
    """Oldest first, from the thread's own record."""
    context: tuple[ContextItem, ...] = ()
    current_path: str = ""
    filter: SearchFilter = SearchFilter()
    page_size: int = DEFAULT_PAGE_SIZE


class AnswerSettings(Struct, frozen=True):
    suggestions: bool = True
    max_searches: int = 3
    """By the model itself, besides the first one."""
    max_reads: int = 3
    max_output_tokens: int = 4_096
    """For each call of the model."""


DEFAULT_SETTINGS = AnswerSettings()


async def answer(
    question: Question, *, index: SearchIndex, model: Model, settings: AnswerSettings = DEFAULT_SETTINGS
) -> AsyncGenerator[AnswerEvent, None]:
    """All that follows ``ReplyOpened``; the last event is ``ReplyDone``, or ``ReplyBroken`` for a ``ServiceError``.

    Of a failure of the model readers learn no more than ``failures`` has; a ``ModelFailure`` before it has the rest.
    Closing the generator ends the model's call. Anything but a ``ServiceError`` is a bug and is raised.
    """
    try:
        async with aclosing(_Answering(question, index, model, settings).run()) as events:
            async for event in events:
                yield event
    except ModelFailed as failed:
        yield ModelFailure(model.name, failed.error.code, str(failed))
        yield as_readers_learn(failed.error)
    except ServiceError as error:
        yield ReplyBroken(error.code, str(error))


class _SearchArguments(Struct, frozen=True):
    query: str


class _ReadArguments(Struct, frozen=True):
    path: str


class _Answering:
    def __init__(self, question: Question, index: SearchIndex, model: Model, settings: AnswerSettings) -> None:
        self._question = question
        self._index = index
        self._model = model
        self._settings = settings
        self._mark = mark_for(question.reply_id)
        self._open = _path_in(question.current_path)
        self._found: dict[tuple[str, int, str], Source] = {}
        self._urls: dict[int, str] = {}
        self._commit = ""
        self._addresses = KnownAddresses(question.domain, question.current_path)
        self._written = AnswerText(self._urls.get, self._addresses)
        self._text: list[str] = []
        self._usage = Usage()
        self._calls = 0
        self._instructions = ""
        self._budget = ContextBudget()
        self._steps: list[_Step] = []
        self._searches_left = settings.max_searches
        self._reads_left = settings.max_reads

    async def run(self) -> AsyncGenerator[AnswerEvent, None]:
        question = self._question
        page = None
        if question.current_path and is_about_this_page(question.text):
            page = await self._page(self._open)
        earlier_questions = [turn.question for turn in question.earlier]
        title = page.title if page is not None else ""
        asked = query_for(question.text, earlier_questions=earlier_questions, page_title=title)
        query = query_for(
            question.text, earlier_questions=earlier_questions, context=question.context, page_title=title
        )

        for text in (question.text, *(item.value for item in question.context)):
            self._addresses.add(text)

        call_id = self._next_call()
        yield SearchStarted(call_id, query)
        passages, finished = await self._search(call_id, query, first=page)
        yield finished

        # Not before: a provider's library may have to be imported for it, and the reader has something to look at now.
        try:
            window_tokens = await self._model.window_tokens()
        except ServiceError as error:
            raise ModelFailed(error) from None
        self._budget = context_budget(window_tokens, self._settings.max_output_tokens)
        grounding = Grounding(asked, tuple(passages))
        used = self._model.name
        for _ in range(self._settings.max_searches + self._settings.max_reads + 2):
            said: list[str] = []
            end: ModelEnd | None = None
            async with aclosing(self._chunks(passages, grounding)) as chunks:
                async for chunk in chunks:
                    match chunk:
                        case ModelText(text=text):
                            for event in self._given(self._written.feed(text)):
                                yield event
                            said.append(text)
                        case ModelEnd():
                            end = chunk
            if end is None:
                raise ModelFailed(Unavailable("The model's reply ended before its end.", code="model_cut_off"))
            for event in self._given(self._written.finish()):
                yield event
            self._usage += end.usage
            used = end.model
            if not end.tool_calls:
                break
            results: list[_Result] = []
            for call in end.tool_calls:
                async with aclosing(self._use_tool(call)) as steps:
                    async for step in steps:
                        if isinstance(step, _Result):
                            results.append(step)
                        else:
                            yield step
            self._steps.append(_Step(AssistantMessage("".join(said), end.tool_calls), tuple(results)))

        if not self._text:
            yield TextDelta(self._sent(NO_ANSWER))
        if self._settings.suggestions and (block := await self._suggestions()):
            yield TextDelta(self._sent(block))
        answered = not self._written.says_unanswered and (bool(self._written.cited) or is_small_talk(question.text))
        yield ReplyDone(
            "".join(self._text),
            tuple(self._written.cited),
            "answered" if answered else "unanswered",
            used,
            self._usage,
        )

    async def _chunks(self, passages: Sequence[Passage], grounding: Grounding) -> AsyncGenerator[ModelChunk, None]:
        """The model's next reply; a prompt that its provider finds too long is asked again with less of everything."""

        async def reply(budget: ContextBudget) -> AsyncGenerator[ModelChunk, None]:
            self._budget = budget
            messages = await asyncio.to_thread(self._messages, passages)
            request = ModelRequest(messages, (SEARCH, READ_PAGE), budget.reply_tokens, grounding)
            async with _closing(self._model.reply(request)) as chunks:
                async for chunk in chunks:
                    yield chunk

        try:
            async with aclosing(reply_within(self._budget, reply, halvings=MAX_HALVINGS)) as chunks:
                async for chunk, _ in chunks:
                    yield chunk
        except ServiceError as error:
            raise ModelFailed(error) from None

    def _messages(self, passages: Sequence[Passage]) -> tuple[ModelMessage, ...]:
        """Return the conversation so far for the model: as much of it as fits the budget."""
        question, budget = self._question, self._budget
        limit = passage_limit(len(passages), budget)
        messages: list[ModelMessage] = [
            *messages_for(
                question.text,
                [_clipped(passage, limit) for passage in passages],
                earlier=question.earlier,
                context=question.context,
                current_path=question.current_path,
                mark=self._mark,
                instructions=self._instructions,
                budget=budget,
            )
        ]
        for step in self._steps:
            messages += [step.said, *(self._told(result) for result in step.results)]
        return tuple(messages)

    def _told(self, result: "_Result") -> ToolMessage:
        call = result.call
        if result.refused:
            return ToolMessage(call.id, call.name, result.refused, is_error=True)
        if not result.passages:
            return ToolMessage(call.id, call.name, "Nothing was found.")
        limit = share(self._budget, MAX_PAGE_CHARACTERS, least=800) if call.name == READ_PAGE.name else passage_limit(
            len(result.passages), self._budget
        )  # fmt: skip
        passages = [_clipped(passage, limit) for passage in result.passages]
        return ToolMessage(call.id, call.name, results_text(passages, self._mark))

    def _given(self, shown: str) -> Iterator[AnswerEvent]:
        """Yield the parts of the model's text: its reasoning, which no reader sees, and the text that is shown."""
        if thought := self._written.take_thoughts():
            yield Thought(thought)
        if shown:
            yield TextDelta(self._sent(shown))

    def _sent(self, text: str) -> str:
        if text:
            self._text.append(text)
        return text

    async def _use_tool(self, call: ToolCall) -> AsyncGenerator["AnswerEvent | _Result", None]:
        """Yield the events of the call for the client, and at last the result for the model."""
        try:
            match call.name:
                case SEARCH.name:
                    query = decoded_arguments(call.arguments, _SearchArguments).query
                    if self._searches_left <= 0:
                        yield _refused(call, "No searches are left. Answer now, from what you have.")
                        return
                    self._searches_left -= 1
                    call_id = self._next_call()
                    yield SearchStarted(call_id, query)
                    passages, finished = await self._search(call_id, query)
                case READ_PAGE.name:
                    path = decoded_arguments(call.arguments, _ReadArguments).path
                    if self._reads_left <= 0:
                        yield _refused(call, "No reads are left. Answer now, from what you have.")
                        return
                    self._reads_left -= 1
                    page = await self._page(path)
                    if page is None:
                        yield _refused(call, f"Page not found: {path[:200]!r}. Take the url of a passage, or search.")
                        return
                    call_id = self._next_call()
                    yield SearchStarted(call_id, page.url)
                    passages, finished = self._add(call_id, page.url, [_whole(page)], limit=MAX_PAGE_CHARACTERS)
                case _:
                    yield _refused(call, f"There is no tool {call.name!r}. There are search and read_page.")
                    return
        except msgspec.DecodeError as error:
            yield _refused(call, f"The arguments do not fit: {error}.")
            return
        yield finished
        yield _Result(call, tuple(passages))

    async def _page(self, path: str) -> Page | None:
        """A page to read whole, if it is for this reader. Version and language say what to prefer, not what to hide."""
        question = self._question
        return await self._index.read_page(question.domain, page_of(path), readers=question.filter.groups)

    def _next_call(self) -> str:
        self._calls += 1
        return f"{self._question.reply_id}-{self._calls}"

    async def _search(
        self, call_id: str, query: str, *, first: Page | None = None
    ) -> tuple[list[Passage], SearchFinished]:
        """``first``: a page that goes before what is found."""
        question = self._question
        result = await self._index.search(
            question.domain,
            query,
            limit=question.page_size,
            filter=question.filter,
            current_path=self._open,
        )
        self._commit, self._instructions = result.commit, result.instructions
        self._addresses.add(result.instructions)
        sections = [*([_whole(first)] if first is not None else []), *result.sections]
        return self._add(call_id, query, sections, limit=passage_limit(len(sections)))

    def _add(
        self, call_id: str, query: str, sections: Iterable[Section], *, limit: int
    ) -> tuple[list[Passage], SearchFinished]:
        """Number the sections: one that is known keeps its number. ``limit``: characters for each."""
        passages: list[Passage] = []
        new: list[Source] = []
        hits: list[SearchHit] = []
        for section in sections:
            self._addresses.add(section.text)
            key = (section.path, section.start_line, section.heading)
            source = self._found.get(key)
            if source is None:
                source = Source(
                    len(self._found) + 1, section.path, section.url, section.title, section.heading,
                    section.start_line, section.end_line, self._commit,
                )  # fmt: skip
                self._found[key] = source
                self._urls[source.number] = source.url
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

    async def _suggestions(self) -> str:
        """Return the block of suggestions: after an answer with sources, or without an answer; not after a greeting."""
        if not self._written.cited and not self._written.says_unanswered:
            return ""
        own = [one for one in suggestions.parsed(self._written.suggestions) if await self._page(one.path) is not None]
        return suggestions.block(own or self._related(), after="".join(self._text[-2:]))

    def _related(self) -> list[Suggestion]:
        """Pages that were found and not cited, best first; not the page that is open."""
        sources = self._found.values()
        known = {page_of(source.url) for source in sources if source.number in self._written.cited}
        known.add("/" + page_of(self._open).strip("/"))
        return [Suggestion(source.title, page_of(source.url)) for source in sources if page_of(source.url) not in known]


def _whole(page: Page) -> Section:
    lines = page.content.count("\n") + 1
    return Section(page.path, page.url, page.title, "", (), page.content, 1, lines, 1.0)


def _path_in(place: str) -> str:
    """Return the path of an address or a path; clients send either."""
    return urlsplit(place).path if place.startswith(("http://", "https://")) else place


class _Result(Struct, frozen=True):
    """The result of a tool call: what it found, or why it was refused."""

    call: ToolCall
    passages: tuple[Passage, ...] = ()
    refused: str = ""


class _Step(Struct, frozen=True):
    """The model's text and calls, and their results."""

    said: AssistantMessage
    results: tuple[_Result, ...]


def _refused(call: ToolCall, reason: str) -> _Result:
    return _Result(call, refused=reason)


def _clipped(passage: Passage, limit: int) -> Passage:
    return passage if len(passage.text) <= limit else replace(passage, text=clip(passage.text, limit))


@asynccontextmanager
async def _closing(chunks: AsyncIterator[ModelChunk]) -> AsyncIterator[AsyncIterator[ModelChunk]]:
    """Leaving it ends the call at the provider (``Model.reply``)."""
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
