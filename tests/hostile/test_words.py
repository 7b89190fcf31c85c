"""What readers ask, what models write and what the builtin models read takes time in proportion to its length."""

import pytest

from service.adapters.builtin import question_words, quotable
from service.adapters.builtin.editing import forms as builtin_forms
from service.agent.tools.matches import find_text
from service.assistant import context
from service.assistant.addresses import KnownAddresses
from service.assistant.finding import query
from service.assistant.sentence_checks.withheld import CodeReader
from service.assistant.showing.answer_text import AnswerText
from service.domain.threads.question_normalization import wording
from service.markup import suggestions
from service.markup.prose import words_of
from service.sentences.checker import SentenceChecker
from service.sentences.code_lines import CodeJudge
from service.sentences.passages import GivenPassage, Passages
from tests.hostile.growth import assert_linear

pytestmark = pytest.mark.slow


def streamed(text):
    """An answer on its way to a reader, in pieces as models send them, then at once."""
    for length in (5, len(text)):
        answer = AnswerText(lambda number: f"/p{number}", lambda _: False)
        for at in range(0, len(text), length):
            answer.feed(text[at : at + length])
        answer.finish()


def known(text):
    KnownAddresses("docs.example.com", "").add(text)


def checked(text):
    """An answer held against a passage, in pieces as models send them."""
    checker = SentenceChecker([text])
    checker.add_passages([GivenPassage(1, text)])
    for at in range(0, len(text), 5):
        checker.judge(checker.feed(text[at : at + 5]))
    checker.judge(checker.finish())


def withheld(text):
    """An answer whose code is looked for, in pieces as models send them, then at once; and a block with its words."""
    for length in (5, len(text)):
        reader = CodeReader()
        for at in range(0, len(text), length):
            reader.feed(text[at : at + length])
        reader.finish()
    passages = Passages()
    passages.add(GivenPassage(1, text))
    CodeJudge(passages, Passages()).unknown(text.splitlines(), "")


WORK = {
    "withheld": (
        withheld,
        ["`", "`a ``", "```\n", "~~~\na\n", "> ", "- ", "\\", "\n", "a", "--a ", '"', "'a ", "f(", "//", "a-", "<"],
    ),
    "checks": (
        checked,
        ["[1](a", "`", "`a ``", "```\n", "| a ", "A. ", "1,", "10 s ", "--a", "aB", '"', "f(", "//"],
    ),
    "answer": (
        streamed,
        [
            *("[", "]", "[a](", "](", "![", "`", "`a ``", "~", "```\n", "<", "<a ", "<think>", "[1", "[1](a", "("),
            *("|a", "http://a", "a@b.", "&a", "\\", "> ", "- ", " ", "\n", "\r", "```suggestions\n", "aaaa ", "[a](  "),
        ],
    ),
    "addresses": (known, ["a@", "@a.b", "a.", "http://a.", "http://a)", "www.", "https://a", "."]),
    "thread": (lambda text: context.messages_for(
        "a", (), earlier=[context.Exchange(text, text)], context=(), current_path="", mark="m"
    ), ["[1](", "[1](a", "```\n", "```suggestions\n", ". ", " "]),
    "suggestions": (lambda text: suggestions.parsed([text]), ["(a)[", "(", "- ", "(a)[/b"]),
    "query": (lambda text: query.queries_for(text, page_title="a"), ["this ", "a.", "a", " ", "it "]),
    "question": (lambda text: question_words.stems_of(text, "en"), ["a", "a_", "a.", "_", "a-b ", "中"]),
    "wording": (wording, ["a", "a-", "a.", "' "]),
    "search": (words_of, ["[a](", "![", "[", "http://a ", "](", "[[a]"]),
    "quotable": (
        lambda text: [list(quotable.sentences(one.text)) for one in quotable.blocks(text)],
        ["A. ", "[", "![", "[a](b", "`", "` `` ", "<!--", "<a ", "*a", "- a\n", "|a", "see https://a.", "[a][", "_a"],
    ),
    "instruction": (
        builtin_forms.parse,
        [
            *("in a: ", "in a, ", 'replace "a" with "b" ', '"', '\\"', "'a ", "「", "“", "``", "```x\n"),
            *("~~~\n", "and then ", "please ", "the ", " ", "\n", "add ", "; ", "in ", ": "),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_words_are_read_in_linear_time(name):
    work, units = WORK[name]
    for unit in units:
        for before, behind in (("", ""), ("[a](", "x"))[: 1 if name in ("answer", "quotable") else 2]:
            assert_linear(
                work,
                lambda size, shape=(before, unit, behind): shape[0] + shape[1] * (size // len(shape[1])) + shape[2],
                f"{name} {before!r} {unit!r} {behind!r}",
                largest=1 << 12,
            )


def test_text_is_found_in_one_long_line_in_linear_time():
    for unit in ("a", "ba", "a\n"):
        assert_linear(
            lambda text: find_text({"a.js": text}, "a"),
            lambda size, unit=unit: unit * size,
            f"find {unit!r}",
            first=1 << 19,
            largest=1 << 19,
        )
