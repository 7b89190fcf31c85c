"""A question, and the limits of its answer."""

from msgspec import Struct

from service.domain.search import SearchFilter, Source
from service.domain.threads.progress import ReplyProgress
from service.domain.threads.threads import DEFAULT_PAGE_SIZE, ContextItem
from service.markup.languages.detection import language_of


class Exchange(Struct, frozen=True):
    """An earlier turn, from the thread's own record."""

    question: str
    answer: str
    cited: tuple[Source, ...] = ()


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


def reader_language(question: Question) -> str:
    """Return the language of a question that has others before it, or a filter for one; empty where it stands alone."""
    wanted, before = question.filter.language or "", " ".join(turn.question for turn in question.earlier[-3:])
    if not wanted and not before:
        return ""
    return language_of(question.text, expected=[wanted, *([language_of(before)] if before else [])])


class AnswerSettings(Struct, frozen=True):
    suggestions: bool = True
    max_searches: int = 3
    """By the model itself, besides the first one."""
    max_reads: int = 3
    max_output_tokens: int = 4_096
    """For each call of the model."""
    max_context_tokens: int = 32_000
    """Limit for the passages of a first prompt, whatever page size a client asks for."""
    max_minutes: float = 10.0
    """Time of a whole answer; a model that is still writing then is stopped."""
    withhold_unsupported_code: bool = False
    """Whether code is left out that names what neither a passage nor the reader has."""


DEFAULT_SETTINGS = AnswerSettings()
