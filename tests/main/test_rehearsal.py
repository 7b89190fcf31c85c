"""The answer behind a start, which goes to no reader."""

import pytest

from service.domain.errors import Unavailable
from service.main.rehearsal import QUESTION, rehearse
from tests.fakes.search_index import FakeSearchIndex


@pytest.fixture
def index():
    index = FakeSearchIndex()
    for domain in ("one", "two"):
        index.put(domain, {"limits.md": "# Limits\n\nConfigure the default limit.\n"})
    return index


async def test_rehearsal_answers_a_question_on_the_first_site(index):
    await rehearse(index, ["one", "two"], may_search=True)
    assert set(index.queries) == {QUESTION}


async def test_rehearsal_makes_no_search_that_needs_a_provider(index):
    await rehearse(index, ["one", "two"], may_search=False)
    assert index.queries == []


async def test_rehearsal_goes_on_behind_a_site_that_fails(index):
    index.errors = [Unavailable("broken"), Unavailable("broken")]
    await rehearse(index, ["one", "two", "gone"], may_search=True)
    assert index.errors == []
