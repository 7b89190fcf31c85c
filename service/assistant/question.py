"""A question, and the limits of its answer."""

from msgspec import Struct

from service.assistant.context import Exchange
from service.domain.search import SearchFilter
from service.domain.threads.progress import ReplyProgress
from service.domain.threads.threads import DEFAULT_PAGE_SIZE, ContextItem


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
    progress: ReplyProgress = ReplyProgress()
    """What is on record of its reply, where another process began it: the answer goes on there."""


class AnswerSettings(Struct, frozen=True):
    suggestions: bool = True
    max_searches: int = 3
    """By the model itself, besides the first one."""
    max_reads: int = 3
    max_output_tokens: int = 4_096
    """For each call of the model."""
    max_context_tokens: int = 32_000
    """Limit for the passages of a first prompt, whatever page size a client asks for."""


DEFAULT_SETTINGS = AnswerSettings()
