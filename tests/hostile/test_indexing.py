"""Indexing a hostile site, from its archive to its index, takes time in proportion to its size."""

import pytest

from tests.hostile.growth import assert_linear
from tests.retrieval.sites import build

pytestmark = pytest.mark.slow

PAGES = {
    "hex dump": "0123456789abcdef",
    "capitals": "A",
    "humps": "aB",
}


@pytest.mark.parametrize("unit", PAGES.values(), ids=PAGES)
def test_long_words_are_indexed_in_linear_time(tmp_path, unit):
    built = iter(range(1000))

    def index(text):
        report = build({"a.md": f"# Dump\n\n```\n{text}\n```\n"}, tmp_path / f"index{next(built)}")
        assert (report.pages, report.skipped) == (1, ())

    assert_linear(index, lambda size: unit * (size // len(unit)), "index", first=100_000, largest=100_000)
