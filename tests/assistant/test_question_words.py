"""What is searched for."""

import pytest

from service.assistant.query import is_about_this_page, query_for
from service.domain.threads.threads import ContextItem

EARLIER = ["How do I install the CLI with Homebrew?"]


def test_a_question_is_searched_for_as_it_was_asked():
    assert query_for("How do I deploy\nto  Vercel?") == "How do I deploy to Vercel?"
    assert (
        query_for("How do I rotate the signing keys?", earlier_questions=EARLIER) == "How do I rotate the signing keys?"
    )


@pytest.mark.parametrize("question", ["And on Windows?", "what about Windows?", "Windows?", "Does it work on Windows?"])
def test_dependent_follow_up_gets_words_of_the_question_before(question):
    assert query_for(question, earlier_questions=EARLIER) == f"{question} install CLI Homebrew"


def test_chain_of_short_questions_leads_to_the_one_with_subject():
    chained = query_for("and Linux?", earlier_questions=[*EARLIER, "and Windows?"])
    assert chained == "and Linux? Windows install CLI Homebrew"


def test_this_page_is_the_page_that_is_open():
    assert is_about_this_page("Can you summarize this page?")
    assert is_about_this_page("Worum geht es auf dieser Seite?")
    assert not is_about_this_page("How do I add a page?")
    assert query_for("Can you summarize this page?", page_title="Limits") == "Can you summarize ? Limits"


def test_selections_add_their_words_once():
    selected = ContextItem("code", "const limiter = createRateLimiter(limiter, {})")
    assert query_for("What is this for?", context=[selected]) == "What is this for? const limiter createRateLimiter"


def test_a_pasted_log_does_not_make_a_query_of_its_length():
    assert len(query_for("error " * 5_000, context=[ContextItem("code", "word%d " * 3_000)])) < 1_500
