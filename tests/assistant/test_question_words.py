"""The words that are searched for."""

import pytest

from service.assistant.finding.query import is_about_this_page, queries_for
from service.assistant.question import Exchange
from service.domain.search import Source
from service.domain.threads.threads import ContextItem

BREW = Source(1, "install/mac.md", "/install/mac#brew", "Install on a Mac", "Homebrew", 1, 9, "c")
INSTALL = Exchange("How do I install the CLI with Homebrew?", "Run `brew install`.")
CITED = Exchange(INSTALL.question, INSTALL.answer, (BREW, BREW))


def test_a_question_is_searched_for_as_it_was_asked():
    assert queries_for("How do I deploy\nto  Vercel?").texts == ("How do I deploy to Vercel?",)
    rotate = "How do I rotate all the old signing keys?"
    assert queries_for(rotate, earlier=[INSTALL]).texts == (rotate,)


@pytest.mark.parametrize(
    "question",
    [
        "And on Windows?",
        "what about Windows?",
        "Does it work on Windows?",
        "Does it also work with the old terminal of Windows?",
        "and where does the installer put configuration files?",
        "Und wie geht das unter Windows?",
        "¿Cómo puedo eliminarlo en Windows?",
    ],
)
def test_follow_up_is_searched_with_the_subject_before(question):
    found = queries_for(question, earlier=[INSTALL])
    assert found.texts == (f"{question} install CLI Homebrew",)
    assert found.asked == found.texts[0]


def test_question_that_may_have_a_subject_is_searched_alone_first():
    assert queries_for("and on Windows?", earlier=[INSTALL]).alone == ""
    assert queries_for("Can it compress large archives?", earlier=[INSTALL]).alone == "Can it compress large archives?"


def test_pages_of_the_last_answer_are_expected_and_add_their_titles():
    found = queries_for("How can I remove it afterwards?", earlier=[CITED])
    assert found.texts == ("How can I remove it afterwards? install CLI Homebrew Mac",)
    assert found.asked == "How can I remove it afterwards? install CLI Homebrew"
    assert found.pages == ("install/mac.md",)
    assert queries_for("How do I rotate all the old signing keys?", earlier=[CITED]).pages == ()


@pytest.mark.parametrize("question", ["what are the downsides?", "Windows?"])
def test_few_words_are_searched_with_and_without_the_subject(question):
    with_subject, alone = queries_for(question, earlier=[INSTALL]).texts
    assert (with_subject, alone) == (f"{question} install CLI Homebrew", question)
    assert queries_for(question, earlier=[INSTALL]).alone == question


@pytest.mark.parametrize(
    "question",
    [
        "yaml for a startup probe that gives up after 5 minutes",
        "get rid of a statefulset but leave its pods running",
        "/users/me answers that 'me' is not a valid integer",
        "How do I drain a node?",
        "exit code 28",
    ],
)
def test_question_with_a_subject_of_its_own_is_searched_alone(question):
    assert queries_for(question, earlier=[INSTALL]).texts == (question,)


def test_chain_of_short_questions_leads_to_the_one_with_subject():
    chained = queries_for("and Linux?", earlier=[INSTALL, Exchange("and Windows?", "Run the installer.")])
    assert chained.texts == ("and Linux? Windows install CLI Homebrew",)


def test_this_page_is_the_page_that_is_open():
    assert is_about_this_page("Can you summarize this page?")
    assert is_about_this_page("Worum geht es auf dieser Seite?")
    assert not is_about_this_page("How do I add a page?")
    assert queries_for("Can you summarize this page?", page_title="Limits").texts == ("Can you summarize ? Limits",)


def test_selections_add_their_words_once():
    selected = ContextItem("code", "const limiter = createRateLimiter(limiter, {})")
    found = queries_for("What is this for?", context=[selected])
    assert found.texts == ("What is this for? const limiter createRateLimiter",)
    assert found.asked == "What is this for?"


def test_a_pasted_log_does_not_make_a_query_of_its_length():
    found = queries_for("error " * 5_000, earlier=[CITED], context=[ContextItem("code", "word%d " * 3_000)])
    assert all(len(text) < 1_500 for text in found.texts)
