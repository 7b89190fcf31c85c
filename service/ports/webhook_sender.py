"""Send one webhook message to an address that others chose."""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

SendingError = Literal[
    "", "text_damaged", "timed_out", "not_resolved", "address_not_allowed", "not_connected", "tls", "disconnected",
    "bad_answer", "internal",
]  # fmt: skip
"""Why there is no answer. ``address_not_allowed``: its scheme, or the address that its host leads to.
``text_damaged``: the log's record of the address or of the secret cannot be read.
"""


class Answer(Struct, frozen=True):
    status: int | None
    """None when there is none."""
    error: SendingError = ""
    retry_after_seconds: float | None = None
    """The answer's Retry-After, in seconds."""


class WebhookSender(Protocol):
    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST a JSON body, once, within a bounded time; redirects are answers like others.

        Raises nothing: whatever goes wrong is in the answer. Not safe to repeat by itself: the receiver knows a
        repetition by the header ``webhook-id``.
        """
