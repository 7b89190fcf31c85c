"""Vectors of sections that another instance has: the leader alone asks the model for those that none has."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote

import msgspec
import structlog
from msgspec import Struct

from service.domain.errors import Unavailable
from service.ports.shared.instances import RENEW_SECONDS, Instances
from service.ports.shared.internal_http import InternalHttp, InternalRequest

log = structlog.get_logger()

VECTORS_PATH = "/internal/vectors/{domain}"
AT_ONCE = 2_000
"""Vectors that are asked for in one request; each has some hundred bytes to a few thousand."""
MAX_BYTES = 64 << 20


class WantedVectors(Struct, frozen=True):
    model: str
    hashes: tuple[bytes, ...]


class SharedVectors:
    def __init__(
        self, instances: Instances, http: InternalHttp, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._instances, self._http, self._sleep = instances, http, sleep

    def asks_model(self) -> bool:
        """Return whether this instance asks the model for vectors that none has."""
        return self._instances.leads()

    async def pause(self) -> None:
        """Wait before the other instances are asked again."""
        await self._sleep(RENEW_SECONDS)

    async def fetch(self, domain: str, model: str, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the vectors that other instances have, as they are stored."""
        found: dict[bytes, bytes] = {}
        for peer in self._instances.others():
            missing = [key for key in hashes if key not in found]
            for at in range(0, len(missing) if peer.url else 0, AT_ONCE):
                wanted = WantedVectors(model, tuple(missing[at : at + AT_ONCE]))
                path = VECTORS_PATH.format(domain=quote(domain, safe=""))
                asked = InternalRequest("POST", path, body=msgspec.msgpack.encode(wanted))
                try:
                    async with self._http.send(peer, asked) as answer:
                        if answer.status != 200:
                            break
                        found |= _decoded(await answer.read(MAX_BYTES), set(wanted.hashes))
                except (Unavailable, msgspec.DecodeError) as error:
                    log.info("vectors not fetched", domain=domain, instance=peer.name, reason=str(error))
                    break
        return found


def _decoded(content: bytes, wanted: set[bytes]) -> Mapping[bytes, bytes]:
    vectors = msgspec.msgpack.decode(content, type=dict[bytes, bytes])
    return {key: vector for key, vector in vectors.items() if key in wanted}
