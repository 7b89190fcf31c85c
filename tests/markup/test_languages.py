"""The language of short questions."""

from pathlib import Path

import pytest

from service.markup.languages.detection import NAMES, language_of

SAMPLES = Path(__file__).parent.parent / "samples" / "questions" / "languages.tsv"


def test_language_of_short_questions_is_found():
    rows = [line.split("\t") for line in SAMPLES.read_text(encoding="utf-8").splitlines()]
    wrong = [(language, text) for language, text in rows if language_of(text) != language]
    assert len(rows) >= 200
    assert len({language for language, _ in rows}) >= 12
    assert len(wrong) <= 0.02 * len(rows), wrong


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welche Materialisierungen gibt es?", "de"),
        ("configure de-duplication", "en"),
        ("Why does `der-die-das --pour les` fail in el.los.una()?", "en"),
        ("Deployment和StatefulSet的区别", "zh"),
        ("", "en"),
        ("???", "en"),
        ("`" * 5_000, "en"),
    ],
)
def test_code_and_shared_words_do_not_decide_the_language(text, language):
    assert language_of(text) == language


def test_expected_language_decides_when_in_doubt():
    assert language_of("Windows?", expected=("de",)) == "de"
    assert language_of("StatefulSet vs Deployment", expected=("pt-BR", "en")) == "pt"
    assert language_of("And what is it for?", expected=("de",)) == "en"
    assert language_of("es", expected=("de", "es")) == "de"
    assert language_of("es", expected=("es", "de")) == "es"


def test_every_language_of_the_samples_has_a_name():
    assert {line.split("\t")[0] for line in SAMPLES.read_text(encoding="utf-8").splitlines()} <= NAMES.keys()
