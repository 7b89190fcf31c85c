"""Replaces the wrapping key of a wrapped vault in time, and keeps this instance in possession of those in use.

Each look of an instance is short and can be interrupted anywhere: the next one, of this instance or another, goes on
(``eventstore.postgres.wrapping.rotation``). The leader alone goes on with the change; each instance fetches the keys
that it lacks from the others, says which ones it has, and deletes those that are destroyed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from eventstore import EventStoreError
from service.domain.errors import Unavailable
from service.ports.shared.instances import Instances, Peer
from service.ports.shared.internal_http import InternalHttp, InternalRequest
from service.runtime.settings.settings import VaultSection

if TYPE_CHECKING:  # they need asyncpg, which a service with its log in files never imports
    from eventstore.postgres.wrapping.rotation import Rotation

LOOK_SECONDS = 5.0
REWRITE_SECONDS = 2.0
"""Limit for rewriting the table of keys in a service that runs: meanwhile no one can read a key."""
ANSWER_BYTES = 1_024
PATH = "/internal/wrapping-keys/"

log = structlog.get_logger()


class KeyExchange:
    """Asks other instances for wrapping keys."""

    def __init__(self, http: InternalHttp, secret: bytes) -> None:
        """``http`` signs with the key that comes from the secret (``wrapping_exchange.signing_key``)."""
        self._http, self._secret = http, secret

    async def fetch(self, peer: Peer, key_id: str) -> bytes | None:
        """Return a wrapping key; None where the other one does not have it or does not answer."""
        from service.integrity.wrapping_exchange import Asking

        asking = Asking(self._secret, key_id)
        request = InternalRequest("GET", f"{PATH}{key_id}?for={asking.public}")
        try:
            async with self._http.send(peer, request) as answer:
                if answer.status == 200:
                    return asking.opened(await answer.read(ANSWER_BYTES))
        except Unavailable as error:
            log.warning("an instance did not answer about a wrapping key", instance=peer.name, reason=str(error))
        return None


class KeyRotation:
    def __init__(
        self,
        rotation: "Rotation",
        instances: Instances,
        exchange: KeyExchange | None,
        settings: VaultSection,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``exchange`` None: this instance gets no wrapping key from others, and gives none."""
        self._rotation, self._instances, self._exchange = rotation, instances, exchange
        self._settings, self._clock = settings, clock
        self._keys = rotation.keys
        self._is_checked = False
        """This instance has looked for keys that are not wrapped, as an interrupted ``vault wrap`` leaves them."""
        self._copies = None if not settings.copies else type(rotation.keys)(Path(settings.copies))

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.look()
            except (EventStoreError, OSError) as error:
                log.warning("the vault's wrapping keys could not be looked after", reason=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Do what is due. Raise StoreUnavailable and its kinds, StoreCorrupt, OSError."""
        await self.obtain()
        await asyncio.to_thread(self._keep_files)
        await asyncio.to_thread(self._rotation.note_held, self._instances.name)
        if self._instances.leads() and self._instances.is_certain():
            await self._advance()

    async def obtain(self) -> list[str]:
        """Fetch the wrapping keys that this instance lacks; return the ids of those that no one gave.

        Raise StoreUnavailable and its kinds, StoreCorrupt, OSError.
        """
        states = await asyncio.to_thread(self._rotation.states)
        missing = []
        for key_id, state in states.items():
            if state != "destroyed" and await asyncio.to_thread(self._keys.find, key_id) is None:
                key = await asyncio.to_thread(self._copied, key_id) or await self._ask(key_id)
                if key is None:
                    missing.append(key_id)
                else:
                    await asyncio.to_thread(self._keys.add, key)
                    log.info("got a wrapping key of the vault", id=key_id)
        return missing

    async def _ask(self, key_id: str) -> bytes | None:
        for peer in self._instances.others() if self._exchange is not None else ():
            if (
                peer.url
                and self._exchange is not None
                and (key := await self._exchange.fetch(peer, key_id)) is not None
            ):
                return key
        return None

    def _copied(self, key_id: str) -> bytes | None:
        with suppress(OSError, EventStoreError):
            return None if self._copies is None else self._copies.find(key_id)
        return None

    def _keep_files(self) -> None:
        """Copy the keys that are here, and delete those that are destroyed. Raise OSError."""
        self._rotation.delete_destroyed()
        if self._copies is None:
            return
        states = self._rotation.states()
        for key_id, state in states.items():
            if state == "destroyed":
                self._copies.destroy(key_id)
            elif (key := self._keys.find(key_id)) is not None:
                self._copies.add(key)
        self._rotation.note_copied()

    async def _advance(self) -> None:
        rotation = self._rotation
        states = await asyncio.to_thread(rotation.states)
        following = next((key_id for key_id, state in states.items() if state == "next"), None)
        if following is not None and await asyncio.to_thread(self._keys.find, following) is None:
            log.warning("the next wrapping key is lost; another is made", id=following)
            await asyncio.to_thread(rotation.give_up_next, following)
            following = await asyncio.to_thread(rotation.make_next)
        elif following is None and await asyncio.to_thread(self._is_due):
            following = await asyncio.to_thread(rotation.make_next)
            log.info("a new wrapping key of the vault is made", id=following)
        if following is not None and await self._is_everywhere(following):
            await asyncio.to_thread(rotation.switch, following)
            log.info("the vault's wrapping key is replaced", id=following)
        if not self._is_checked or "replaced" in (await asyncio.to_thread(rotation.states)).values():
            self._is_checked = await self._rewrap()
            await asyncio.to_thread(rotation.retire)
            if self._is_checked:
                await self._rewrite()
        kept = timedelta(days=self._settings.keep_days)
        if gone := await asyncio.to_thread(rotation.destroy_retired, self._clock() - kept):
            log.info("wrapping keys of the vault are destroyed", ids=gone)
            await asyncio.to_thread(self._keep_files)

    async def _rewrap(self) -> bool:
        """Wrap all living keys under the current wrapping key; return False where another instance leads meanwhile."""
        after: str | None = ""
        while after is not None:
            if not self._instances.leads():
                return False
            after = await asyncio.to_thread(self._rotation.rewrap, after)
        return True

    async def _rewrite(self) -> None:
        """Rewrite the table of keys where an interrupted ``vault wrap`` did not, if all can wait for so long."""
        if await asyncio.to_thread(self._rotation.is_rewritten):
            return
        try:
            done = await asyncio.to_thread(partial(self._rotation.rewrite, seconds=REWRITE_SECONDS))
        except EventStoreError as error:
            log.warning("the table of the vault's keys could not be rewritten", reason=str(error))
            return
        if done:
            log.info("the table of the vault's keys is rewritten", left="archives and write-ahead log up to now")
        else:
            log.warning(
                "files of the vault's database may have keys as they were before they were wrapped",
                remedy="stop all instances and run docsmith vault wrap",
            )

    def _is_due(self) -> bool:
        since = self._rotation.current_since()
        return since is not None and self._clock() - since >= timedelta(days=self._settings.rotate_days)

    async def _is_everywhere(self, key_id: str) -> bool:
        """Return whether all instances that serve have the key in their files, and the folder of copies has it."""
        await asyncio.to_thread(self._keep_files)
        await asyncio.to_thread(self._rotation.note_held, self._instances.name)
        holders = await asyncio.to_thread(self._rotation.holders, key_id)
        serving = {peer.name for peer in self._instances.others() if peer.url} | {self._instances.name}
        await asyncio.to_thread(self._rotation.keep_holders, serving)
        return serving <= holders
