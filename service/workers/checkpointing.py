"""Signs what the log is, at need and on a schedule, once it holds what was seen of it before."""

import asyncio
from pathlib import Path

import msgspec
import structlog

from eventstore import EventStore, EventStoreError, sign_checkpoint
from service.domain.errors import Invalid
from service.integrity.checkpoints import (
    CHECKPOINTS,
    SignedCheckpoint,
    append_line,
    last_checkpoint,
    last_position,
    obtain_key,
)
from service.integrity.continuity import LogLost, require_continuous
from service.ports.shared.instances import Instances, Peer
from service.ports.shared.internal_http import InstanceUnreachable, InternalHttp, InternalRequest, ask_instance
from service.ports.shared.shared_secrets import SharedSecrets
from service.runtime.system import now

log = structlog.get_logger()

CHECKPOINT_PATH = "/internal/checkpoint"
ANSWER_SECONDS = 1.0
"""For another instance to say which checkpoint it signed last; pages are shown without it then."""
MAX_BYTES = 16_384


async def make_checkpoint(
    store: EventStore, secrets: SharedSecrets, data: Path, *, even_if_known: bool = True
) -> SignedCheckpoint | None:
    """Sign what the log is now and keep it in the data folder; None for an empty log.

    With ``even_if_known`` false, None also when the last checkpoint is of the same position.

    Raises LogLost: a signature under a shortened log would make it look whole.
    """
    last = await store.read_all(limit=1, backwards=True)
    await asyncio.to_thread(require_continuous, data)  # after reading: a log shortened in between is not signed
    if not last:
        return None
    position, hash_, log_id = last[0].position, last[0].hash, await store.log_id()
    file = data / CHECKPOINTS
    if not even_if_known and await asyncio.to_thread(last_position, file) == position:
        return None
    key = await obtain_key(secrets, data)
    made = SignedCheckpoint.of(sign_checkpoint(key, position, hash_, now(), log_id), key.public_key())
    await asyncio.to_thread(append_line, file, msgspec.json.encode(made) + b"\n")
    return made


class LastCheckpoint:
    """The newest signed checkpoint, whichever instance of the log has signed it: each keeps its own."""

    def __init__(self, data: Path, instances: Instances, http: InternalHttp | None = None) -> None:
        """``http``: None where there are no other instances."""
        self._file, self._instances, self._http = data / CHECKPOINTS, instances, http

    async def here(self) -> SignedCheckpoint | None:
        """Return the newest of this instance."""
        return await asyncio.to_thread(last_checkpoint, self._file)

    async def find(self) -> SignedCheckpoint | None:
        """Return the newest of all instances that answer; None where there is none."""
        http = self._http
        peers = [] if http is None else [_asked(http, peer) for peer in self._instances.others() if peer.url]
        found = [one for one in await asyncio.gather(self.here(), *peers) if one is not None]
        return max(found, key=lambda one: (one.position, one.time), default=None)


async def _asked(http: InternalHttp, peer: Peer) -> SignedCheckpoint | None:
    asked, wanted = InternalRequest("GET", CHECKPOINT_PATH), SignedCheckpoint | None
    try:
        found: SignedCheckpoint | None = await ask_instance(
            http, peer, asked, wanted, seconds=ANSWER_SECONDS, most=MAX_BYTES
        )
    except InstanceUnreachable as error:
        log.info("checkpoint not known", instance=peer.name, reason=str(error))
        return None
    return found


class Checkpoints:
    """Makes one at the start, then each ``minutes``, whenever the log grew."""

    def __init__(self, store: EventStore, secrets: SharedSecrets, data: Path, minutes: float) -> None:
        self._store, self._secrets, self._data, self._minutes = store, secrets, data, minutes

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self.make()
            await asyncio.sleep(self._minutes * 60)

    async def make(self) -> None:
        """One, if the log grew. That it cannot be written is no reason to stop serving."""
        try:
            made = await make_checkpoint(self._store, self._secrets, self._data, even_if_known=False)
        except (OSError, EventStoreError, ValueError, Invalid, LogLost) as error:
            log.warning("no checkpoint could be made", reason=str(error))
        else:
            if made is not None:
                log.info("checkpoint", position=made.position, hash=made.hash)
