"""Texts that become eighteen times as long when they are normalized are refused before that costs anything."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.errors import Invalid
from service.domain.jobs.decider import AddMessage, Message
from service.domain.jobs.decider import decide as decide_job
from service.domain.texts.unicode_forms import MAX_CHARACTERS, is_too_large
from service.domain.threads.threads import decide as decide_thread
from service.queries.evaluation import Question, problem_of
from tests.domain.test_jobs import NOW, OPEN, REQUEST, START, after
from tests.domain.test_threads import AGAIN
from tests.domain.test_threads import START as THREAD
from tests.domain.test_threads import after as thread_after

GROWS = "\ufdfa"
LARGEST = GROWS * (MAX_CHARACTERS // 18)
TOO_LARGE = [GROWS * MAX_CHARACTERS, LARGEST + GROWS, "x" * (MAX_CHARACTERS + 1), "x" * (MAX_CHARACTERS - 1) + "\u2026"]


@pytest.mark.parametrize("text", TOO_LARGE, ids=["all", "one more", "long", "dots"])
def test_text_that_is_too_large_in_either_form_is_refused(text):
    assert is_too_large(text)
    with pytest.raises(Invalid):
        post(text)
    with pytest.raises(Invalid):
        decide_job(replace(REQUEST, messages=(Message("user", text),)), after())
    with pytest.raises(Invalid):
        decide_job(AddMessage(text, NOW), after(REQUEST, START, OPEN))
    assert problem_of(Question(query=text))


def post(text):
    return decide_thread(replace(AGAIN, text=text), thread_after(THREAD))


def test_largest_texts_are_taken():
    for text in (LARGEST, "x" * MAX_CHARACTERS, "\u00e4" * MAX_CHARACTERS):
        assert not is_too_large(text)
        post(text)


@given(st.text(st.sampled_from("a\u00e4\ufdfa\ufb01\u0301\u1100\u1161")), st.integers(0, 60))
def test_size_is_that_of_the_normal_form(text, most):
    assert is_too_large(text, most) == (len(text) > most or len(unicodedata.normalize("NFKC", text)) > most)
