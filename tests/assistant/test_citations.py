"""Citations become links while the text flows."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.assistant.showing.answer_text import AnswerText
from service.assistant.showing.citations import CitationFilter

URLS = {1: "/deploy#vercel", 2: "/theme", 3: "/api/a b (v2)"}


def filtered(*chunks: str) -> tuple[str, CitationFilter]:
    citations = CitationFilter(URLS.get)
    return "".join([*map(citations.feed, chunks), citations.finish()]), citations


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Run it [1].", "Run it [1](/deploy#vercel)."),
        ("Both [1, 2].", "Both [1](/deploy#vercel) [2](/theme)."),
        ("A range [1-2] or [2–1].", "A range [1](/deploy#vercel) [2](/theme) or [1](/deploy#vercel) [2](/theme)."),  # noqa: RUF001
        ("Odd url [3]", "Odd url [3](/api/a%20b%20%28v2%29)"),
        ("None [9].", "None."),
        ("Some [1, 9] and [9].", "Some [1](/deploy#vercel) and."),
        ("Cut off [1", "Cut off"),
        ("Cut off [", "Cut off ["),
        ("Its own link [1](https://evil.example/x) stays ours", "Its own link [1](/deploy#vercel) stays ours"),
        ("A remark [1](as above).", "A remark [1](/deploy#vercel)(as above)."),
        ("A number that names nothing [9](/x).", "A number that names nothing."),
        ("A list:\n- [ ] open\n- [x] done", "A list:\n- [ ] open\n- [x] done"),
        ("A link [Deploy](/deploy) and [2026]", "A link [Deploy](/deploy) and [2026]"),
        (r"Escaped \[1] and an image ![1](a.png)", r"Escaped \[1] and an image ![1](a.png)"),
        ("Code `a[1]` and ``b ` [2]`` [2]", "Code `a[1]` and ``b ` [2]`` [2](/theme)"),
        ("```py\na[1]\n```\nthen [1]", "```py\na[1]\n```\nthen [1](/deploy#vercel)"),
        ("- step\n  ~~~~\n  [1]\n  ~~~\n  ~~~~\n  [1]", "- step\n  ~~~~\n  [1]\n  ~~~\n  ~~~~\n  [1](/deploy#vercel)"),
        ("> ```\n> [1]\n> ```\n> [1]", "> ```\n> [1]\n> ```\n> [1](/deploy#vercel)"),
        ("```not a block``` [1]", "```not a block``` [1](/deploy#vercel)"),
        ("A stray ` here [1]\n\nand [1]", "A stray ` here [1]\n\nand [1](/deploy#vercel)"),
        ("```\nopen", "```\nopen"),
        ("argv[0] is text", "argv[0] is text"),
        ("None [9][0] left", "None left"),
        ("None [9](/x)[0] left", "None left"),
        ("m[1][0] is text", "m[1](/deploy#vercel)[0] is text"),
        ("![a](/b.png) ![a](b.png) ![](#c) ![x]", "![a](/b.png) ![a](b.png) ![](#c) ! [x]"),
        ("![a](https://evil.example/?q=1)!", "! [a](https://evil.example/?q=1)!"),
        ("![a](//evil.example/x) [1]", "! [a](//evil.example/x) [1](/deploy#vercel)"),
        ("![a]( <HTTPS://evil.example> )", "! [a]( <HTTPS://evil.example> )"),
        ("![a [b] c](https://evil.example/x)", "! [a [b] c](https://evil.example/x)"),
        (r"![a\]](https://evil.example/y)", r"! [a\]](https://evil.example/y)"),
        ("![a][1] and ![", "! [a][1](/deploy#vercel) and !["),
        ("![x]\n\n[x]: https://evil.example", "! [x]\n\n[x] : https://evil.example"),
        ("In [1]: all. `[a]: b` and [99]: c", "In [1](/deploy#vercel): all. `[a]: b` and: c"),
        ("`[a](https://x) ![a](/x.png) vec![1](2)`", "`[a](https://x) ![a](/x.png) vec![1](2)`"),
        ("stray ` ![a](https://evil.example/x)", "stray ` ![a] (https://evil.example/x)"),
        ("stray ` ![a]( <//evil.example/x>)", "stray ` ![a] ( <//evil.example/x>)"),
        ("stray ` ![a](b", "stray ` ![a](b"),
        ("stray ` ![a](\n https://evil.example/x)", "stray ` ![a] (\n https://evil.example/x)"),
        ("stray ` ![a](\n\nand [1]", "stray ` ![a](\n\nand [1](/deploy#vercel)"),
    ],
)
def test_a_citation_is_linked_and_nothing_else_is_touched(text, sent):
    assert filtered(text)[0] == filtered(*text)[0]
    assert filtered(text)[0] == sent


LINK = "[1](/deploy#vercel)"


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Run it【1】.", f"Run it{LINK}."),
        ("Run it 【1†source】 and 【1:0†L3-L9】.", f"Run it {LINK} and {LINK}."),
        ("Run it [1†quick start].", f"Run it {LINK}."),
        ("运行它［1］。", f"运行它{LINK}。"),  # noqa: RUF001
        ("Run it [^1^] now [^1].", f"Run it {LINK} now {LINK}."),
        ("Run it [source: 1] [Sources: 1, 2] [Passage 2].", f"Run it {LINK} {LINK} [2](/theme) [2](/theme)."),
        ("So ist es [Quelle: 1].", f"So ist es {LINK}."),
        ("Run it (source 1) and (Passages 1, 2).", f"Run it {LINK} and {LINK} [2](/theme)."),
        ("Run it (1). Then stop (1)(2)\n", f"Run it {LINK}. Then stop {LINK}[2](/theme)\n"),
        ("Run it (1, 2)", f"Run it {LINK} [2](/theme)"),
        ("实行（1）。", f"实行{LINK}。"),  # noqa: RUF001
        ("None 【9】 [source: 9] [^9^].", "None [^9^]."),
    ],
)
def test_other_marks_of_models_are_citations(text, sent):
    shown, citations = filtered(text)
    assert shown == sent
    assert 1 in citations.cited or "9" in text


@pytest.mark.parametrize(
    "text",
    [
        "Ports (9) and (12).",
        "Either (1) restart or (2) reload the service.",
        "(1) Restart. It is done\n(2)\n",
        "See crontab(1), open(2).",
        "A note[^9] and `[^1]` and [^0-9].",
        "[sources] of (passage) (Theme 1) [Source code](/x) [refactored]",
        "A list [a, b] and [release 1] and (release 1).",
        "```\n【1】 (1).\n```\n",
    ],
)
def test_other_brackets_with_numbers_are_text(text):
    shown, citations = filtered(text)
    assert shown == text
    assert citations.cited == []


def test_a_number_in_parentheses_is_a_value_behind_citations_in_brackets():
    sent, citations = filtered("Restart it [1]. It is tried three times (2).")
    assert sent == f"Restart it {LINK}. It is tried three times (2)."
    assert citations.cited == [1]


def test_cited_passages_are_noted_in_order():
    _, citations = filtered("x [2] y [1, 2] z [9]")
    assert citations.cited == [2, 1]
    assert not citations.says_unanswered


def test_the_marker_is_taken_out_and_noted():
    sent, citations = filtered("[0] The documentation does not say.")
    assert sent == " The documentation does not say."
    assert citations.says_unanswered


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("> ```\n> [1]\n\nafter [1]", "> ```\n> [1]\n\nafter [1](/deploy#vercel)"),
        ("- ```\n  [1]\nafter\n[1]", "- ```\n  [1]\nafter\n[1](/deploy#vercel)"),
        ("> ```\n> a\n```\n[1]\n```\n[1]", "> ```\n> a\n```\n[1]\n```\n[1](/deploy#vercel)"),
        ("\xa0```\n[1]", "\xa0```\n[1](/deploy#vercel)"),
    ],
)
def test_citation_behind_block_is_linked(text, sent):
    assert filtered(text)[0] == filtered(*text)[0] == sent


def test_a_number_in_code_is_no_citation():
    _, citations = filtered("`[1]`\n```\n[2] [0]\n```\n")
    assert citations.cited == []
    assert not citations.says_unanswered


def test_a_block_of_suggestions_is_kept_apart():
    sent, citations = filtered("Text [1].\n\n```suggestions\n(A)[/a]\n(B)[/b]\n```\nmore")
    assert sent == "Text [1](/deploy#vercel).\n\nmore"
    assert citations.suggestions == ["(A)[/a]", "(B)[/b]"]


def test_words_pass_at_once():
    citations = CitationFilter(URLS.get)
    assert citations.feed("To deploy,") == "To deploy,"
    assert citations.feed(" run `x` and") == " run `x` and"
    assert citations.feed(" [") == ""
    assert citations.feed("1") == ""
    assert citations.feed("]") == ""
    assert citations.feed(".") == " [1](/deploy#vercel)."
    assert citations.feed(" [see") == " [see"


pieces = st.sampled_from(
    [
        "[1]", "[2, 3]", "[9]", "[0]", "[1", "]", "[", "(", ")", "](", "`", "``", "```", "~~~", "\n", "\n\n", " ", "  ",
        "- ", "> ", "1. ", "word", "argv", "!", "\\", "suggestions", "(A)[/a]", "```suggestions\n", "é",
        "👋", "[x](/y)", "【1】", "(1)", "(2", "[^1", "^]", "[source: ", "†source】", "."
    ]
)  # fmt: skip
texts = st.lists(pieces, max_size=30).map("".join)


@given(texts, st.lists(st.integers(1, 5), min_size=1))
def test_the_result_does_not_depend_on_where_the_chunks_are_cut(text, sizes):
    chunks: list[str] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        chunks.append(text[at : at + size])
        at, turn = at + size, turn + 1
    whole, all_at_once = filtered(text)
    cut, piecemeal = filtered(*chunks)
    assert cut == whole
    assert piecemeal.cited == all_at_once.cited
    assert piecemeal.says_unanswered == all_at_once.says_unanswered
    assert piecemeal.suggestions == all_at_once.suggestions


@given(texts)
def test_number_without_a_passage_is_never_sent_outside_code(text):
    sent, _ = filtered(text.replace("`", "").replace("~", "").replace("\\", "").replace("!", ""))
    assert not re.search(r"\[9\]", sent)


@given(st.text(st.characters(codec="utf-8", exclude_characters="[]`~"), max_size=60))
def test_text_without_brackets_is_sent_as_it_is(text):
    assert filtered(text)[0] == text


images = st.lists(
    st.sampled_from(
        ["!", "[", "]", "(", ")", "![", "](", "a", " ", "\\", "<", ">", "\n", "https://evil.example/", "//evil.example",
         "\n\n[a]: https://evil.example", "[1]", "/a.png", '"t"', "x" * 300, "![a](https://evil.example/x)",
         "&#104;ttps://evil.example/"]
    ), max_size=14,
).map("".join)  # fmt: skip
"""Without backticks: what a stray one begins is taken for code until the paragraph's end."""


@given(images, st.integers(1, 7))
def test_images_of_other_origins_are_never_sent(text, size):
    sent, _ = filtered(*(text[at : at + size] for at in range(0, len(text), size)))
    tokens = (token for block in MarkdownIt("commonmark").parse(sent) for token in block.children or ())
    shown = [str(token.attrGet("src")) for token in tokens if token.type == "image"]
    assert [src for src in shown if "evil" in src] == []


behind_backticks = st.lists(
    st.sampled_from(
        ["`", "``", "![a][r]", "![r]", "![r][]", "[r]: https://evil.example", "[r]:\nhttps://evil.example", "\n",
         "\n\n", "# a\n", "> ", "- ", "a", " ", "[r\n]: https://evil.example", "\\", "[1]", "```\n"]
    ), max_size=12,
).map("".join)  # fmt: skip


@given(behind_backticks, st.integers(1, 7))
@example("Look `here ![a][r]\n\n[r]: https://evil.example\n", 5)
@example("[r]: https://evil.example\n\nLook `here ![a][r]\n", 3)
@example("`![a][r]\n# a\n[r]: https://evil.example", 7)
@example("> ```\n![a][r]\n\n[r]: https://evil.example", 1)
def test_no_image_after_a_stray_backtick_finds_a_reference(text, size):
    answer = AnswerText(URLS.get, lambda _url: False)  # what citations let through, the guard sees as well
    sent = "".join([*(answer.feed(text[at : at + size]) for at in range(0, len(text), size)), answer.finish()])
    tokens = (token for block in MarkdownIt("commonmark").parse(sent) for token in block.children or ())
    assert [token for token in tokens if token.type == "image"] == []
