"""Failed attempts to sign in: one event for those of ten minutes, so that a stranger cannot make the log grow.

The first attempt is recorded at once. Of those that follow a killed process loses the last ten minutes; each is also a
line of the service's own log.
"""

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_network

import structlog

from eventstore import EventStore, Metadata, StoreUnavailable
from service.commands.audit import record_audit
from service.domain.access.people import SignInMethod
from service.domain.audit import RecordFailedSignIns
from service.runtime.system import now

log = structlog.get_logger()

INTERVAL = timedelta(minutes=10)
MAX_NETWORKS = 10
"""Named in an event: those with the most attempts, of the first thousand that are seen."""
MAX_SEEN = 1_000


class FailedSignIns:
    """Counts failures, and records them while ``run`` runs."""

    def __init__(self, store: EventStore, interval: timedelta = INTERVAL) -> None:
        self._store, self._interval = store, interval
        self._counts: Counter[str] = Counter()
        self._networks: Counter[str] = Counter()
        self._times: list[datetime] = []
        """Two: when the first and the last attempt failed."""
        self._any = asyncio.Event()

    def note(self, method: SignInMethod, code: str, address: IPv4Address | IPv6Address) -> None:
        """Count one more; ``code`` is that of the error."""
        log.warning("sign-in failed", method=method, code=code, address=str(address))
        network = str(ip_network((address, 24 if address.version == 4 else 48), strict=False))
        self._counts[f"{method}: {code}"] += 1
        if network in self._networks or len(self._networks) < MAX_SEEN:
            self._networks[network] += 1
        self._times = [self._times[0] if self._times else now(), now()]
        self._any.set()

    async def run(self) -> None:
        """Record failures until cancelled, and then the last ones."""
        try:
            while True:
                await self._any.wait()
                await self._record()
                await asyncio.sleep(self._interval.total_seconds())
        finally:
            if self._counts:
                await self._record()

    async def _record(self) -> None:
        networks = tuple(sorted(network for network, _ in self._networks.most_common(MAX_NETWORKS)))
        command = RecordFailedSignIns(dict(sorted(self._counts.items())), networks, self._times[0], self._times[-1])
        self._counts.clear()
        self._networks.clear()
        self._times.clear()
        self._any.clear()
        try:
            await record_audit(self._store, command, Metadata(actor="service"))
        except StoreUnavailable as error:
            log.warning("failed sign-ins not recorded", counts=command.counts, reason=str(error))
