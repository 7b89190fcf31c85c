"""Whether a site answers a question, judged without a reader and without a model that costs."""

from contextlib import aclosing

from service.assistant.answer import answer
from service.assistant.question import Question
from service.domain.search import Source
from service.domain.threads.replies import ReplyDone, SearchFinished
from service.ports.model import Model
from service.ports.search_index import SearchIndex


async def cited_in_answer(question: Question, *, index: SearchIndex, model: Model) -> tuple[Source, ...] | None:
    """Return the passages that an answer cites; None where there is no answer. Nothing is recorded."""
    found: dict[int, Source] = {}
    async with aclosing(answer(question, index=index, model=model)) as steps:
        async for step in steps:
            match step:
                case SearchFinished(sources=sources):
                    found.update((source.number, source) for source in sources)
                case ReplyDone(resolution="answered", cited=cited):
                    return tuple(found[number] for number in cited if number in found)
                case _:
                    pass
    return None
