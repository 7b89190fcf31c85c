"""Tools that the model has while it answers: it searches and reads pages itself, a bounded number of times."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.assistant.context import passage_cost, results_text
from service.assistant.finding.finder import Added, Finder
from service.assistant.prompts import PROMPTS
from service.assistant.question import AnswerSettings
from service.domain.model import ToolCall, decoded_arguments
from service.domain.threads.replies import SearchFinished, SearchStarted
from service.ports.model import Passage, Tool, ToolMessage
from service.ports.search_index import Page, Section
from service.retrieval.material.cutting import ELLIPSIS, beginning

MIN_LEFT_TOKENS = 200
"""With less of the budget left, a call is refused."""

SEARCH, READ_PAGE = "search", "read_page"


@cache
def tools() -> tuple[Tool, ...]:
    """Return the tools as a model sees them; ``prompts/tools.md`` describes them."""
    text, number = {"type": "string"}, {"type": "integer", "minimum": 0}
    search = {"type": "object", "properties": {"query": text}, "required": ["query"], "additionalProperties": False}
    read = {
        "type": "object",
        "properties": {"path": text, "offset": number},
        "required": ["path"],
        "additionalProperties": False,
    }
    return PROMPTS.tool(SEARCH, search), PROMPTS.tool(READ_PAGE, read)


class ToolResult(Struct, frozen=True):
    """The result of a tool call: what it found, or why it was refused."""

    call: ToolCall
    passages: tuple[Passage, ...] = ()
    """New ones."""
    known: tuple[Passage, ...] = ()
    """Those that the model has already."""
    note: str = ""
    """What is left of a page."""
    refused: str = ""


class _SearchArguments(Struct, frozen=True):
    query: str


class _ReadArguments(Struct, frozen=True):
    path: str
    offset: int = 0


class Toolbox:
    """The tools of one answer."""

    def __init__(self, finder: Finder, settings: AnswerSettings) -> None:
        self._finder = finder
        self._searches_left = settings.max_searches
        self._reads_left = settings.max_reads
        self.is_used_up = settings.max_searches <= 0 and settings.max_reads <= 0
        """No further call can find anything: a call was refused for that, or the last one was made."""
        self.has_refused = False
        """A call was refused for that: the model goes on calling."""

    def charge(self, used: int) -> None:
        """Count the calls of the model that another process has carried out."""
        self._searches_left, self._reads_left = max(0, self._searches_left - used), max(0, self._reads_left - used)
        self.is_used_up |= self._searches_left <= 0 and self._reads_left <= 0

    async def use(self, call: ToolCall) -> AsyncGenerator[SearchStarted | SearchFinished | ToolResult, None]:
        """Yield the events of the call for the client, and at last the result for the model."""
        note = ""
        try:
            match call.name:
                case "search":
                    query = decoded_arguments(call.arguments, _SearchArguments).query
                    if self._searches_left <= 0:
                        yield self._used_up(call, "No searches are left. Answer now, from what you have.")
                        return
                    if self._is_full():
                        yield self._used_up(call, "No more passages fit. Answer now, from what you have.")
                        return
                    self._searches_left -= 1
                    call_id = self._finder.next_call()
                    yield SearchStarted(call_id, query)
                    added = await self._finder.search_more(call_id, query)
                case "read_page":
                    asked = decoded_arguments(call.arguments, _ReadArguments)
                    if self._reads_left <= 0:
                        yield self._used_up(call, "No reads are left. Answer now, from what you have.")
                        return
                    if self._is_full():
                        yield self._used_up(call, "No more passages fit. Answer now, from what you have.")
                        return
                    page = await self._finder.page(asked.path)
                    if page is None:
                        yield _refused(
                            call, f"Page not found: {asked.path[:200]!r}. Use the url of a passage, or search."
                        )
                        return
                    size = _size(page)
                    if not 0 <= asked.offset < max(size, 1):
                        yield _refused(call, f"Offset {asked.offset} is outside of the page: it has {size} characters.")
                        return
                    self._reads_left -= 1
                    call_id = self._finder.next_call()
                    yield SearchStarted(call_id, page.url)
                    added, note = await self._read(call_id, page, asked.offset)
                case _:
                    yield _refused(call, f"There is no tool {call.name!r}. There are search and read_page.")
                    return
        except msgspec.DecodeError as error:
            yield _refused(call, f"The arguments do not fit: {error}.")
            return
        self.is_used_up = self._is_full() or (self._searches_left <= 0 and self._reads_left <= 0)
        yield added.finished
        yield ToolResult(call, added.passages, added.known, note)

    async def _read(self, call_id: str, page: Page, offset: int) -> tuple[Added, str]:
        sections, end = await asyncio.to_thread(sections_from, page, offset, self._finder.read_tokens, self._finder)
        added = self._finder.read(call_id, page, sections)
        size = _size(page)
        if end >= size:
            return added, f"This is the end of {page.url}."
        return added, f"{size - end:,} of {size:,} characters of {page.url} are left: read on with offset {end}."

    def _is_full(self) -> bool:
        return self._finder.left_tokens < MIN_LEFT_TOKENS

    def _used_up(self, call: ToolCall, reason: str) -> ToolResult:
        self.is_used_up = self.has_refused = True
        return _refused(call, reason)


def sections_from(page: Page, offset: int, budget_tokens: int, finder: Finder) -> tuple[list[Section], int]:
    """Return the sections of a page from an offset that fit the budget, and the offset behind them.

    A section that the model has already costs nothing. One that is larger than the budget is cut between two blocks;
    code that is larger is left out, as its ellipsis says.
    """
    found: list[Section] = []
    at, left = 0, budget_tokens
    for section in page.sections:
        end = at + len(section.text)
        if end <= offset and section.text:
            at = end
            continue
        if at < offset:
            section = replace(section, text=section.text[offset - at :].lstrip("\n"))
        cost = 0 if finder.holds(section) else passage_cost(section)
        if cost > left:
            if not found:
                text = beginning(section.text, left)
                shown = text.removesuffix(ELLIPSIS).rstrip("\n")
                found.append(replace(section, text=text))
                end = end - len(section.text) + len(shown) if shown else end
                return found, end
            return found, max(at, offset)
        left -= cost
        found.append(section)
        at = end
    return found, _size(page)


def told(result: ToolResult, mark: str, shown: Sequence[Passage]) -> ToolMessage:
    """Return the message that the model gets; ``mark`` as in ``context``; ``shown``: the passages that fit."""
    call = result.call
    if result.refused:
        return ToolMessage(call.id, call.name, result.refused, is_error=True)
    had = ", ".join(f"[{passage.number}]" for passage in result.known)  # no titles: those are material
    note = "\n".join(line for line in (f"You have these already: {had}." if had else "", result.note) if line)
    if not shown:
        return ToolMessage(call.id, call.name, note or "Nothing was found.")
    return ToolMessage(call.id, call.name, results_text(shown, mark, note))


def _size(page: Page) -> int:
    return sum(len(section.text) for section in page.sections)


def _refused(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult(call, refused=reason)
