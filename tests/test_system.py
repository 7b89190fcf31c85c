"""Ids and the clock."""

from service.runtime.system import new_capability


def test_a_capability_is_neither_an_option_nor_a_formula_to_whoever_it_is_given():
    made = {new_capability() for _ in range(2000)}
    assert len(made) == 2000
    assert all(len(one) == 32 and one[0].isalnum() for one in made)
