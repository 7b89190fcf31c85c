"""Shares of work on what others sent: one organization cannot take what all need."""

import asyncio
from collections import Counter

import pytest
from msgspec.json import encode

from service.domain.errors import Invalid
from service.ports.bounds import ignore_bounds
from service.ports.search_index import SearchResult
from service.queries.evaluation import Question, evaluate_site, parse_questions
from service.runtime.shares import Seats
from service.web.api.organization.site_checks import trials
from service.web.http.hosted import PageTurns

TIMEOUT = 20


class TestSeats:
    def test_owner_holds_its_share_and_no_more(self):
        counted = Counter()
        seats = Seats((2, 1), on_refused=lambda: counted.update({"live_pages": 1}))
        with seats.seat("a", "a1") as first, seats.seat("a", "a2") as second:
            assert first
            assert second
            for owners in (("a", "a3"), ("a", "a1")):
                with seats.seat(*owners) as third:
                    assert not third
            with seats.seat("b", "b1") as other:
                assert other
        with seats.seat("a", "a1") as again:
            assert again
        assert counted == {"live_pages": 2}

    def test_seat_is_free_again_after_an_error(self):
        seats = Seats((1,), on_refused=lambda: None)
        with pytest.raises(ConnectionError), seats.seat("a"):
            raise ConnectionError
        with seats.seat("a") as again:
            assert again

    def test_seat_that_is_used_no_more_is_free(self):
        seats, used = Seats((1,), on_refused=lambda: None), [True]
        with seats.seat("a", is_used=lambda: used[0]):
            with seats.seat("a") as second:
                assert not second
            used[0] = False  # the page was closed
            with seats.seat("a") as third:
                assert third


async def test_organization_with_many_projects_leaves_page_turns():
    async def organization_of(project_id):
        return project_id[0]

    turns, begun, end = PageTurns(ignore_bounds, organization_of), [], asyncio.Event()

    async def look(project_id):
        async with turns.slot(project_id):
            begun.append(project_id)
            await end.wait()

    async with asyncio.timeout(TIMEOUT), asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(look(f"a{number}"))
        other = asyncio.ensure_future(turns.slot("b1").__aenter__())
        await other
        assert len(begun) == 4
        end.set()
    assert len(begun) == 8


class FakeIndex:
    """Counts the searches that are under way at once."""

    def __init__(self):
        self.now = self.most = self.all = 0

    async def read_page(self, *_):
        return None

    async def search(self, *_, **__):
        self.now, self.all = self.now + 1, self.all + 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return SearchResult("c" * 40, ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (encode({"query": "How?", "facts": ["a"] * 101}).decode(), "at most 100"),
        (encode({"query": "How?", "relevant": ["a"] * 101}).decode(), "at most 100"),
        ('{"query": "How?", "facts": ["a"]}\n' * 3, "more than 2"),
        ("\n" * 10_000, "0 questions"),
    ],
)
def test_golden_questions_have_bounds(text, reason):
    with pytest.raises(Invalid, match=reason):
        parse_questions(text, "The text", most=2)


async def test_golden_questions_take_one_search_at_a_time():
    index, shares = FakeIndex(), trials(ignore_bounds)
    questions = [Question("How?", ("index.md",))] * 3

    async def judged(_domain, _text):
        raise AssertionError

    async def run(organization_id):
        await evaluate_site(
            index, "kite", questions, lambda *_: None, judged, lambda: shares.searches.slot(organization_id)
        )

    async with asyncio.timeout(TIMEOUT), asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(run(name))
    assert (index.most, index.all) == (1, 9)
