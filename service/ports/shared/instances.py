"""The instances of the service that share a log: which are alive, and which of them leads.

Each has a lease that it renews. One that has not renewed its own for ``LEASE_SECONDS`` counts as ended, and the others
take over its work. One that was only paused, or cut off, notices that by ``is_certain`` before it acts on the world
outside, and by the log, which refuses the steps of work that is not its own any more.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

LEASE_SECONDS = 15.0
"""After which an instance that gave no sign of life counts as ended."""
RENEW_SECONDS = 3.0


class Peer(Struct, frozen=True):
    """Another instance of the service, which is alive."""

    name: str
    url: str
    """Where the other instances reach it, such as ``http://10.0.0.7:8080``; empty for a command, which serves none."""
    version: str
    is_home: bool
    """It has the repositories of the embedded code host."""
    leads: bool = False
    """It does what only one of them may do, as far as was seen."""


class Instances(Protocol):
    """This process among the others of its log. Its methods answer at once, but for those that are coroutines."""

    @property
    def name(self) -> str:
        """Name this process as no other was before; empty for one that takes over no work."""

    @property
    def crashed(self) -> Collection[str]:
        """Return the names of those that ended without closing, as far as that was noticed here."""

    def is_alive(self, name: str) -> bool: ...

    def is_certain(self) -> bool:
        """Return whether no other can have taken over work of this one: its lease is renewed and not about to end."""

    def others(self) -> Sequence[Peer]: ...

    def find(self, name: str) -> Peer | None:
        """Return one of the others that is alive; None for this process, and for any that is not."""

    def leads(self) -> bool:
        """Return whether this instance does what only one of them may do."""

    async def until_leading(self) -> None: ...

    async def until_not_leading(self) -> None: ...

    async def claim_home(self) -> bool:
        """Become home to the embedded code host, unless another one is; return whether this one is.

        Raises StoreUnavailable and its kinds.
        """

    async def step_down(self) -> None:
        """Let another instance lead at once, and never lead again. Where others cannot be reached, they find out."""
