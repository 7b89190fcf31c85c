"""Ids and the clock."""

from service.runtime.system import new_capability


def test_capability_never_looks_like_an_option_or_a_formula():
    made = {new_capability() for _ in range(2000)}
    assert len(made) == 2000
    assert all(len(one) == 32 and one[0].isalnum() for one in made)
