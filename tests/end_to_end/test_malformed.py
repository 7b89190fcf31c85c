"""Requests that no client should send: each is answered or its connection closed, and never with a 5xx but 503.

``scripts/fuzz`` sends more of them.
"""

import asyncio

import pytest

from tests.end_to_end.fuzzing import UNLIMITED
from tests.end_to_end.malformed import QUICK, send_malformed
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow


async def test_malformed_requests_never_cause_a_server_error(tmp_path):
    with service_in(tmp_path, UNLIMITED | QUICK) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
        await asyncio.to_thread(service.start)
        counts, wrong = await send_malformed(service, number=200, seed=1)
        assert not wrong, (counts, wrong[0][:500])
        assert sum(counts.values()) >= 200
        assert counts["400"] > 20
        assert "unhandled" not in service.log()
