"""A real small model, where one is installed: scripts/small-model FOLDER, then DOCSMITH_SMALL_MODEL=FOLDER."""

import os
from pathlib import Path

import pytest

from scripts.small_model import JOBS, QUESTIONS, outcomes_of

FOLDER = os.environ.get("DOCSMITH_SMALL_MODEL", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="asks a model on this machine; install it with scripts/small-model FOLDER"),
]


@pytest.mark.parametrize("window", [2_048, 8_192])
def test_question_and_job_end_in_an_outcome(window):
    outcomes = outcomes_of(Path(FOLDER), window, QUESTIONS[:3], JOBS[:1])
    assert [one for one in outcomes if one.trouble] == []
