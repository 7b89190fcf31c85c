"""Answers many questions by one statement: those that come while one runs wait for the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

MAX_TOGETHER = 256


class Coalesced(Generic[Q, A]):
    """``answer`` gets a list of questions and returns their answers in order; all callers get what it raises."""

    def __init__(self, answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        self._answer = answer
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        outcome: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, outcome))
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name="coalesced")
        return await outcome

    async def close(self) -> None:
        """Give up the statement that runs: its callers are cancelled."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        for _, outcome in self._waiting:
            outcome.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                asked = [one for one in self._waiting[:MAX_TOGETHER] if not one[1].done()]
                del self._waiting[:MAX_TOGETHER]
                if asked:
                    await self._answer_all(asked)
        finally:
            self._running = None

    async def _answer_all(self, asked: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._answer([question for question, _ in asked])
        except BaseException as error:
            for _, outcome in asked:
                if outcome.done():
                    continue
                if isinstance(error, Exception):
                    outcome.set_exception(error)
                    outcome.exception()  # its caller may have gone
                else:
                    outcome.cancel()
            if not isinstance(error, Exception):
                raise
        else:
            for (_, outcome), answer in zip(asked, answers, strict=True):
                if not outcome.done():
                    outcome.set_result(answer)
