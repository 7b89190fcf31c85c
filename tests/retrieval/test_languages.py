"""Pages in sixteen languages, and questions as people type them: inflected, without accents, with particles."""

import asyncio
import json
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from service.retrieval.search.analysis.terms import words_in
from service.retrieval.search.query import SiteIndexes
from tests.retrieval.sites import Indexed


async def test_question_as_typed_finds_its_page_first(indexed: Indexed) -> None:
    samples = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
    await indexed.fill(samples["site"])
    found = {question: (await indexed.paths(question))[0] for question in samples["questions"]}
    assert found == samples["questions"]


def _shown(title: str) -> str:
    return " ".join(title.split())


def _folded(title: str) -> str:
    """Return a title without marks: dozens of one letter with different ones are more than a search looks through."""
    decomposed = unicodedata.normalize("NFKD", title).casefold()
    return "".join(each for each in decomposed if each.isalnum())


TITLES = (
    st.text(st.characters(categories=("L", "M", "N", "Zs", "Pd")), min_size=1, max_size=40)
    .map(_shown)
    .filter(words_in)  # a mark alone is no word
)


async def missed_titles(folder: Path, titles: list[str]) -> list[str]:
    """Return the titles whose pages are not the first that a search for them finds."""
    index = SiteIndexes(folder)
    indexed = Indexed(index)
    shown = [json.dumps(title, ensure_ascii=False) for title in titles]
    await indexed.fill({f"page{n}.md": f"---\ntitle: {title}\n---\n\nText.\n" for n, title in enumerate(shown)})
    firsts = [(await indexed.paths(title, limit=1))[:1] for title in titles]
    await index.close()
    return [title for number, title in enumerate(titles) if firsts[number] != [f"page{number}.md"]]


@settings(
    max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(st.lists(TITLES, min_size=40, max_size=40, unique_by=_folded))
def test_page_is_first_by_its_own_title(titles: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert asyncio.run(missed_titles(Path(folder), titles)) == []


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(TITLES, min_size=250, max_size=250, unique_by=_folded))
def test_page_is_first_by_its_own_title_of_many(titles: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert asyncio.run(missed_titles(Path(folder), titles)) == []
