"""Three instances over PostgreSQL, replaced one by one under load: the short form of scripts/rolling-upgrade."""

import pytest

from scripts.rolling_run import upgrade

pytestmark = pytest.mark.slow


async def test_instances_are_replaced_without_a_refused_request(tmp_path):
    found = await upgrade(tmp_path, rounds=1, drain_seconds=None, between_seconds=0.0)
    assert dict(found.load.refused) == {}
    assert found.lost == []
    assert (found.counts["refused"], found.counts["cut"]) == (0, 0)
    assert len(found.seconds) == 3
    assert all(found.load.done[kind] for kind in ("read", "question", "job"))
