"""Combinations of what providers do otherwise, in short; scripts/provider-variations tries 200 and more."""

import pytest

from scripts.provider_variations import OPENAI, run, variations
from scripts.provider_variations_anthropic import ANTHROPIC

pytestmark = pytest.mark.slow

COUNT = 30


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_variations_lose_nothing_and_show_words_alone(tmp_path, dialect):
    given = variations(COUNT, 3, dialect)
    assert {one.framing for one in given} == set(dialect.framings)
    assert {one.place for one in given} == set(dialect.places)
    assert run(tmp_path, COUNT, 3, dialect) == ([], [])
