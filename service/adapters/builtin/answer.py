"""The embedded model of the assistant: no key, no network, no guess. It quotes the documentation.

It reads the passages that the request carries as values (``Grounding``), never the prompt, so nothing that a page says
can steer it. Each passage is taken apart into sentences, list items, table rows and code blocks (``pieces``). Passages
are scored as ``weighing`` has it, and of the best ones ``choosing`` picks what is quoted, in reading order, under a
link to where it stands. What it cannot do it says: when ``verdict`` finds that the passages do not have the question's
subject, it answers that the documentation does not say.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

from service.adapters.builtin.choosing import choose
from service.adapters.builtin.continuing import rest_of
from service.adapters.builtin.pieces import taken_apart
from service.adapters.builtin.quoting import rendered
from service.adapters.builtin.replies import replies_in
from service.adapters.builtin.verdict import is_answered
from service.adapters.builtin.wanted import wanted
from service.adapters.builtin.weighing import weigh
from service.domain.errors import Invalid
from service.domain.model import Usage
from service.markup.languages.detection import language_of
from service.ports.model import FREE, Grounding, ModelChunk, ModelEnd, ModelRequest, ModelText, Price

NAME = "builtin/extractive"
WORDS_A_DELTA = 3


class BuiltinAnswer:
    """The ``Model`` port over the request's own passages."""

    @property
    def name(self) -> str:
        return NAME

    async def window_tokens(self) -> int | None:
        return None

    async def price(self) -> Price | None:
        return FREE

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        if request.grounding is None:
            raise Invalid("The builtin model only quotes passages of documentation.", code="model_refused_request")
        text = await asyncio.to_thread(extract, request.grounding)  # 50 passages take a tenth of a second
        if request.continuation is not None:
            text = rest_of(text, request.continuation.text)
        for words in _deltas(text):
            yield ModelText(words)
            await asyncio.sleep(0)  # one delta at a time to each listener
        yield ModelEnd("stop", (), Usage(cost_usd=0.0), NAME)


def extract(grounding: Grounding) -> str:
    """Return the answer as Markdown with ``[n]`` citations, or the marker ``[0]`` with the sentence for no answer."""
    site_language = language_of(" ".join(passage.text[:600] for passage in grounding.passages))
    language = grounding.language or language_of(grounding.question, expected=(site_language,))
    replies = replies_in(language)
    is_another = bool(grounding.passages) and language != site_language
    asked = wanted(grounding, language, is_another=is_another)
    if not asked.stems:
        return replies.greeting
    in_another = f" {replies.documentation_in(site_language)}" if is_another else ""
    apart = taken_apart(grounding.passages, language)
    weigh(apart, asked)
    quotes = choose(apart, asked)
    if not quotes or not is_answered(asked, apart):
        return f"[0] {replies.nothing}{in_another}"
    untranslated = {quote.apart.passage.other_language for quote in quotes} - {"", language}
    if untranslated and not in_another:
        in_another = f" {replies.documentation_in(min(untranslated))}"
    return "\n\n".join([f"{replies.opening}{in_another}", *(rendered(quote) for quote in quotes)])


def _deltas(text: str) -> Iterator[str]:
    words = re.findall(r"\S+\s*|\s+", text)
    for at in range(0, len(words), WORDS_A_DELTA):
        yield "".join(words[at : at + WORDS_A_DELTA])
