"""Marks without end behind one letter: Python sorts them in one call, which no deadline stops."""

import unicodedata

import pytest

from service.domain.texts.unicode_forms import MAX_MARKS, normalized
from service.domain.threads.question_normalization import wording
from service.retrieval.search.analysis.writing_systems import without_phrases
from service.retrieval.search.questions.question import MAX_QUERY, words_of_question
from tests.hostile.growth import seconds
from tests.retrieval.sites import build

MARKS = ["\u0315\u0300", "\uff9e\u0315", "\u0f73\u0315", "\u0301\u0344\u0323"]


@pytest.mark.parametrize("marks", MARKS, ids=ascii)
def test_long_runs_of_marks_are_normalized_in_moments(marks):
    text = marks * (200_000 // len(marks))
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert len(seconds_of(form, "a" + text)) <= 4 * MAX_MARKS


def seconds_of(form, text):
    found = []
    seconds(lambda whole: found.append(normalized(form, whole)), text)
    return found[0]


@pytest.mark.parametrize("text", ["Côte d'Azur ﬁne ㌔ ﷺ", "e\u0301" * 50, "─" * 200 + "é", "ผู้ใช้" * 50, "…" * 60])
def test_texts_of_languages_are_normalized_as_unicode_says(text):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert normalized(form, text) == unicodedata.normalize(form, text)


def test_questions_of_marks_are_read_in_moments():
    question = "a" + MARKS[0] * 100_000
    seconds(wording, question)
    seconds(without_phrases, question)


def test_page_of_marks_is_indexed_with_its_site(tmp_path):
    text = f"# Marks\n\na{MARKS[0] * 200_000}\n\n## b{MARKS[0] * 10_000}\n\nWords.\n"
    assert build({"a.md": text, "b.md": "# B\n\nWords."}, tmp_path / "index").pages == 2


def test_question_does_not_grow_by_normalization():
    assert len("".join(words_of_question("\ufdfa " * MAX_QUERY))) <= MAX_QUERY
