"""The checks of a reply while it is given: between its events, and never in their way.

Text is split as it passes; passages are read and sentences judged in a thread, in turn with other replies. Passages
are read when there is a sentence to judge, for they cost more than all else before a reply's first word. What is known
goes out with the next event, and all of it before the last one. What was read of the passages takes three times the
memory of their text. So it is dropped after a silence, since many replies may wait for their model at a time; and when
many end at a time, few are judged at once, and the others have not read theirs yet.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from time import thread_time
from typing import Protocol, TypeVar

import structlog
from msgspec.structs import replace

from service.assistant.sentence_checks.thread import in_turn
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.replies import AnswerEvent, ReplyDone, SearchFinished, SentencesChecked, TextDelta
from service.runtime.turns import call_in_turn
from service.sentences.checker import SentenceChecker
from service.sentences.passages import GivenPassage
from service.sentences.units import Unit

log = structlog.get_logger()

TURN_SECONDS = 0.004
"""Processor time after which a turn begins no further step. Each turn costs the event loop some 20 µs, and most steps
take less than that: their passages are often read already, for another reply.
"""
BATCH_CHARACTERS = 500
"""The sentences that are judged in one step: some milliseconds of work."""
PASSAGE_CHARACTERS = 5_000
"""The passages that are read in one step, or one that is longer: some milliseconds too."""
REST_SECONDS = 10.0
"""Without a sentence, until the passages are dropped. To read them again takes some milliseconds."""
GROWTH = 4
"""The verdicts are published when a quarter more of them are known: so they cost no more than some times their size."""


class PassagesSoFar(Protocol):
    """The passages that were found so far."""

    def given(self) -> Sequence[GivenPassage]: ...

    def pack(self) -> None:
        """Keep them in little memory until they are read again."""


class LiveChecks:
    def __init__(
        self,
        said: Iterable[str],
        passages: PassagesSoFar,
        *,
        seats: asyncio.Semaphore | None = None,
        begun: str = "",
    ) -> None:
        """``seats``: as ``answer`` takes them. ``begun``: the text that an earlier process has sent."""
        self._checker = SentenceChecker(said)
        self._passages, self._seats = passages, seats or asyncio.Semaphore(1)
        self._rest_clock: asyncio.TimerHandle | None = None
        self._is_resting = False
        """Whether the passages are dropped; to be read again before the next sentence is judged."""
        self._begun = begun
        self._units: list[Unit] = []
        self._work: asyncio.Task[None] | None = None
        self._published = 0

    async def watch(self, events: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the events of a reply, and between them the verdicts on its sentences."""
        try:
            if self._begun:
                self._units += await asyncio.to_thread(self._checker.feed, self._begun)
            async for event in events:
                if isinstance(event, ReplyDone):
                    checks = await self._finish()
                    if checks.checked:
                        yield SentencesChecked(checks)
                    yield replace(event, checks=checks.recorded)
                    return
                yield event
                if (grown := self.note(event)) is not None:
                    yield grown
        finally:
            self._end_rest()
            if self._work is not None and not self._work.done():
                self._work.cancel()
                await asyncio.wait([self._work])

    def note(self, event: AnswerEvent) -> SentencesChecked | None:
        """Read an event that readers have, and return the verdicts where enough of them are new."""
        if isinstance(event, TextDelta):
            self._units += self._checker.feed(event.text)
        elif isinstance(event, SearchFinished):
            self._await_rest()
        if self._units:
            self._begin()
        return self._grown()

    def _begin(self) -> None:
        if self._work is None or self._work.done():
            self._end_rest()
            self._work = asyncio.create_task(self._judge(), name="sentence checks")
            self._work.add_done_callback(_note_failure)

    async def _judge(self) -> None:
        """Judge what is finished by now, and what is finished meanwhile."""
        async with self._seats:
            while self._units:
                units, self._units = self._units, []
                new: list[GivenPassage] = []
                if not self._is_resting:
                    new = [passage for passage in self._passages.given() if self._checker.is_new(passage)]
                steps: deque[Callable[[], object]] = deque(
                    chain(
                        (partial(self._checker.add_passages, one, units) for one in _batches(new, PASSAGE_CHARACTERS)),
                        (partial(self._judge_batch, batch) for batch in _batches(units, BATCH_CHARACTERS)),
                    )
                )
                while steps:
                    await in_turn(partial(_take, steps))
            self._await_rest()

    def _judge_batch(self, batch: Iterable[Unit]) -> None:
        """Judge, and read first what was dropped."""
        if self._is_resting:
            self._is_resting = False
            self._checker.add_passages(self._passages.given())
        self._checker.judge(batch)

    def _await_rest(self) -> None:
        self._end_rest()
        self._rest_clock = asyncio.get_running_loop().call_later(REST_SECONDS, call_in_turn, self._rest)

    def _rest(self) -> None:
        """Keep little while the model is silent."""
        if self._work is not None and not self._work.done():
            return  # at its end the silence begins
        self._is_resting = True
        self._checker.forget_passages()
        self._passages.pack()

    def _end_rest(self) -> None:
        if self._rest_clock is not None:
            self._rest_clock.cancel()
            self._rest_clock = None

    def _grown(self) -> SentencesChecked | None:
        """Return the verdicts when there are enough new ones, and no thread works on them."""
        if self._work is None or not self._work.done():
            return None
        known = self._checker.checked
        if known - self._published <= self._published // GROWTH:
            return None
        self._published = known
        return SentencesChecked(self._checker.summary)

    async def _finish(self) -> ReplyChecks:
        """Return the verdicts on the whole text."""
        self._units += self._checker.finish()
        if self._units:
            self._begin()
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])
            if self._units:
                self._begin()
        return self._checker.summary


def _take(steps: deque[Callable[[], object]]) -> None:
    """Take the steps that a turn has time for."""
    until = thread_time() + TURN_SECONDS
    while steps:
        steps.popleft()()
        if thread_time() >= until:
            return


_Text = TypeVar("_Text", Unit, GivenPassage)


def _batches(texts: Iterable[_Text], characters: int) -> Iterator[list[_Text]]:
    """Yield the texts in batches, each of this many characters or a little more."""
    batch: list[_Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text.text)
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _note_failure(work: asyncio.Task[None]) -> None:
    """A reply is worth more than its checks: what fails in them is logged, and the reply goes on."""
    if not work.cancelled() and (error := work.exception()) is not None:
        log.error("sentences were not checked", exc_info=error)
