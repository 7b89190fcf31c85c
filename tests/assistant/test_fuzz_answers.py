"""Hostile answers in three renderers, as ``scripts/fuzz-answers`` tries them; DOCSMITH_FUZZ_TEXTS says how many."""

import os

import pytest

from scripts.fuzz_answers import failed_of, run
from tests.node_packages import require_packages
from tests.renderers.renderers import HERE

pytestmark = [pytest.mark.node, pytest.mark.slow]
TEXTS = int(os.environ.get("DOCSMITH_FUZZ_TEXTS", "3000"))


def test_hostile_answers_are_safe_in_every_renderer():
    require_packages(HERE)
    counts, failures = run(seed=12, numbers=range(TEXTS), processes=1)
    assert failures == []
    assert failed_of(counts) == 0
    assert counts["texts"] == TEXTS
    assert counts["code"] > TEXTS
