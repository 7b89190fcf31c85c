"""Vectors that a site gives itself, without a model."""

import random
import sqlite3
from contextlib import closing

import pytest

from service.retrieval.index.bit_vectors import cosine_with, encode
from service.retrieval.index.learning import direction_of, learn, weights_of
from service.retrieval.index.own_vectors import FILE, update_own_vectors
from service.retrieval.search.fusion import OWN, join_own
from service.retrieval.search.query import SiteIndexes
from service.retrieval.search.question import Terms
from service.retrieval.search.ranking import Ranking
from tests.retrieval.sites import DOMAIN, build

THINGS = 12


def sections(seed=1):
    """Texts about twelve things; each has six words of its own and two names, which are never in one text."""
    chance = random.Random(seed)
    found = []
    for number in range(240):
        thing = number % THINGS
        words = [f"word{thing}{letter}" for letter in "abcdef"]
        name = f"thing{thing}{'xy'[number // THINGS % 2]}"
        found.append([word for _ in range(4) for word in (name, *chance.sample(words, 3))])
    return found


def test_words_used_alike_have_near_directions():
    known = learn(sections())

    def nearness(one, other):
        cosine = cosine_with(direction_of({one: 1.0}, known))
        return cosine(encode(direction_of({other: 1.0}, known)))

    for thing in range(THINGS):
        assert (
            nearness(f"thing{thing}x", f"thing{thing}y")
            > nearness(f"thing{thing}x", f"thing{(thing + 1) % THINGS}y") + 0.3
        )


def test_same_text_gives_the_same_directions():
    assert learn(sections()) == learn(sections())
    assert learn([]) == {}
    assert direction_of(weights_of(["unknown"]), learn(sections())) is None


PAGES = {f"p{n}.md": f"# Page {n}\n\n{' '.join(words)}\n" for n, words in enumerate(sections())}


@pytest.fixture
async def index(tmp_path):
    index = SiteIndexes(tmp_path, own_vectors=True)
    build(PAGES, index.path_of(DOMAIN, "i1"))
    await index.use(DOMAIN, "i1")
    yield index
    await index.close()


async def ranks(index):
    found = await index.search(DOMAIN, "thing3x word3a", explain=True)
    return [section.explanation.meaning_rank for section in found.sections]


async def test_search_uses_them_once_they_are_there(index):
    assert not any(await ranks(index))
    assert update_own_vectors(index.path_of(DOMAIN, "i1")) == len(PAGES)
    assert all(await ranks(index))


async def test_only_changed_sections_get_new_vectors(index):
    update_own_vectors(index.path_of(DOMAIN, "i1"))
    build(PAGES | {"p7.md": "# Page 7\n\nthing3x word3b\n", "p8.md": "# Page 8\n\nzzz\n"}, index.path_of(DOMAIN, "i2"))
    assert update_own_vectors(index.path_of(DOMAIN, "i2")) == 2
    assert update_own_vectors(index.path_of(DOMAIN, "i2")) == 0
    with closing(sqlite3.connect(index.path_of(DOMAIN, "i2").parent / FILE)) as db:
        assert db.execute("SELECT count(*) FROM vectors").fetchone() == (len(PAGES),)
    build({f"q{n}.md": f"# Other {n}\n\nanother text {n}\n" for n in range(9)}, index.path_of(DOMAIN, "i3"))
    assert update_own_vectors(index.path_of(DOMAIN, "i3")) == 9, "learned again"


def test_own_vectors_move_a_page_only_a_little():
    ranking = Ranking(Terms({}, (), {}), scores={1: 9.0, 2: 8.5, 3: 3.0})
    ranking.choose([1, 2, 3])
    join_own(ranking, {1: 0.1, 2: 0.9, 3: 1.0})
    assert [candidate.page for candidate in ranking.candidates] == [2, 1, 3]
    assert ranking.candidates[2].score == pytest.approx(1 / 3 + OWN)
