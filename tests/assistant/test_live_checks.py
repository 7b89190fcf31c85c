"""Sentences judged while replies are given: what many replies hold that end together."""

import asyncio
from contextlib import aclosing

from service.assistant.sentence_checks.live import LiveChecks
from service.domain.model import Usage
from service.domain.threads.replies import ReplyDone, TextDelta
from service.sentences.passages import GivenPassage

REPLIES, SEATS = 30, 2
TEXT = "".join(f"Set the value {number} of the queue to {number} seconds. " for number in range(40))


class Found:
    """The passages of a reply, and whether they are held at the time."""

    def __init__(self, number, holding):
        self._passages = [GivenPassage(at, f"Queue {number}-{at} waits {at} seconds. " * 150) for at in range(5)]
        self._holding = holding
        self.most = 0

    def given(self):
        self._holding.add(self)
        self.most = len(self._holding)
        return self._passages

    def pack(self): ...


async def test_of_many_replies_that_end_together_few_hold_their_passages():
    seats, holding = asyncio.Semaphore(SEATS), set()

    async def reply(number):
        async def events():
            yield TextDelta(TEXT)
            yield ReplyDone(TEXT, (), "answered", "model", Usage(), "stop")

        found = Found(number, holding)
        async with aclosing(LiveChecks((), found, seats=seats).watch(events())) as watched:
            *_, done = [event async for event in watched]
        holding.discard(found)
        return done.checks.counts, found.most

    ended = await asyncio.gather(*map(reply, range(REPLIES)))
    assert all(counts.checked for counts, _ in ended)
    assert max(most for _, most in ended) <= 3 * SEATS
