"""Search by meaning beside words: it orders better where it can, and is never waited for long or needed."""

import asyncio
import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import Invalid, Unavailable
from service.ports.search_index import MaterialRequest
from service.retrieval.index.bit_vectors import cosine_with, encode
from service.retrieval.index.vectors import Vectors, content_hash
from service.retrieval.search.fusion import MEANING, join_meaning
from service.retrieval.search.meaning import REST_SECONDS, Meaning
from service.retrieval.search.query import SiteIndexes
from service.retrieval.search.questions.question import Terms
from service.retrieval.search.ranking import Ranking
from tests.fakes.embeddings import FakeEmbeddings
from tests.retrieval.sites import DOMAIN, build

ALIKE = {"car": "car", "automobile": "car", "banana": "fruit", "plum": "fruit"}
BETTER = {
    **{f"{n}.md": f"# Repair {n}\n\nRepair the plum banana, repair it, repair it well.\n" for n in range(3)},
    "b.md": "# Something else\n\nWhen an automobile needs repair, call us.\n",
}
SITE = {
    "a.md": "# Repair one\n\nRepair the plum banana, repair it, repair it well.\n",
    "b.md": "# Something else\n\nWhen an automobile needs repair, call us.\n",
    "c.md": "# Other\n\nA text about nothing at all.\n",
}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def made(tmp_path, request):
    class Made:
        model, clock = FakeEmbeddings(ALIKE), Clock()
        meaning = Meaning(tmp_path, model, wait_seconds=getattr(request, "param", 60), clock=clock)
        index = SiteIndexes(tmp_path, meaning=meaning)

        async def embed_all(self) -> None:
            texts = await self.index.meanings(DOMAIN, list((await self.index.hashes(DOMAIN)).values()))
            vectors = await self.model.embed(list(texts.values()), timeout_seconds=1)
            (await self.meaning.vectors(DOMAIN)).add(dict(zip(texts, vectors, strict=True)))

        async def paths(self, query: str, **options: object) -> list[str]:
            found = await self.index.search(DOMAIN, query, **options)
            return list(dict.fromkeys(section.path for section in found.sections))

    made = Made()
    build(SITE, made.index.path_of(DOMAIN, "i1"))
    await made.index.use(DOMAIN, "i1")
    yield made
    await made.index.close()


async def test_nearer_page_precedes_one_with_more_words(made):
    assert await made.paths("repair a car") == ["a.md", "b.md"]
    await made.embed_all()
    assert await made.paths("repair a car") == ["b.md", "a.md"]


async def test_search_by_words_asks_no_model(made):
    await made.embed_all()
    asked = len(made.model.texts)
    by_words = made.index.by_words()
    found = await by_words.search(DOMAIN, "repair a car")
    material = await by_words.find_material(DOMAIN, MaterialRequest(("repair a car",), 1_000))
    assert [section.path for section in found.sections] == ["a.md", "b.md"]
    assert material.sections
    assert len(made.model.texts) == asked


def joined(words, near):
    ranking = Ranking(Terms({}, (), {}), scores=dict(enumerate(words, 1)))
    ranking.choose(list(ranking.scores))
    join_meaning(ranking, near)
    return {candidate.page: candidate.score for candidate in ranking.candidates}


def test_meaning_counts_by_how_near_not_by_rank():
    near = joined([9.0, 3.0, 3.0], {1: 0.50, 2: 0.52, 3: 0.8})
    assert list(near) == [3, 1, 2]
    assert near[3] == pytest.approx(1 / 3 + MEANING)
    assert near[1] == pytest.approx(1.0)


def test_cosines_that_hardly_differ_leave_the_words_order():
    assert list(joined([9.0, 8.5, 3.0], {1: 0.800, 2: 0.801, 3: 0.803})) == [1, 2, 3]


def test_page_without_vector_counts_by_its_words_for_both():
    assert list(joined([9.0, 6.0, 3.0], {1: 0.2, 2: 0.7})) == [2, 1, 3]


def test_words_decide_until_half_of_the_pages_are_embedded():
    assert joined([9.0, 6.0, 3.0], {3: 0.7}) == {1: 9.0, 2: 6.0, 3: 3.0}
    assert joined([9.0, 6.0], {}) == {1: 9.0, 2: 6.0}


async def test_pages_of_like_meaning_precede_pages_of_the_words_only(made):
    build(BETTER, made.index.path_of(DOMAIN, "i2"))
    await made.index.use(DOMAIN, "i2")
    assert (await made.paths("repair a car"))[-1] == "b.md"
    await made.embed_all()
    assert "b.md" in (await made.paths("repair a car"))[:2]


async def why(made):
    found = await made.index.search(DOMAIN, "repair my car", explain=True)
    return {section.path: section.explanation for section in found.sections}


async def test_explanation_shows_both_ranks(made):
    await made.embed_all()
    told = await why(made)
    assert (told["a.md"].word_rank, told["a.md"].meaning_rank) == (1, 2)
    assert (told["b.md"].word_rank, told["b.md"].meaning_rank) == (2, 1)


async def test_without_vectors_words_decide(made):
    assert await made.paths("repair a car") == ["a.md", "b.md"]
    assert (await why(made))["b.md"].meaning_rank == 0


async def test_model_that_is_down_costs_no_result_and_gets_a_pause(made):
    await made.embed_all()
    before, made.model.texts = len(made.model.texts), []
    made.model.errors = [Unavailable("down"), Unavailable("down")]
    assert set(await made.paths("repair a car")) == {"a.md", "b.md"}
    assert set(await made.paths("repair a truck")) == {"a.md", "b.md"}
    assert len(made.model.errors) == 1, "the second question did not ask it"
    made.clock.now += REST_SECONDS + 1
    made.model.errors = []
    await made.paths("repair a car")
    assert made.model.texts == ["repair a car"]
    assert before


async def test_question_with_vector_of_no_direction_goes_by_words(made):
    await made.embed_all()
    made.model.answers = [[math.nan, 1.0]]
    assert await made.paths("repair a car") == ["a.md", "b.md"]
    made.clock.now += REST_SECONDS + 1
    assert await made.paths("repair a car") == ["b.md", "a.md"]


async def test_model_that_became_another_is_noticed_by_a_question(made):
    await made.embed_all()
    made.model.answers = [[1.0, 2.0], [2.0, 1.0]]
    assert await made.paths("repair a car") == ["a.md", "b.md"]
    await made.paths("repair a truck")
    assert [made.meaning.outdated.get_nowait(), made.meaning.outdated.empty()] == [DOMAIN, True]


@pytest.mark.parametrize("made", [0.05], indirect=True)
async def test_a_model_that_is_slow_is_not_waited_for(made):
    await made.embed_all()
    made.model.hold = asyncio.Event()
    async with asyncio.timeout(60):
        assert set(await made.paths("repair a car")) == {"a.md", "b.md"}


async def test_a_question_is_embedded_once(made):
    await made.embed_all()
    made.model.texts = []
    for _ in range(3):
        await made.paths("repair a car")
    assert made.model.texts == ["repair a car"]


def test_vectors_stay_with_the_content_and_go_with_it(tmp_path):
    vectors = Vectors(tmp_path, "m")
    one, two = content_hash("T", ["H"], "one"), content_hash("T", ["H"], "two")
    vectors.add({one: [3.0, 4.0]})
    vectors.close()
    vectors = Vectors(tmp_path, "m")
    assert vectors.missing([one, two, two]) == [two]
    assert vectors.nearness([one, two], [4.0, 3.0]) == {one: pytest.approx(0.96, abs=0.02)}
    assert vectors.nearness([one], [1.0, 0.0, 0.0]) == {}, "of another length"
    assert vectors.nearness([one], [0.0, 0.0]) == {}
    vectors.add({two: [1.0, 0.0]})
    vectors.keep_only([two])
    assert vectors.missing([one, two]) == [one]
    other = Vectors(tmp_path, "n")
    assert other.missing([two]) == [two]
    bad = {b"1": [], b"2": [0.0, 0.0], b"3": [float("nan"), 1.0], b"4": [float("inf"), 1.0], b"5": [1.0] * 9000}
    assert vectors.add(bad) == list(bad)
    vectors.close()
    other.close()


def test_vectors_wait_for_another_one_that_makes_their_file(tmp_path):
    Vectors(tmp_path, "m").close()
    (file,) = tmp_path.glob(".vectors-*.db")
    file.unlink()
    with closing(sqlite3.connect(file, isolation_level=None)) as other, ThreadPoolExecutor(1) as threads:
        other.execute("BEGIN IMMEDIATE")
        opening = threads.submit(Vectors, tmp_path, "m")
        with suppress(TimeoutError):  # an error would come at once
            opening.result(timeout=0.2)
        other.execute("COMMIT")
        opening.result().close()


def test_vectors_of_another_length_replace_all_others(tmp_path):
    vectors = Vectors(tmp_path, "m")
    vectors.add({b"a": [1.0, 2.0], b"b": [2.0, 1.0]})
    assert vectors.dimensions() == 2
    vectors.add({b"b": [1.0, 2.0, 3.0]})
    assert (vectors.dimensions(), vectors.missing([b"a", b"b"])) == (3, [b"a"])
    vectors.close()


def test_vectors_of_an_earlier_model_go_once_all_are_made(tmp_path):
    for name in ("first", "second"):
        vectors = Vectors(tmp_path, name)
        vectors.add({b"a": [1.0, 2.0]})
        vectors.keep_only([b"a"])
        vectors.close()
    assert {file.name.split("-")[1] for file in tmp_path.glob(".vectors-*")} == {"second"}


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=60))
def test_cosines_of_rounded_vectors_are_near(pairs):
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    encoded, cosine = encode(other), cosine_with(one)
    lengths = math.hypot(*one) * math.hypot(*other)
    if encoded is None or cosine is None or not lengths:
        return
    assert cosine(encoded) == pytest.approx(sum(map(mul, one, other)) / lengths, abs=0.12)
    assert cosine(encode([*other, 1.0])) is None


@given(st.text(max_size=30), st.text(max_size=30))
def test_hash_distinguishes_contents(one, other):
    assert (content_hash("T", [], one) == content_hash("T", [], other)) == (one == other) or "\ud800" in one + other


async def test_no_file_is_made_for_what_is_no_domain(made, tmp_path):
    for domain in ("..", "a/b", "", "a..b"):
        with pytest.raises(Invalid):
            await made.meaning.vectors(domain)
        assert await made.meaning.nearness(domain, "x") is None
    assert await made.meaning.nearness("other.example.com", "x") is None
    assert [each.name for each in tmp_path.iterdir()] == [DOMAIN]
