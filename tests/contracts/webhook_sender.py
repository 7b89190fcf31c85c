"""What every sender of webhooks does; ``prepared`` gives one, an address, and what has arrived there so far."""

from collections.abc import Awaitable, Callable, Sequence

from service.ports.webhook_sender import Answer, WebhookSender
from tests.fakes.webhook_sender import Sent

Prepare = Callable[[Sequence[Answer]], Awaitable[tuple[WebhookSender, str, list[Sent]]]]

HEADERS = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,x"}


class WebhookSenderContract:
    async def test_sender_gives_each_answer_as_it_comes(self, prepared: Prepare):
        answers = [Answer(500), Answer(302), Answer(410), Answer(429, "", 30.0), Answer(204)]
        sender, url, received = await prepared(answers)
        assert [await sender.send(url, b"{}", HEADERS) for _ in answers] == answers
        assert len(received) == len(answers)

    async def test_body_arrives_as_it_was_given(self, prepared: Prepare):
        sender, url, received = await prepared([])
        body = '{"title":"\u00e4 \\u0000"}'.encode()
        assert await sender.send(url, body, HEADERS) == Answer(200)
        (sent,) = received
        assert sent.body == body
        assert HEADERS.items() <= {name.lower(): value for name, value in sent.headers.items()}.items()
