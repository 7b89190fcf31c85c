"""What a model writes, and what it is given, is read in time proportional to its length."""

import pytest

from service.assistant.showing.joint import Joint
from service.retrieval.material.cutting import beginning
from service.sentences.units import UnitReader
from tests.hostile.growth import assert_linear, seconds

UNITS = ("a", "ab", "\n", "- a\n", "| a |\n", "Word is here. ", "`a ", "[1](/a) ", "```\n\n")


@pytest.mark.parametrize("unit", UNITS)
def test_text_that_goes_on_is_joined_in_linear_time(unit):
    def join(text):
        joint = Joint(text)
        joint.feed(text[:-1])
        joint.feed("!")
        joint.finish()

    assert_linear(join, lambda size: unit * (size // len(unit)), repr(unit))


@pytest.mark.parametrize("unit", UNITS)
def test_answer_is_split_in_linear_time(unit):
    assert_linear(lambda text: UnitReader().feed(text), lambda size: unit * (size // len(unit)), repr(unit))


@pytest.mark.parametrize("unit", ["- a\n", "a\n\n", "| a |\n"])
def test_no_more_of_a_text_is_read_than_fits(unit):
    seconds(lambda text: beginning(text, 600), unit * (2_000_000 // len(unit)))
