"""Failed attempts to sign in: on the record, and few events however many there are."""

import asyncio
from datetime import timedelta
from ipaddress import ip_address

from eventstore import SQLiteEventStore
from service.domain.audit import SignInsFailed
from service.streams import AUDIT
from service.workers.admission.failed_sign_ins import MAX_NETWORKS, FailedSignIns


async def test_failures_of_a_time_are_one_event(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        failed = FailedSignIns(store, timedelta(hours=1))
        running = asyncio.create_task(failed.run())
        failed.note("link", "link_not_valid", ip_address("192.0.2.1"))
        await store.wait_until(1)
        for number in range(1_000):
            failed.note("passkey", "forbidden", ip_address(f"198.51.{number % 100}.{number // 100}"))
        failed.note("link", "link_not_valid", ip_address("2001:db8:1:2::3"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        first, rest = [AUDIT.codec.decode(event) for event in await store.read_all()]
    assert isinstance(first, SignInsFailed)
    assert isinstance(rest, SignInsFailed)
    assert (first.counts, first.networks) == ({"link: link_not_valid": 1}, ("192.0.2.0/24",))
    assert rest.counts == {"link: link_not_valid": 1, "passkey: forbidden": 1_000}
    assert len(rest.networks) == MAX_NETWORKS
    assert first.last_at <= rest.first_at <= rest.last_at
