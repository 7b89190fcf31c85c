"""The instances of a log, as a test says."""

import asyncio
from collections.abc import Collection, Sequence

from service.ports.shared.instances import Peer


class FakeInstances:
    """Starts as the only one of its log, which leads."""

    def __init__(self, name: str = "here") -> None:
        self.name = name
        self.peers: dict[str, Peer] = {}
        """Those that are alive, by name."""
        self.crashed: Collection[str] = []
        self._is_certain = self._leads = True
        self._changed = asyncio.Event()

    def is_alive(self, name: str) -> bool:
        return name == self.name or name in self.peers

    def is_certain(self) -> bool:
        return self._is_certain

    def others(self) -> Sequence[Peer]:
        return list(self.peers.values())

    def find(self, name: str) -> Peer | None:
        return self.peers.get(name)

    def leads(self) -> bool:
        return self._leads and self._is_certain

    async def until_leading(self) -> None:
        while not self.leads():
            await self._changed.wait()

    async def until_not_leading(self) -> None:
        while self.leads():
            await self._changed.wait()

    async def claim_home(self) -> bool:
        return not any(peer.is_home for peer in self.peers.values())

    async def step_down(self) -> None:
        self.be(leads=False)

    def begin(self, name: str, url: str = "", *, is_home: bool = False, leads: bool = False) -> None:
        self.peers[name] = Peer(name, url, "1.0", is_home, leads)

    def end(self, name: str, *, crashed: bool = False) -> None:
        del self.peers[name]
        if crashed:
            self.crashed = [*self.crashed, name]

    def be(self, *, leads: bool | None = None, is_certain: bool | None = None) -> None:
        """Change what this one is."""
        self._leads = self._leads if leads is None else leads
        self._is_certain = self._is_certain if is_certain is None else is_certain
        self._changed.set()
        self._changed = asyncio.Event()
