"""From a question to cited text.

The documentation is searched before any model is asked, so a reader sees the search step and its sources at once. The
model then answers from the numbered passages, and may search and read pages itself, a bounded number of times. Its
text goes out as it comes, with citations turned into links (``citations``), and made safe to show (``markup``).

An answer counts as given (``resolution``) when it cites at least one passage and the model did not mark it as missing
from the documentation (``citations``). Both are read from what was sent, not from what the model claims about itself. A
greeting needs no passage.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import islice

from msgspec import Struct

from service.assistant.context import (
    ending_in_place,
    fitting,
    last_messages,
    mark_for,
    messages_for,
    passage_cost,
    passages_room,
)
from service.assistant.failures import (
    STANDS_IN,
    ModelFailed,
    as_readers_learn,
    empty_reply,
    filter_notice,
    filtered_failure,
    is_filtered,
    out_of_time,
)
from service.assistant.finding.finder import Finder
from service.assistant.finding.first_search import FirstSearch
from service.assistant.finding.model_tools import READ_PAGE, SEARCH, Toolbox, ToolResult, told, tools
from service.assistant.finding.planning import Planner
from service.assistant.finding.query import Queries, is_about_this_page, is_small_talk, queries_for
from service.assistant.notes import continue_request, cut_off_note, out_of_time_note, stand_in_note
from service.assistant.question import DEFAULT_SETTINGS, AnswerSettings, Question, reader_language
from service.assistant.sentence_checks.live import LiveChecks
from service.assistant.sentence_checks.withheld import CodeWithholder
from service.assistant.showing.answer_text import AnswerText
from service.assistant.transcript import Transcript
from service.domain.errors import ServiceError, Unavailable
from service.domain.model import ReplyMemory, ToolCall, Usage
from service.domain.threads.recorded_reply import FinishReason
from service.domain.threads.replies import (
    INTERRUPTED,
    AnswerEvent,
    CallEnded,
    LiveEvent,
    ModelFailure,
    ReplyBroken,
    ReplyDone,
    ReplyWaiting,
)
from service.markup import suggestions
from service.markup.suggestions import Suggestion, page_of
from service.ports.context_budget import ContextBudget, context_budget, reply_within
from service.ports.model import (
    MODEL_REPLY_BROKEN,
    MODEL_TAKES_NO_TOOLS,
    AssistantMessage,
    Continuation,
    Grounding,
    Model,
    ModelChunk,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    ModelWaiting,
    Passage,
    open_reply,
    with_unique_ids,
)
from service.ports.search_index import SearchIndex
from service.retrieval.material.sides import sides_of

MAX_HALVINGS = 5
"""Limit for the halvings of a prompt that its provider finds too long."""
MAX_PIECE = 1_000
"""Characters of a model's text that are read at once; a provider may send all of it in one piece."""
NO_ANSWER = "I could not find an answer to this in the documentation."
"""When a model ends without a word."""
MAX_SECTIONS = 5
UNANSWERED = "[0]"
"""The mark of an answer that the documentation does not have (``citations``)."""
NO_END = ModelEnd("stop", (), Usage(), "")


async def answer(
    question: Question,
    *,
    index: SearchIndex,
    model: Model,
    settings: AnswerSettings = DEFAULT_SETTINGS,
    planner: Planner | None = None,
    stand_in: Model | None = None,
    live: Callable[[LiveEvent], None] | None = None,
    seats: asyncio.Semaphore | None = None,
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield what follows ``ReplyOpened``; the last event is ``ReplyDone``, or ``ReplyBroken`` for a ``ServiceError``.

    Of a failure of the model readers learn no more than ``failures`` has; a ``ModelFailure`` before it has the rest. An
    empty reply of the model is asked for once more. ``planner``: None where no search is planned. ``stand_in``: the
    model that quotes passages where the other one has failed; None: the reply breaks then. ``live`` gets most of the
    text, and the verdicts on it, in the call that reads it from the provider; these are not yielded then.
    ``seats``: of replies whose sentences are judged at once, in a process that gives many; the others wait.
    Closing the generator ends the model's call. Anything but a ``ServiceError`` is a bug and is raised.
    """
    try:
        answering = _Answering(question, index, model, settings, planner, stand_in, seats)
        answering.live = live
        async with aclosing(answering.run()) as events, aclosing(answering.checks.watch(events)) as checked:
            async for event in checked:
                yield event
    except ModelFailed as failed:
        yield ModelFailure(model.name, failed.error.code, str(failed), is_final=True)
        yield ReplyBroken("interrupted", INTERRUPTED) if question.progress.text else as_readers_learn(failed.error)
    except ServiceError as error:
        goes_on = bool(question.progress.text)
        yield ReplyBroken("interrupted", INTERRUPTED) if goes_on else ReplyBroken(error.code, str(error))


class _Answering:
    def __init__(
        self,
        question: Question,
        index: SearchIndex,
        model: Model,
        settings: AnswerSettings,
        planner: Planner | None,
        stand_in: Model | None,
        seats: asyncio.Semaphore | None,
    ) -> None:
        self._question = question
        self._model = model
        self._planner = planner
        self._stand_in = stand_in
        self._failure = ""
        """The code of what readers learn of the model, once it has failed and passages stand in."""
        self._settings = settings
        self._mark = mark_for(question.reply_id)
        self.live: Callable[[LiveEvent], None] | None = None
        self._finder = Finder(question, index, settings)
        self._tools = Toolbox(self._finder, settings)
        addresses = self._finder.addresses
        self._written = AnswerText(
            self._finder.found.url_of, addresses, addresses.resolve, (SEARCH, READ_PAGE), self._mark
        )
        self._budget = ContextBudget()
        self._asked = ""
        """As ``Queries.asked``."""
        self._alone = ""
        """As ``Queries.alone``."""
        self._takes_tools = True
        self._until = asyncio.get_running_loop().time() + 60 * settings.max_minutes
        self._is_late = False
        """Whether the model was still writing when the answer's time was used up."""
        self._lost: list[Usage] = []
        """Usage of the call's replies that were paid and could not be used."""
        self._steps: list[_Step] = []
        self._calls: tuple[ToolCall, ...] = ()
        self._memory: ReplyMemory | None = None
        finder, said = self._finder, [question.text, *(turn.question for turn in question.earlier)]
        said += [item.value for item in question.context]
        self.checks = LiveChecks(said, finder.found, seats=seats, begun=question.progress.text)
        withholder = (
            CodeWithholder(said, finder.found.given, question.text) if settings.withhold_unsupported_code else None
        )
        self._transcript = Transcript(self._written, withholder)

    async def run(self) -> AsyncGenerator[AnswerEvent, None]:
        question = self._question
        is_about_page = question.current_path and is_about_this_page(question.text)
        page = await self._finder.page(self._finder.open) if is_about_page else None
        title, path = (page.title, page.path) if page is not None else ("", "")
        del page  # the whole of it
        queries = queries_for(question.text, earlier=question.earlier, context=question.context, page_title=title)
        self._asked, self._alone = queries.asked, queries.alone
        async with aclosing(self._search(queries, whole_page=path)) as events:
            async for event in events:
                yield event
        async with aclosing(self._answered()) as events:
            async for event in events:
                yield event
        finish = "error" if self._failure else self._transcript.finish or "stop"
        if finish == "content_filter":
            yield filtered_failure(self._transcript.model)
        if (closing := self._transcript.close(await self._closing(finish))) is not None:
            yield closing
        yield self._done(finish)

    async def _answered(self) -> AsyncGenerator[AnswerEvent, None]:
        """Have the model write, or quote passages where it fails."""
        failure = next((one.code for one in STANDS_IN if self._note(one.code) in self._question.progress.text), "")
        try:
            if not failure:
                # Not before: a provider's library may have to be imported for it, and the reader has something to look
                # at now.
                try:
                    window_tokens = await self._model.window_tokens()
                except ServiceError as error:
                    raise ModelFailed(error) from None
                self._budget = context_budget(window_tokens, self._settings.max_output_tokens)
                async with aclosing(self._write()) as events:
                    async for event in events:
                        yield event
                return
        except ModelFailed as failed:
            learned = as_readers_learn(failed.error)
            stands_in = self._stand_in is not None and self._stand_in.name != self._model.name
            if not stands_in or learned not in STANDS_IN or not self._finder.found.first:
                raise
            yield ModelFailure(self._model.name, failed.error.code, str(failed), is_final=True)
            failure = learned.code
            for event in await self._transcript.break_off():
                yield event
        async with aclosing(self._quote(failure)) as quoted:
            async for event in quoted:
                yield event

    def _note(self, failure: str) -> str:
        return stand_in_note(failure, self._question.text)

    async def _quote(self, failure: str) -> AsyncGenerator[AnswerEvent, None]:
        """Give the passages that the stand-in quotes; where it finds none that answers, the sections that were found.

        All of it is made at once, so that a reply that goes on gives the rest of what another process has begun.
        """
        assert self._stand_in is not None
        transcript, self._failure = self._transcript, failure
        quotes, end = "", NO_END
        request = ModelRequest((), grounding=self._grounding())
        async with open_reply(self._stand_in, request) as chunks:
            async for chunk in chunks:
                match chunk:
                    case ModelText(text=text):
                        quotes += text
                    case ModelEnd():
                        end = chunk
                    case _:
                        pass
        text = f"{self._note(failure)}\n\n{self._sections() if UNANSWERED in quotes and not end.unsure else quotes}"
        begun = transcript.begun
        before, mark, _ = begun.partition(self._note(failure))
        if mark:
            text = text.removeprefix(begun[len(before) :])
        elif transcript.text:
            text = f"\n\n{text}"
        transcript.begun = ""
        transcript.begin_call()
        for at in range(0, len(text), MAX_PIECE):
            for event in await transcript.feed(text[at : at + MAX_PIECE]):
                yield event
        for event in await transcript.end_call(end, may_call=False):
            yield event

    def _sections(self) -> str:
        """Return the sections that the search found, best first."""
        lines = []
        for source in self._finder.sources[:MAX_SECTIONS]:
            names = [source.title, *([source.heading] if source.heading not in ("", source.title) else [])]
            lines.append(f"- {' › '.join(names)} [{source.number}]")  # noqa: RUF001  (as sources are shown)
        return "\n".join(lines)

    async def _search(self, queries: Queries, *, whole_page: str) -> AsyncGenerator[AnswerEvent, None]:
        """Find the passages of the first prompt; for a reply that goes on, those on record."""
        progress = self._question.progress
        if progress.searches:
            self._finder.found.first = await self._finder.recall(progress, whole_page=whole_page, alone=queries.alone)
            self._finder.know_addresses(await asyncio.to_thread(self._finder.read_addresses))
            await asyncio.to_thread(self._transcript.take_up, progress)
            self._tools.charge(progress.searches - (2 if progress.planned_by else 1))
            return
        first = FirstSearch(self._question, self._finder, self._planner, mark=self._mark)
        async with aclosing(first.run(queries, whole_page=whole_page)) as events:
            async for event in events:
                yield event
        self._finder.found.first = first.passages
        self._transcript.usage += first.usage

    async def _write(self) -> AsyncGenerator[AnswerEvent, None]:
        """Call the model until it has written its answer, and use the tools that it calls."""
        transcript = self._transcript
        rounds_left = self._settings.max_searches + self._settings.max_reads + 2
        while transcript.finish is None and (rounds_left > 0 or transcript.is_cut):
            rounds_left -= 0 if transcript.is_cut else 1
            may_call = rounds_left > 0 and self._may_call
            async with aclosing(self._call(may_call=may_call)) as events:
                async for event in events:
                    yield event
            results: list[ToolResult] = []
            for call in self._calls:
                async with aclosing(self._tools.use(call)) as steps:
                    async for step in steps:
                        if isinstance(step, ToolResult):
                            results.append(step)
                        else:
                            yield step
            if results:
                said = AssistantMessage(transcript.said, self._calls, self._memory)
                self._steps.append(_Step(said, tuple(results)))

    @property
    def _may_call(self) -> bool:
        return (
            self._takes_tools
            and not self._transcript.has_written_call
            and (not self._tools.is_used_up or self._ends_in_place)
        )

    @property
    def _ends_in_place(self) -> bool:
        """Return whether the model learns from the last result that it has no calls left. The messages before it are
        those of the call before, which its provider need not read again.
        """
        return self._tools.is_used_up and not self._tools.has_refused and bool(self._steps)

    async def _call(self, *, may_call: bool) -> AsyncGenerator[AnswerEvent, None]:
        """Call the model once; the tools that it calls are in ``_calls`` then."""
        transcript, end, self._calls = self._transcript, NO_END, ()
        transcript.begin_call()
        try:
            async with aclosing(self._chunks(may_call=may_call)) as chunks:
                while (chunk := await self._next(chunks)) is not None:
                    match chunk:
                        case ModelText(text=text):
                            for at in range(0, len(text), MAX_PIECE):
                                for event in await transcript.feed(text[at : at + MAX_PIECE]):
                                    yield event
                                await asyncio.sleep(0)
                        case ModelWaiting(seconds=seconds):
                            yield ReplyWaiting(seconds)
                        case ModelEnd():
                            end = chunk
        except ModelFailed as failed:
            for event in self._take_lost():
                yield event
            if not (transcript.is_cut or (self._is_late and transcript.text)):
                raise
            yield ModelFailure(self._model.name, failed.error.code, str(failed), is_final=self._is_late)
            for event in await transcript.give_up():
                yield event
            return
        for event in self._take_lost():
            yield event
        for event in await transcript.end_call(end, is_filtered=is_filtered(end), may_call=may_call):
            yield event
        if transcript.is_empty:
            raise empty_reply(has_written_call=transcript.has_written_call)
        taken = (call.id for step in self._steps for call in step.said.tool_calls)
        self._calls = with_unique_ids(end.tool_calls, taken) if may_call else ()
        self._memory = end.memory

    async def _next(self, chunks: AsyncGenerator[ModelChunk, None]) -> ModelChunk | None:
        """Return the next chunk; None at the end. Raise ModelFailed once the answer's time is used up."""
        try:
            async with asyncio.timeout_at(self._until) as clock:
                return await anext(chunks, None)
        except TimeoutError:
            if not clock.expired():
                raise
            self._is_late = True
            raise out_of_time(self._settings.max_minutes) from None

    def _take_lost(self) -> Sequence[CallEnded]:
        """Return the calls whose replies were lost, and count them."""
        lost, self._lost = self._lost, []
        return [self._transcript.lose_call(usage, self._model.name) for usage in lost]

    def _take(self, text: str) -> bool:
        """Give readers what becomes of a text at once; a long one, or one that may be withheld, goes the other way."""
        if self.live is None or len(text) > MAX_PIECE or not self._transcript.shows_all_code:
            return False
        for event in self._transcript.feed_now(text):
            self.live(event)
            if (grown := self.checks.note(event)) is not None:
                self.live(grown)
        return True

    def _done(self, finish: FinishReason) -> ReplyDone:
        written, is_short = self._written, is_small_talk(self._question.text)
        answered = not written.says_unanswered and (bool(written.cited) or is_short)
        is_marked = written.cited or written.says_unanswered or is_short or finish == "content_filter"
        return ReplyDone(
            self._transcript.text,
            tuple(written.cited),
            "answered" if answered else "unanswered",
            self._transcript.model or self._model.name,
            self._transcript.usage,
            finish,
            uncited=not is_marked and not self._failure,
            unsure=self._transcript.is_unsure and not answered and bool(written.cited) and finish == "stop",
            failure=self._failure,
        )

    async def _chunks(self, *, may_call: bool) -> AsyncGenerator[ModelChunk, None]:
        """Yield the model's next reply; a prompt that its provider finds too long is sent again, with less of all."""

        async def reply(budget: ContextBudget) -> AsyncGenerator[ModelChunk, None]:
            nonlocal may_call
            self._budget = budget
            for is_last in (False, True):
                has_begun = False
                try:
                    # Without a name here: the prompt is freed once the model has it.
                    may_call = may_call and self._takes_tools
                    async with open_reply(self._model, await self._request(may_call=may_call)) as chunks:
                        async for chunk in chunks:
                            has_begun |= not isinstance(chunk, ModelWaiting)
                            yield chunk
                    return
                except ServiceError as error:  # asked for once more, without tools where the model takes none
                    if is_last or has_begun or error.code not in (MODEL_REPLY_BROKEN, MODEL_TAKES_NO_TOOLS):
                        raise
                    self._takes_tools = self._takes_tools and error.code != MODEL_TAKES_NO_TOOLS

        has_ended = False
        try:
            async with aclosing(reply_within(self._budget, reply, halvings=MAX_HALVINGS)) as chunks:
                async for chunk, _ in chunks:
                    has_ended = isinstance(chunk, ModelEnd)
                    yield chunk
        except ServiceError as error:
            raise ModelFailed(error) from None
        if not has_ended:
            raise ModelFailed(Unavailable("The model's reply ended before its end.", code="model_cut_off"))

    async def _request(self, *, may_call: bool) -> ModelRequest:
        messages, addresses = await asyncio.to_thread(self._prompt, may_call=may_call)
        self._finder.know_addresses(addresses)
        begun = self._transcript.begun
        going_on = Continuation(begun, continue_request()) if begun else None
        return ModelRequest(
            messages,
            tools() if may_call else (),
            self._budget.reply_tokens,
            self._grounding(),
            going_on,
            reports_waits=True,
            on_usage=self._lost.append,
            on_text=self._take,
        )

    def _grounding(self) -> Grounding:
        finder, asked, language = self._finder, self._asked, reader_language(self._question)
        grounding = Grounding(asked, tuple(finder.found.first), finder.words, sides_of(asked), language)
        if finder.alone is None:
            return grounding
        passages, words = finder.alone
        sides = sides_of(self._alone)
        return Grounding(self._alone, tuple(passages), words, sides, language, in_conversation=grounding)

    def _prompt(self, *, may_call: bool) -> tuple[tuple[ModelMessage, ...], dict[str, None]]:
        """Return the messages for the model, and the addresses in what was found for them."""
        return self._messages() if may_call else self._last_messages(), self._finder.read_addresses()

    def _messages(self) -> tuple[ModelMessage, ...]:
        """Return the conversation so far for the model: as much of it as fits the budget."""
        first, added = self._fitting()
        messages: list[ModelMessage] = [*self._first_messages(first)]
        rest = iter(added)
        for step in self._steps:
            messages.append(step.said)
            for result in step.results:
                shown = [passage for passage in islice(rest, len(result.passages)) if passage is not None]
                messages.append(told(result, self._mark, shown))
        return ending_in_place(messages, self._said) if self._ends_in_place else tuple(messages)

    @property
    def _said(self) -> str:
        """Return what the model wrote beside its calls."""
        return "".join(step.said.text for step in self._steps)

    def _last_messages(self) -> tuple[ModelMessage, ...]:
        """Return the conversation for a last call without tools: all passages are in one message, for some providers
        refuse a history of calls where no tool is offered. For a model that calls when it has no calls left.
        """
        first, added = self._fitting()
        messages = self._first_messages([*first, *(passage for passage in added if passage is not None)])
        return last_messages(messages, self._said) if self._steps else messages

    def _first_messages(self, passages: Sequence[Passage]) -> tuple[ModelMessage, ...]:
        question = self._question
        return messages_for(
            question.text,
            passages,
            earlier=question.earlier,
            context=question.context,
            current_path=question.current_path,
            mark=self._mark,
            instructions=self._finder.instructions,
            budget=self._budget,
            site=(self._finder.site_title, question.domain),
            lacking=self._finder.lacking,
            suggestions=self._settings.suggestions,
        )

    def _fitting(self) -> tuple[list[Passage], list[Passage | None]]:
        """Return the passages of the first prompt that fit the budget, and in order those that the model's calls added,
        None for each that does not fit. The model asked for the latter, so they go first, up to a half.
        """
        added = [passage for step in self._steps for result in step.results for passage in result.passages]
        cost = sum(passage_cost(passage) for passage in added)
        begun = AssistantMessage(self._transcript.begun)
        others = [*self._first_messages(()), *(step.said for step in self._steps), begun]
        room = passages_room(self._budget, self._finder.first_tokens + cost, others)
        kept = fitting(added, cost if cost + self._finder.first_tokens <= room else room // 2)
        left = room - sum(passage_cost(passage) for passage in kept if passage is not None)
        passages, most = self._finder.for_model()
        first = fitting(passages, min(left, most))
        return [passage for passage in first if passage is not None], kept

    async def _closing(self, finish: FinishReason) -> str:
        """Return our own words behind the model's."""
        text = self._transcript.text
        if finish == "content_filter":
            return filter_notice(after_text=bool(text))
        words = "" if text else NO_ANSWER
        if finish == "length":
            note = out_of_time_note if self._is_late else cut_off_note
            words += f"\n\n{note(self._question.text)}"
        return words + await self._suggestions(text + words) if self._settings.suggestions else words

    async def _suggestions(self, text: str) -> str:
        """Return the block of suggestions behind a text: after an answer with sources, or without an answer; not after
        a greeting.
        """
        if not self._written.cited and not self._written.says_unanswered:
            return ""
        own = [
            one
            for one in suggestions.parsed(self._written.suggestions)
            if await self._finder.page(one.path) is not None
        ]
        return suggestions.block(own or self._related(), after=text)

    def _related(self) -> list[Suggestion]:
        """Return the pages that were found and not cited, best first; not the page that is open. None for a question
        that is far from the documentation: what was found is about something else.
        """
        sources = self._finder.sources if not self._finder.is_far else ()
        known = {page_of(source.url) for source in sources if source.number in self._written.cited}
        known.add("/" + page_of(self._finder.open).strip("/"))
        near = {page_of(one.url) for one in self._finder.found.held.values() if self._finder.helps(one)} - known
        return [Suggestion(source.title, page_of(source.url)) for source in sources if page_of(source.url) in near]


class _Step(Struct, frozen=True):
    """The model's text and calls, and their results."""

    said: AssistantMessage
    results: tuple[ToolResult, ...]
