"""Anchors, as each generator makes them: what is expected here was taken from runs of the generators themselves
(github-slugger 2.0.0, Hugo 0.168.0, Python-Markdown 3.11.3 with
pymdown-extensions 13.1, docutils 0.22.4).
"""

import pytest
from docutils.nodes import make_id
from hypothesis import given
from hypothesis import strategies as st

from service.markup.dialects.dialect import Dialect
from service.markup.slugs import Anchors, slug
from service.retrieval.readers.markdown import ParsedPage, parse_page

HEADINGS = (
    "## [Link](http://x.y/z) and `code.x()` **bold** _em_ &amp; it's",
    "## Repeat",
    "## Repeat",
    "## Repeat-1",
    "## 日本語 見出し",
    "## नमस्ते दुनिया",
    "## 🚀 Launch ½ x²",
    "## Custom {#my-id}",
    "## !!!",
    "## ???",
    "## A -- B — C / D_e f.g",
    "## `--flag` it",
    "## Repeat-1",
    "## Trailing hashes ##",
    "## a  two  spaces",
    "Setext *head*\n---",
    "## <b>html</b> tag",
    "## Ünï cödé İstanbul",
)
LINK = "link-and-codex-bold-em"
EXPECTED = {
    "github": [
        f"{LINK}--its", "repeat", "repeat-1", "repeat-1-1", "日本語-見出し", "नमस्ते-दुनिया", "-launch--x", "my-id", "",
        "-1", "a----b--c--d_e-fg", "--flag-it", "repeat-1-2", "trailing-hashes", "a--two--spaces", "setext-head",
        "html-tag", "ünï-cödé-i̇stanbul",
    ],
    "hugo": [
        f"{LINK}--its", "repeat", "repeat-1", "repeat-1-1", "日本語-見出し", "नमसत-दनय", "-launch--x", "my-id",
        "heading", "heading-1", "a--b--c--d_e-fg", "--flag-it", "repeat-1-2", "trailing-hashes", "a--two--spaces",
        "setext-head", "html-tag", "ünï-cödé-istanbul",
    ],
    "hugo-ascii": [
        f"{LINK}--its", "repeat", "repeat-1", "repeat-1-1", "-", "--1", "-launch--x", "my-id", "heading", "heading-1",
        "a--b--c--d_e-fg", "--flag-it", "repeat-1-2", "trailing-hashes", "a--two--spaces", "setext-head", "html-tag",
        "uni-code-istanbul",
    ],
    "blackfriday": [
        "link-and-code-x-bold-em-it-s", "repeat", "repeat-1", "repeat-1-1", "日本語-見出し", "नमस-त-द-न-य",
        "launch-½-x²", "my-id", "heading", "heading-1", "a-b-c-d-e-f-g", "flag-it", "repeat-1-2", "trailing-hashes",
        "a-two-spaces", "setext-head", "html-tag", "ünï-cödé-istanbul",
    ],
    "python": [
        f"{LINK}-its", "repeat", "repeat_1", "repeat-1", "_1", "_2", "launch-12-x2", "my-id", "_3", "_4",
        "a-b-c-d_e-fg", "-flag-it", "repeat-1_1", "trailing-hashes", "a-two-spaces", "setext-head", "html-tag",
        "uni-code-istanbul",
    ],
    "python-unicode": [
        f"{LINK}-its", "repeat", "repeat_1", "repeat-1", "日本語-見出し", "नमसत-दनय", "launch-½-x²", "my-id", "_1",
        "_2", "a-b-c-d_e-fg", "-flag-it", "repeat-1_1", "trailing-hashes", "a-two-spaces", "setext-head", "html-tag",
        "ünï-cödé-i̇stanbul",
    ],
    "pymdownx": [
        f"{LINK}--its", "repeat", "repeat_1", "repeat-1", "日本語-見出し", "नमसत-दनय", "-launch-½-x²", "my-id", "_1",
        "_2", "a----b--c--d_e-fg", "--flag-it", "repeat-1_1", "trailing-hashes", "a--two--spaces",
        "setext-head", "html-tag", "ünï-cödé-istanbul",
    ],
}  # fmt: skip


@pytest.mark.parametrize("style", EXPECTED)
def test_anchors_are_those_that_the_generator_makes(style):
    dialect = Dialect(slugs=style, shortcodes=style in ("hugo", "hugo-ascii", "blackfriday"))
    page = parse_page("\n\nText.\n\n".join(["Text.", *HEADINGS]).encode(), "a.md", dialect)
    assert isinstance(page, ParsedPage)
    assert [section.anchor for section in page.sections[1:]] == EXPECTED[style]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["A -- B — C / D_e f.g", "Ünï cödé", "1.2 Start", "it's", "straße ø"],
         ["a-b-c-d-e-f-g", "uni-code", "start", "it-s", "strasze-o"]),
        (["Use", "日本語", "Use", "Use"], ["use", "id1", "id2", "id3"]),
    ],
)  # fmt: skip
def test_docutils_makes_ids_of_letters_digits_and_hyphens(texts, expected):
    anchors = Anchors("docutils")
    assert [anchors.of(text) for text in texts] == expected


def test_mdn_joins_words_by_underscores():
    anchors = Anchors("mdn")
    texts = ["Return value", "Using Promise.all()", "Return value"]
    assert [anchors.of(text) for text in texts] == ["return_value", "using_promise.all", "return_value_2"]


@pytest.mark.parametrize("style", ["github", "hugo", "python", "docutils", "mdn"])
def test_ten_thousand_equal_headings_are_fast_and_all_differ(style):
    anchors = Anchors(style)
    assert len({anchors.of("Same") for _ in range(10_000)}) == 10_000


@given(st.text(max_size=60))
def test_docutils_itself_agrees(text):
    assert slug(text, "docutils") == make_id(text)


def test_marks_within_code_are_no_marks():
    page = parse_page(b"Text.\n\n## Define `__eq__` and *it*\n\nText.\n", "a.md")
    assert isinstance(page, ParsedPage)
    assert (page.sections[1].heading, page.sections[1].anchor) == ("Define __eq__ and it", "define-__eq__-and-it")


def test_mdn_names_the_terms_of_its_lists():
    text = "- `minLength` {{optional_inline}}\n  - : How short.\n- plain\n\n"
    text += "- {{domxref('Range.collapse()')}}\n  - : Collapses.\n"
    page = parse_page(text.encode(), "a.md", Dialect(slugs="mdn"))
    assert isinstance(page, ParsedPage)
    assert page.anchors == {"minlength", "range.collapse"}
