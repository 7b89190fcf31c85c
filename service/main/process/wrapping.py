"""Gives an instance the wrapping keys of the vault, where that is wrapped, before the log is opened."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog
from aiohttp import web

from service.domain.errors import Conflict
from service.integrity.log_place import VAULT_SECRET, log_place
from service.ports.shared.instances import Instances
from service.runtime.settings.settings import Settings
from service.web.http.internal import InternalAccess
from service.web.http.wrapping_keys import GIVER, Giver, routes
from service.workers.key_rotation import KeyExchange, KeyRotation

log = structlog.get_logger()


class WrappingKeysOf:
    """The wrapping keys of an instance, of a vault that is wrapped."""

    def __init__(self, rotation: KeyRotation, giver: Giver | None) -> None:
        self.rotation, self._giver = rotation, giver

    def install(self, app: web.Application) -> None:
        """Let the application give other instances what they lack."""
        if self._giver is not None:
            app[GIVER] = self._giver
            app.add_routes(routes)


@asynccontextmanager
async def wrapping_keys(data: Path, settings: Settings, instances: Instances) -> AsyncIterator[WrappingKeysOf | None]:
    """Get the wrapping keys of the vault from other instances; give None where the vault is not wrapped.

    Raises Conflict ``wrapping_key_missing``, Invalid ``bad_vault_secret``, StoreUnavailable and its kinds.
    """
    place = log_place(data)
    if place.is_local:
        yield None
        return
    from eventstore.postgres.place import TablePlace
    from service.adapters.internal_http import AiohttpInternalHttp
    from service.integrity.wrapping_exchange import checked_secret, signing_key

    assert isinstance(place, TablePlace)
    secret = checked_secret(os.environ.get(VAULT_SECRET, ""))
    async with AsyncExitStack() as stack:
        rotation = await asyncio.to_thread(place.rotation)
        stack.push_async_callback(asyncio.to_thread, rotation.close)
        if not await asyncio.to_thread(rotation.states):
            await stack.aclose()
            yield None
            return
        exchange, giver = None, None
        if secret is None:
            log.warning(
                "the vault is wrapped, and other instances get no wrapping key from this one", unset=VAULT_SECRET
            )
        else:
            http = AiohttpInternalHttp(signing_key(secret))
            stack.push_async_callback(http.close)
            exchange = KeyExchange(http, secret)
            access = InternalAccess(instances.name)
            access.key = signing_key(secret)
            giver = Giver(access, rotation.keys, secret)
        keys = KeyRotation(rotation, instances, exchange, settings.vault)
        missing = await keys.obtain()
        rows = await asyncio.to_thread(rotation.rows) if missing else ()
        if needed := [row.id for row in rows if row.id in missing and (row.living or row.state == "current")]:
            raise Conflict(
                f"The vault's keys are wrapped under {needed[0]}, which is not in {rotation.keys.folder}, and no"
                f" running instance gave it. Set {VAULT_SECRET} as the others have it, or import a copy: docsmith vault"
                " import FILE.",
                code="wrapping_key_missing",
            )
        yield WrappingKeysOf(keys, giver)
