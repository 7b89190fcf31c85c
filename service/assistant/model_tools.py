"""Tools that the model has while it answers: it searches and reads pages itself, a bounded number of times."""

from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from service.assistant.context import MAX_PAGE_CHARACTERS, clip, passage_limit, results_text, share
from service.assistant.finding import Finder, whole
from service.assistant.question import AnswerSettings
from service.domain.model import ToolCall, decoded_arguments
from service.domain.threads.replies import SearchFinished, SearchStarted
from service.ports.context_budget import ContextBudget
from service.ports.model import Passage, Tool, ToolMessage

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


class ToolResult(Struct, frozen=True):
    """The result of a tool call: what it found, or why it was refused."""

    call: ToolCall
    passages: tuple[Passage, ...] = ()
    refused: str = ""


class _SearchArguments(Struct, frozen=True):
    query: str


class _ReadArguments(Struct, frozen=True):
    path: str


class Toolbox:
    """The tools of one answer."""

    def __init__(self, finder: Finder, settings: AnswerSettings) -> None:
        self._finder = finder
        self._searches_left = settings.max_searches
        self._reads_left = settings.max_reads

    async def use(self, call: ToolCall) -> AsyncGenerator[SearchStarted | SearchFinished | ToolResult, None]:
        """Yield the events of the call for the client, and at last the result for the model."""
        try:
            match call.name:
                case SEARCH.name:
                    query = decoded_arguments(call.arguments, _SearchArguments).query
                    if self._searches_left <= 0:
                        yield _refused(call, "No searches are left. Answer now, from what you have.")
                        return
                    self._searches_left -= 1
                    call_id = self._finder.next_call()
                    yield SearchStarted(call_id, query)
                    passages, finished = await self._finder.search(call_id, query)
                case READ_PAGE.name:
                    path = decoded_arguments(call.arguments, _ReadArguments).path
                    if self._reads_left <= 0:
                        yield _refused(call, "No reads are left. Answer now, from what you have.")
                        return
                    self._reads_left -= 1
                    page = await self._finder.page(path)
                    if page is None:
                        yield _refused(call, f"Page not found: {path[:200]!r}. Take the url of a passage, or search.")
                        return
                    call_id = self._finder.next_call()
                    yield SearchStarted(call_id, page.url)
                    passages, finished = self._finder.add(call_id, page.url, [whole(page)], limit=MAX_PAGE_CHARACTERS)
                case _:
                    yield _refused(call, f"There is no tool {call.name!r}. There are search and read_page.")
                    return
        except msgspec.DecodeError as error:
            yield _refused(call, f"The arguments do not fit: {error}.")
            return
        yield finished
        yield ToolResult(call, tuple(passages))


def told(result: ToolResult, mark: str, budget: ContextBudget) -> ToolMessage:
    """Return the message that the model gets; ``mark`` as in ``context``."""
    call = result.call
    if result.refused:
        return ToolMessage(call.id, call.name, result.refused, is_error=True)
    if not result.passages:
        return ToolMessage(call.id, call.name, "Nothing was found.")
    limit = share(budget, MAX_PAGE_CHARACTERS, least=800) if call.name == READ_PAGE.name else passage_limit(
        len(result.passages), budget
    )  # fmt: skip
    passages = [clipped(passage, limit) for passage in result.passages]
    return ToolMessage(call.id, call.name, results_text(passages, mark))


def clipped(passage: Passage, limit: int) -> Passage:
    """Return the passage with at most ``limit`` characters of text."""
    return passage if len(passage.text) <= limit else replace(passage, text=clip(passage.text, limit))


def _refused(call: ToolCall, reason: str) -> ToolResult:
    return ToolResult(call, refused=reason)
