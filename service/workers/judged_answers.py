"""Whether a site answers a question, by the judgement of a model: for test questions."""

from collections.abc import Awaitable, Callable

from service.assistant.judging import cited_in_answer
from service.assistant.question import Question
from service.ports.model import Model
from service.ports.search_index import SearchIndex


def answers_with(index: SearchIndex, model: Callable[[], Model]) -> Callable[[str, str], Awaitable[bool]]:
    """Return a function that says of a domain and a question whether the site answers it."""

    async def is_answered(domain: str, text: str) -> bool:
        return await cited_in_answer(Question(domain, "judged", text), index=index, model=model()) is not None

    return is_answered
