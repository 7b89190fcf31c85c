"""What a model writes behind a text that was cut off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.assistant.showing.joint import Joint

TEXT = "Fetch the kite from the shed, unroll 30 m of string, and hold it by the reel [2]. Then wait for the wind."


def joined(begun, *pieces):
    joint = Joint(begun)
    return begun + "".join(joint.feed(piece) for piece in pieces) + joint.finish()


@given(st.integers(20, len(TEXT)), st.one_of(st.just(0), st.integers(14, 90)), st.integers(1, 9))
def test_repeated_words_stand_there_once(cut, repeated, size):
    begun = TEXT[:cut]
    rest = begun[max(0, cut - repeated) :] + TEXT[cut:] if repeated else TEXT[cut:]
    assert joined(begun, *(rest[at : at + size] for at in range(0, len(rest), size))) == TEXT


@pytest.mark.parametrize(
    ("begun", "rest", "text"),
    [
        ("Hold the str", "string.", "Hold the string."),
        ("Hold the str", "ing.", "Hold the string."),
        ("Hold the str", "the string.", "Hold the string."),
        ("To install", "To install Kite", "To install Kite"),
        ("To install ", "To install Kite", "To install Kite"),
        ("Again and", " again and again", "Again and again and again"),
        ("Try it again and ", "again and again", "Try it again and again and again"),
        ("Hold the ", " string.", "Hold the string."),
        ("Hold the", " string.", "Hold the string."),
        ("Steps:\n", "\n\n1. Hold it.", "Steps:\n\n1. Hold it."),
        ("Steps:\n\n", "1. Hold it.", "Steps:\n\n1. Hold it."),
        ("0000 0000 0000 ", "0000 0000 0000 1", "0000 0000 0000 0000 0000 0000 1"),
        ("had", " had it", "had had it"),
        ("Hold the string.", "Hold the string. Then wait.", "Hold the string. Then wait."),
        ("Hold the string.", "", "Hold the string."),
        ("", "Hold", "Hold"),
    ],
)
def test_rest_is_joined_as_it_was_meant(begun, rest, text):
    assert joined(begun, rest) == text


def test_words_that_repeat_nothing_are_not_held_back():
    joint = Joint("Hold the string")
    assert joint.feed(" and wait") == " and wait"
    assert joint.feed(" for") == " for"
