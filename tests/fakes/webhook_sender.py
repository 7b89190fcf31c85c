"""A receiver of webhooks that answers as it is told."""

import asyncio

from msgspec import Struct

from service.ports.webhook_sender import Answer

ARRIVED = Answer(200)


class Sent(Struct, frozen=True):
    url: str
    body: bytes
    headers: dict[str, str]


class FakeWebhookSender:
    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.answers: dict[str, list[Answer]] = {}
        """By URL: the next answers, first to last; after them it all arrives."""
        self.held: dict[str, asyncio.Event] = {}
        """By URL: no answer before this is set."""
        self.in_flight: dict[str, int] = {}
        self._changed = asyncio.Condition()

    async def send(self, url, body, headers):
        async with self._changed:
            self.sent.append(Sent(url, body, dict(headers)))
            self.in_flight[url] = self.in_flight.get(url, 0) + 1
            self._changed.notify_all()
        try:
            if url in self.held:
                await self.held[url].wait()
        finally:
            self.in_flight[url] -= 1
        answers = self.answers.get(url)
        return answers.pop(0) if answers else ARRIVED

    async def until_sent(self, number: int) -> list[Sent]:
        """All that was sent, once it is so many."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: len(self.sent) >= number)
        return self.sent
