"""Comparing two sequences within a budget."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.texts.comparison import Effort, TooMuchEffort, coarse_opcodes, opcodes

ITEMS = st.lists(st.sampled_from("abc"), max_size=30)


def remade(before, after, found):
    """``after``, made of ``before`` and what the opcodes take of ``after``."""
    made = []
    for tag, a, b, c, d in found:
        made += before[a:b] if tag == "equal" else after[c:d]
    assert [part for _, a, b, _, _ in found for part in before[a:b]] == list(before)
    return made


@given(ITEMS, ITEMS)
def test_opcodes_make_one_of_the_other(before, after):
    found = opcodes(before, after, Effort(1_000_000), most=1_000_000)
    assert remade(before, after, found) == after
    assert remade(before, after, coarse_opcodes(before, after)) == after


@given(ITEMS, ITEMS, st.integers(0, 200))
def test_comparison_stays_within_its_budget(before, after, most):
    effort = Effort(150)
    found = opcodes(before, after, effort, most=most)
    assert 150 - min(most, 150) <= effort.left <= 150
    if found is not None:
        assert remade(before, after, found) == after


def test_repeated_items_end_the_comparison():
    before, after, effort = ".!" * 200, ".?" * 200, Effort(10_000_000)
    assert opcodes(before, after, effort, most=100_000) is None
    assert effort.left == 9_900_000
    assert opcodes("the old way", "the new way", effort, most=100_000) == [
        tuple(one) for one in SequenceMatcher(None, "the old way", "the new way").get_opcodes()
    ]


def test_effort_ends():
    effort = Effort(2)
    effort.spend(2)
    with pytest.raises(TooMuchEffort):
        effort.spend(1)
