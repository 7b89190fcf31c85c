"""The questions that answers are measured by are well formed."""

from collections import Counter

from scripts.answers.questions import KINDS, asked_questions, missing_words, normalized

QUESTIONS = asked_questions()


def test_questions_have_unique_ids_and_known_kinds():
    assert max(Counter(one.id for one in QUESTIONS).values()) == 1
    assert {one.kind for one in QUESTIONS} == set(KINDS)
    assert all(one.pages and one.words and one.q.strip() for one in QUESTIONS)
    assert all(bool(one.before) for one in QUESTIONS if one.kind == "follow-up")


def test_half_of_the_questions_is_held_back():
    for corpus, number in Counter(one.corpus for one in QUESTIONS).items():
        held = sum(one.held for one in QUESTIONS if one.corpus == corpus)
        assert abs(number - 2 * held) <= 1


def test_a_question_does_not_hold_its_answering_words():
    for one in QUESTIONS:
        said = normalized(" ".join([one.q, *(text for turn in one.before for text in turn)]))
        choices = [(words,) if isinstance(words, str) else words for words in one.words]
        assert not [words for choice in choices for words in choice if normalized(words) in said], one.id
        assert not [words for choice in choices for words in choice if len(normalized(words)) < 8], one.id


def test_words_are_found_through_markdown_and_line_ends():
    question = next(one for one in QUESTIONS if one.id == "kubernetes-12")
    page = "A Pod ends\nwith the *default*\n   [grace period](/docs/x#y) (`30` seconds)."
    assert not missing_words(question, normalized(page))
    assert missing_words(question, normalized(page.replace("30", "60")))
