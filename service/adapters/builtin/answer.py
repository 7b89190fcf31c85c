"""The embedded model of the assistant: no key, no network, no guess. It quotes the documentation.

It reads the passages that the request carries as values (``Grounding``), never the prompt, so nothing that a page says
can steer it. Each passage is taken apart into sentences, list items, table rows and code blocks (``pieces``). Passages
are scored as ``weighing`` has it, and of the best ones ``choosing`` picks what is quoted, in reading order, under a
link to where it stands. What it cannot do it says: where ``verdict`` is not sure that they answer, it shows the nearest
passages as such; where nothing is near, it answers that the documentation does not say, and names the words that no
page has.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

from service.domain.errors import Invalid
from service.domain.model import Usage
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
        before = None if request.continuation is None else request.continuation.text
        # 50 passages take a tenth of a second
        text, is_unsure = await asyncio.to_thread(_extracted, request.grounding, before)
        for words in _deltas(text):
            yield ModelText(words)
            await asyncio.sleep(0)  # one delta at a time to each listener
        yield ModelEnd("stop", (), Usage(cost_usd=0.0), NAME, unsure=is_unsure)


def _extracted(grounding: Grounding, text_before: str | None) -> tuple[str, bool]:
    """Return the answer, or its rest behind the text before, and whether it is unsure. Runs on a thread, as do the
    imports: a service that is not asked starts without their expressions, which take 60 ms to compile.
    """
    from service.adapters.builtin.continuing import rest_of
    from service.adapters.builtin.extraction import extract

    found = extract(grounding)
    return (found.text if text_before is None else rest_of(found.text, text_before)), found.is_unsure


def _deltas(text: str) -> Iterator[str]:
    words = re.findall(r"\S+\s*|\s+", text)
    for at in range(0, len(words), WORDS_A_DELTA):
        yield "".join(words[at : at + WORDS_A_DELTA])
