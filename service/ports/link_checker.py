"""Ask whether addresses of other sites answer."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

LinkError = Literal["", "timed_out", "not_resolved", "address_not_allowed", "not_connected", "tls", "bad_answer"]
"""Why there is no answer. ``address_not_allowed``: its scheme, or the address that its host leads to."""


class LinkAnswer(Struct, frozen=True):
    status: int | None
    """The status of the last answer, redirects followed; None when there is none."""
    error: LinkError = ""


class LinkChecker(Protocol):
    async def ask(self, urls: Sequence[str]) -> Mapping[str, LinkAnswer]:
        """Ask each address once, within a bounded time for all of them. Those that it did not suffice for are left out.

        Nothing is sent but the address, and no body is read. Raises nothing: what goes wrong is in the answers.
        """
