"""An answer that goes to no reader, behind the start: modules, indexes, prompts and expressions are loaded by it.

The first reply after a start took some 40 ms longer to its first words than those after it. It runs on a thread with an
event loop of its own, so that no request waits for it; no provider is asked, and nothing is recorded.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import structlog

from eventstore import Views
from service.assistant.answer import answer
from service.assistant.question import Question
from service.domain.errors import ServiceError
from service.domain.model import Usage
from service.ports.model import FREE, ModelChunk, ModelEnd, ModelRequest, ModelText, Price
from service.ports.search_index import SearchIndex
from service.queries.sites import list_sites

log = structlog.get_logger()

NEEDED_FILES = 16
"""Files that an event loop and an index open."""
MAX_SITES = 32
"""Sites whose index is opened; those of others are opened by their first question."""
QUESTION = "How do I configure the command line, and what is the default of `--limit`?"
ANSWER = "Set it as follows [1], or see [the page](/limits#size):\n\n```sh\nrun --limit 5\n```\n\n- **Default**: 20."


class RehearsedModel:
    """Says the same words to whatever it is asked."""

    name = "builtin/rehearsal"

    async def window_tokens(self) -> int | None:
        return None

    async def price(self) -> Price | None:
        return FREE

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:  # noqa: ARG002  (the port's)
        for word in ANSWER.split(" "):
            yield ModelText(f"{word} ")
        yield ModelEnd("stop", (), Usage(), self.name)


async def indexed_sites(views: Views) -> list[str]:
    """Return the first sites that can be asked. Raises StoreUnavailable."""
    return [site.view.domain for site in await list_sites(views) if site.view.commit][:MAX_SITES]


async def rehearse(index: SearchIndex, sites: Sequence[str], *, may_search: bool) -> None:
    """Answer a question on the first site, and open the indexes of the others.

    ``may_search``: a search needs no provider, as one by meaning does. Raises OSError where no file can be opened.
    """
    await asyncio.to_thread(_run, index, sites, may_search=may_search)


def _run(index: SearchIndex, sites: Sequence[str], *, may_search: bool) -> None:
    with ExitStack() as held:  # an event loop that lacks descriptors leaves half of itself behind
        for _ in range(NEEDED_FILES):
            held.enter_context(Path(os.devnull).open())
    asyncio.run(_rehearse(index, sites, may_search=may_search))


async def _rehearse(index: SearchIndex, sites: Sequence[str], *, may_search: bool) -> None:
    for number, domain in enumerate(sites):
        try:
            await index.links(domain)
            if number == 0 and may_search:
                async for _ in answer(Question(domain, "rehearsal", QUESTION), index=index, model=RehearsedModel()):
                    pass
        except ServiceError as error:
            log.info("index not opened at the start", domain=domain, code=error.code)
