"""The embedded model of the assistant: no key, no network, no guess. It quotes the documentation.

It reads the passages that the request carries as values (``Grounding``), never the prompt, so nothing that a page says
can steer it. Each passage is taken apart into sentences, list items, table rows and code blocks; those that share the
question's rarest words are quoted in reading order under a link to where they stand. What it cannot do it says: when
the passages cover too little of the question, it answers that the documentation does not say.

How a piece is scored, in the order of what it is worth on real questions:

- words of the question in it, by stem (Snowball), each weighted by how rare it is among the pieces;
- the same words in the headings above it, at part of their weight;
- neighbouring words of the question that are neighbours in the piece;
- the rank of its passage, and standing first in it.

Companions come along: the rest of a short paragraph or list, code and lists behind "… as follows:", the sentence that
leads to a code block.
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
from service.markup.languages import language_of
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
    """The answer as Markdown with ``[n]`` citations, or the marker ``[0]`` and the sentence that there is none."""
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
    return "\n\n".join([f"{replies.opening}{in_another}", *(rendered(quote) for quote in quotes)])


def _deltas(text: str) -> Iterator[str]:
    words = re.findall(r"\s*\S+\s*", text)
    for at in range(0, len(words), WORDS_A_DELTA):
        yield "".join(words[at : at + WORDS_A_DELTA])
