"""Suggestions behind an answer."""

import pytest

from service.markup.suggestions import Suggestion, block, parted

PAGES = [Suggestion("Install", "/install"), Suggestion("First steps (quick)", "/first")]


def test_block_is_taken_off_for_readers_of_plain_text():
    text = "Run it [1](/run).\n"
    whole = text + block(PAGES, after=text)
    assert parted(whole) == ("Run it [1](/run).", [PAGES[0], Suggestion("First steps quick", "/first")])
    assert parted(block(PAGES, after="")) == ("", [PAGES[0], Suggestion("First steps quick", "/first")])


@pytest.mark.parametrize(
    "text", ["", "Text.", "Text.\n\n```suggestions\n(A)[/a]\n", "```suggestions\n(A)[/a]\n```\n\nText behind it."]
)
def test_text_without_a_block_at_its_end_stays(text):
    assert parted(text) == (text, [])
