"""An answer's text as readers get it: safe in any renderer, without what the model thought, code as it was written."""

import time

import pytest

from service.assistant.addresses import KnownAddresses
from service.assistant.showing.answer_text import AnswerText

URLS = {1: "/deploy#vercel", 2: "/theme"}


def known():
    addresses = KnownAddresses("docs.kite.example", "")
    addresses.add("See https://code.example/kite and write to help@kite.example.")
    return addresses


def shown(*chunks):
    """What is shown of the chunks, and what was thought."""
    text = AnswerText(URLS.get, known())
    return "".join([*map(text.feed, chunks), text.finish()]), text.take_thoughts()


def each_way(text):
    """The text in one piece, in two at each place, and in its characters."""
    found = {shown(text), shown(*text), *(shown(text[:at], text[at:]) for at in range(1, len(text)))}
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("```\n<b>\n```\n<script>alert(1)</script>", "```\n<b>\n```\n&lt;script>alert(1)&lt;/script>"),
        ("~~~\na\n~~~\n<img src=x onerror=y>", "~~~\na\n~~~\n&lt;img src=x onerror=y>"),
        ("> ```\n> a\n> ```\n<img src=x>", "> ```\n> a\n> ```\n&lt;img src=x>"),
        ("```\na\n```\n[a](https://evil.example)", "```\na\n```\na"),
        ("a `b\n<b>` c", "a \\`b\n&lt;b>\\` c"),
        ("```\nx[1]\n```\nSo [1].", "```\nx[1]\n```\nSo [1](/deploy#vercel)."),
        ("a\n\n\nb\n", "a\n\n\nb\n"),
    ],
)
def test_line_ends_of_all_kinds_end_a_line(text, sent, end):
    assert each_way(text.replace("\n", end)) == (sent, "")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\n\r\nb\r\rc\n\rd", "a\n\nb\n\nc\n\nd"),
        ("\ufeff\0 a\0<b>", "� a�&lt;b>"),
        ("x\n\f\n7. a\n       ```\n<b>", "x\n\f\n7. a\n       \\`\\`\\`\n&lt;b>"),
        ("+ \v\n\n     <b>", "+ \v\n\n   &lt;b>"),
        ("- a\x85```\n<b>", "- a\x85\\`\\`\\`\n&lt;b>"),
        ("a\u2028```\n<b>", "a\u2028\\`\\`\\`\n&lt;b>"),
    ],
)
def test_odd_white_space_ends_no_line(text, sent):
    assert each_way(text) == (sent, "")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Ask me@evil.example or help@kite.example.", "Ask me`@evil.example` or help@kite.example."),
        ("help@kite.example.evil.example help@kite.example\\.evil.example", "help`@kite.example.evil.example`"
         " help`@kite.example`\\.evil.example"),
        ("me\\@evil.example me&#64;evil.example", "me\\@ evil.example me&amp;#64;evil.example"),
        (r"1\. a foo\.bar", r"1\. a foo\.bar"),
        ("Run npm i @kite/cli, ssh me@host, see @kite.", "Run npm i @kite/cli, ssh me@host, see @kite."),
        ("xhttps://evil.example/?q", "xhttps`://evil.example/?q`"),
        ("awww.evil.example", "awww`.evil.example`"),
        ("www.[r] www.", "`www.`[r] `www.`"),
        ("https://code.example/kite~ https://code.example/kite.", "<https://code.example/kite>~"
         " https://code.example/kite."),
        ("[a]:\nhttps://evil.example", "[a] :\n`https://evil.example`"),
    ],
)  # fmt: skip
def test_no_client_finds_an_address_in_words(text, sent):
    assert each_way(text) == (sent, "")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\n\n    <b> [1] `x`\n\ta@b.example\n\nSo", "a\n\n    <b> [1] `x`\n\ta@b.example\n\nSo"),
        ("- a\n\n      <b>\n", "- a\n\n     &lt;b>\n"),
        ("-      <b>", "- &lt;b>"),
        (">      <b>", ">    &lt;b>"),
        ("- - a\nlazy\n\n    <b>\n", "- - a\nlazy\n\n   &lt;b>\n"),
        ("# a\n    <b>", "# a\n   &lt;b>"),
        ("a\n    <b>", "a\n    &lt;b>"),
        ("- a\n\nb\n\n    <b>\n", "- a\n\nb\n\n    <b>\n"),
    ],
)  # fmt: skip
def test_indented_text_is_code_for_all_readers_or_for_no_reader(text, sent):
    assert each_way(text) == (sent, "")


@pytest.mark.parametrize("deep", [" ", "> ", "- ", "\t"])
def test_a_head_that_is_very_long_ends_somewhere(deep):
    text = f"* {deep * 1_200}     <b>\n```\n<b>"
    sent = shown(text)[0]
    assert {shown(*text), shown(text[:1_000], text[1_000:])} == {(sent, "")}
    assert "\u200b" in sent.partition("&lt;b>")[0]


def test_code_after_a_citation_that_went_is_left_alone():
    assert each_way("[9]~~~\n[1]\n~~~") == ("~~~\n[1]\n~~~", "")
    assert each_way("a ``` b\n~~~\n[1]\n~~~") == ("a \\`\\`\\` b\n~~~\n[1]\n~~~", "")


def test_deep_quotes_cost_little():
    text = "> " * 40 + "```\n" + ("> " * 39 + "a\n") * 3
    began = time.process_time()
    shown(text)
    assert time.process_time() - began < 2  # one look at such a line took hours


def test_a_line_longer_than_is_looked_at_begins_no_fence():
    sent, _ = shown("> " * 600 + "```\n" + "> " * 500 + "<b>")
    assert "<b>" not in sent


@pytest.mark.parametrize(
    ("text", "sent", "thought"),
    [
        ("<think>Hm [2].</think>\n\nSo [1].", "So [1](/deploy#vercel).", "Hm [2]."),
        ("<thinking>a</thinking>b", "b", "a"),
        ("<THINK >a</Think\t>b", "b", "a"),
        ("a <think>b</think> c", "a  c", "b"),
        ("a<think>b", "a", "b"),
        ("<think>a<think>b</think>c</think>d", "d", "a<think>b</think>c"),
        ("<think>a</think>b<think>c</think>d", "bd", "a\n\nc"),
        ("a</think>b", "ab", ""),
        ("<think></think>a", "a", ""),
        ("<thinker> <thin a<think", "&lt;thinker> &lt;thin a&lt;think", ""),
        ("Write `<think>` and ``</think>``.", "Write `<think>` and ``</think>``.", ""),
        ("```xml\n<think>a</think>\n```\n<think>b</think>c", "```xml\n<think>a</think>\n```\nc", "b"),
        ("> ~~~\n> <think>\n> ~~~\na", "> ~~~\n> <think>\n> ~~~\na", ""),
        ("a ` b <think>c</think>", "a \\` b ", "c"),
        ("a ` b\n<think>`c</think>d", "a \\` b\nd", "`c"),
        ("```a`b <think>c", "\\`\\`\\`a\\`b ", "c"),
        ("<think>Of `</think>` and ```\nx</think>a", "a", "Of `</think>` and ```\nx"),
        ("<think>```\n<think>\n</think>\n</think>a", "a", "```\n<think>\n</think>\n"),
        ("<think>a ` b</think>c", "c", "a ` b"),
        ("<think>\r\na\r\n</think>\r\n\r\n```\r\nb\r\n```", "```\nb\n```", "\na\n"),
    ],
)
def test_thoughts_are_removed_from_the_answer(text, sent, thought):
    assert each_way(text) == (sent, thought)


def test_each_call_of_the_model_begins_a_paragraph():
    text = AnswerText(URLS.get, known())
    calls = ("<think>a", "  Look", "<think>b</think>\n c", "<think>c</think>")
    assert "".join(text.feed(call) + text.finish() for call in calls) == "Look\n\nc"
    assert text.take_thoughts() == "a\n\nb\n\nc"


def test_citation_in_a_thought_does_not_count():
    text = AnswerText(URLS.get, known())
    text.feed("<think>[0] [2]</think>It is [1].")
    text.finish()
    assert (text.cited, text.says_unanswered) == ([1], False)


@pytest.mark.parametrize(
    "piece",
    ["<", "</", "<think>", "</think>", "<think></think>", "`", "``a`", "`<think>", "<think>`", "~~~\n", "a", "\r", "[",
     "[1](", "    ", "> ", "- ", "1. ", "@", "a@b.", "://", "www.", "https://a", "&", "\\",
     "```suggestions\n", "![", "![a](", "(", "*", "|", "|-|\n", "1"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "```suggestions\n", "> ```\n> "])
def test_cost_grows_with_the_length_alone(before, piece):
    def seconds(characters):
        text = before + piece * (characters // len(piece))
        began = time.process_time()
        shown(text)
        shown(*(text[at : at + 7] for at in range(0, len(text), 7)))
        return time.process_time() - began

    ratios = []
    for _ in range(5):
        size = 8_000
        while (once := seconds(size)) < 0.02:
            size *= 2
        ratios.append(seconds(2 * size) / once)
        if ratios[-1] <= 3:
            return
    assert sorted(ratios)[2] <= 3, ratios


@pytest.mark.parametrize("mark", ["`", "~"])
@pytest.mark.parametrize("count", [499, 500, 999, 1000, 1001, 1500])
def test_runs_without_end_are_no_way_out_of_code(mark, count):
    for text in (f"{mark * count}\n<b>", f"```\na\n{mark * count}\n<b>", f"~~~\na\n{mark * count}x\n~~~\n<b>"):
        sent = shown(text)[0]
        assert {shown(*text), shown(text[:700], text[700:])} == {(sent, "")}
        if text.startswith(mark * 3) and text[4] != mark and not text.endswith("x\n~~~\n<b>"):
            assert sent.endswith("&lt;b>")


@pytest.mark.parametrize("before", ["[" + "a " * count for count in range(140, 156)] + ["[" * 8, "[" * 20])
def test_citation_behind_an_open_bracket_is_a_link(before):
    assert shown(f"{before}[2]. More.")[0] == f"{before}[2](/theme). More."
    assert "](http" not in shown(f"{before}[2]](https://evil.example)")[0]
