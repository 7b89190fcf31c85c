"""Answers with known slips: of an invented product, and of real documentation where there is any."""

import os
from pathlib import Path

import pytest

from scripts.bench_checks import FOUND, MARKED, SET, answers_in, measured

SAMPLES = Path(__file__).parent.parent / "samples" / "checks"
CORPORA = Path(os.environ.get("DOCSMITH_CORPORA") or "corpora")


def test_planted_slips_are_found_and_true_sentences_stand():
    found = measured(answers_in((SAMPLES / "answers.txt").read_text("utf-8")), SAMPLES, orders=5)
    assert (found["marked"], found["differ"]) == ([], 0)
    assert len(found["missed"]) <= (1 - FOUND / 100) * found["slips"], found["missed"]


def test_true_sentences_about_real_documentation_stand():
    if not (CORPORA / "kubernetes").is_dir():
        pytest.skip("no corpora here")
    found = measured(answers_in(SET.read_text("utf-8")), CORPORA)
    assert len(found["marked"]) <= MARKED / 100 * found["sentences"], found["marked"]
