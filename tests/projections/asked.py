"""Threads of one site, recorded as the service does."""

from datetime import UTC, datetime, timedelta

from eventstore import Metadata, execute
from service.domain.model import Usage
from service.domain.search import SearchFilter, Source
from service.domain.threads.recorded_reply import CompleteReply, RecordSources, RecordText
from service.domain.threads.threads import PostMessage, StartThread, digest_of
from service.queries.readers.questions import Period, list_questions
from service.streams import THREADS

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAST = 1 << 62
EVER = Period()


def post(number, text, current_path="/open"):
    at = NOW + timedelta(hours=number)
    return PostMessage(
        f"m{number}", "", text, (), current_path, SearchFilter(), 5, 2, f"r{number}", "one", "guide", "ann", at
    )


def source(number):
    return Source(number, f"p{number}.md", f"/p{number}#a", f"Page {number}", "A", 3, 9, "c" * 40)


class Site:
    """Threads of one site, recorded as the service does."""

    def __init__(self, store, views, project="project"):
        self.store, self.views, self.project = store, views, project

    async def do(self, thread, *commands, actor="key"):
        for command in commands:
            await execute(self.store, THREADS, thread, command, metadata=Metadata(actor=actor))
        await self.views.catch_up()

    async def start(self, thread, message):
        await self.do(thread, StartThread("org", self.project, "guide", "ann", digest_of("k"), message))

    async def answer(self, thread, message, text="So it is [2].", cited=(2,), resolution="answered"):
        found = RecordSources(message.reply_id, message.text, (source(1), source(2)))
        done = CompleteReply(message.reply_id, text, cited, resolution, "fake/model", Usage(), NOW)
        await self.do(thread, found, RecordText(message.reply_id, text[:3]), done)

    async def questions(self, period=EVER, **page):
        return [row for _, row in await self.placed(period, **page)]

    async def placed(self, period=EVER, *, before=LAST, limit=100, resolution=None):
        return await list_questions(
            self.views, self.project, period, before=before, limit=limit, resolution=resolution
        )  # fmt: skip
