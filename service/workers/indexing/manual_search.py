"""Search in the manual, and answers from it: the same in every installation, with the builtin model, and not recorded.

The manual is no project of the installation, so its index is none of the data folder's. It is built at the first
question, in a child process, into a scratch folder that goes with this process.
"""

import asyncio
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path

from msgspec import Struct

from service.assistant.answer import answer
from service.assistant.question import AnswerSettings, Question
from service.domain.threads.replies import ReplyDone
from service.ports.model import Model
from service.ports.search_index import Section
from service.retrieval.search.query import SiteIndexes
from service.runtime.scratch import scratch_folder
from service.runtime.shares import Shares
from service.workers.indexing.site_build import QUICK_MEMORY_BYTES, Limits, SiteCommit, build_in_child

DOMAIN, NAME = "manual", "1"
SCRATCH, ARCHIVE = "docsmith-manual-", "manual.tar"
LIMITS = Limits(60.0, QUICK_MEMORY_BYTES)
SLOTS, SLOTS_EACH, WAITING_EACH, WAIT_SECONDS = 2, 1, 4, 30.0
MAX_SECTIONS = 8
SETTINGS = AnswerSettings(suggestions=False, max_searches=0)


class ManualFindings(Struct, frozen=True):
    """An answer of the manual, and the sections that a query finds."""

    answer: str
    """Markdown, quoted, with links to the pages from the root of the manual; empty where it does not answer."""
    sections: Sequence[Section]
    """Best first; at most eight."""


class ManualSearch:
    """``folder`` has the pages; ``model`` quotes them; ``scratch`` is where the index is built, by default the system's
    folder for temporary files. ``close`` it before the process ends.
    """

    def __init__(
        self, folder: Path, model: Model, *, scratch: Path | None = None, on_refused: Callable[[], None] = lambda: None
    ) -> None:
        self._folder, self._model, self._parent = folder, model, scratch
        self._shares = Shares(SLOTS, (SLOTS_EACH,), waiting=WAITING_EACH, seconds=WAIT_SECONDS, on_refused=on_refused)
        self._scratch = ExitStack()
        self._opening = asyncio.Lock()
        self._index: SiteIndexes | None = None

    async def find(self, query: str, *, asker: str) -> ManualFindings:
        """Return the sections for a query, and an answer. Each ``asker`` has one search under way.

        Raises Unavailable: too many searches wait, or the index could not be built in time.
        """
        async with self._shares.slot(asker):
            index = await self._opened()
            found = await index.search(DOMAIN, query, limit=MAX_SECTIONS)
            return ManualFindings(await self._answer(index, query), found.sections)

    async def close(self) -> None:
        """Close the index and remove its folder."""
        if self._index is not None:
            await self._index.close()
        await asyncio.to_thread(self._scratch.close)

    async def _opened(self) -> SiteIndexes:
        async with self._opening:
            if self._index is None:
                self._index = await self._built()
            return self._index

    async def _built(self) -> SiteIndexes:
        folder = await asyncio.to_thread(self._prepare)
        index = SiteIndexes(folder, threads=1)
        try:
            target, archive = index.path_of(DOMAIN, NAME), folder / ARCHIVE
            await build_in_child(lambda _: None, target, archive, SiteCommit("", NAME), LIMITS)
            await index.use(DOMAIN, NAME)
        except BaseException:
            await index.close()
            raise
        return index

    def _prepare(self) -> Path:
        """Return a folder with an archive of the pages; one of an earlier attempt is removed."""
        self._scratch.close()
        folder = self._scratch.enter_context(scratch_folder(self._parent or Path(tempfile.gettempdir()), SCRATCH))
        (folder / DOMAIN).mkdir()
        with tarfile.open(folder / ARCHIVE, "w") as archive:
            for file in sorted(self._folder.glob("*.md")):
                archive.add(file, file.name)
        return folder

    async def _answer(self, index: SiteIndexes, query: str) -> str:
        question = Question(DOMAIN, DOMAIN, query)
        async with aclosing(answer(question, index=index, model=self._model, settings=SETTINGS)) as events:
            async for event in events:
                if isinstance(event, ReplyDone):
                    return event.text if event.resolution == "answered" else ""
        return ""
