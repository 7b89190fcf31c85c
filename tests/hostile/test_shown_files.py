"""Other files that a page shows: however they are named, a page is read within limits, and no page stops the others."""

import pytest

from service.domain.sites import Skipped
from service.retrieval.readers.includes.files import MAX_SHOWN
from service.retrieval.site.navigation import detect_layout
from service.retrieval.site.pages import PageReader
from tests.retrieval.formats import page_of

DIGITS = "9" * 5_000
SHORT_LINES = "a\n" * 10_000
MKDOCS = {"mkdocs.yml": "site_name: x", "docs/n.md": SHORT_LINES, "docs/e.md": "\n" * 20_000, "docs/b.md": "# b\nx\n"}
SPHINX = {
    "docs/conf.py": "extensions = ['myst_parser']",
    "docs/index.rst": "A\n=\n\n.. toctree::\n\n   a\n",
    "docs/n.md": SHORT_LINES,
    "docs/x.py": "def f():\n    pass\n",
}
MDBOOK = {"book.toml": "", "src/SUMMARY.md": "[a](a.md)"}
VITEPRESS = {"docs/.vitepress/config.js": "export default {}", "docs/i.md": "# i", "docs/n.md": SHORT_LINES}


@pytest.mark.parametrize(
    ("others", "path", "text"),
    [
        (MKDOCS, "docs/a.md", '--8<-- "docs/b.md:-"'),
        (MKDOCS, "docs/a.md", '{% include "docs/b.md" heading-offset="--5" %}'),
        (MDBOOK, "src/a.md", "{{#include  }}"),
        (SPHINX, "docs/a.md", f"```{{literalinclude}} x.py\n:lines: {DIGITS}\n```"),
        (SPHINX, "docs/a.md", f"```{{literalinclude}} x.py\n:start-line: {DIGITS}\n```"),
        (SPHINX, "docs/a.md", f"```{{literalinclude}} x.py\n:dedent: {DIGITS}\n```"),
        (SPHINX, "docs/a.rst", f".. literalinclude:: x.py\n   :end-line: {DIGITS}\n"),
        (
            {**SPHINX, "docs/conf.py": "extensions = ['myst_parser']\nmyst_substitutions = {'a': 'x\\ny'}"},
            "docs/a.md",
            "One {{a}} two.",
        ),
    ],
)
def test_malformed_numbers_do_not_stop_a_page(others, path, text):
    title = "Title\n=====\n" if path.endswith("rst") else "# Title\n"
    page = page_of({**others, path: f"{title}\nWords.\n\n{text}\n\nMore words.\n"}, path)
    assert "More words." in page.content


@pytest.mark.parametrize(
    ("others", "path", "text"),
    [
        (MKDOCS, "docs/a.md", " " * 100_000 + '--8<-- "docs/n.md"'),
        (MKDOCS, "docs/a.md", '--8<-- "docs/e.md:' + "," * 450 + '"\n'),
        (MKDOCS, "docs/a.md", " " * 100_000 + "{!docs/n.md!}"),
        (MKDOCS, "docs/a.md", ("{!docs/n.md[ln:" + "1-," * 66 + "]!}\n") * 10),
        (MKDOCS, "docs/a.md", "b" * 100_000 + '{% include "docs/n.md" %}'),
        (MKDOCS, "docs/a.md", " " * 100_000 + "{* docs/n.md *}"),
        (SPHINX, "docs/a.md", "```{literalinclude} n.md\n:lines: " + "1-," * 3_000 + "\n```"),
        (SPHINX, "docs/a.md", " " * 100_000 + "```{include} n.md\n```"),
        (SPHINX, "docs/a.rst", ".. literalinclude:: n.md\n   :lines: " + "1-," * 3_000 + "\n"),
        (VITEPRESS, "docs/a.md", (">" * 900 + "<<< @/n.md\n") * 50),
        (
            {**SPHINX, "docs/conf.py": f"extensions = ['myst_parser']\nmyst_substitutions = {{'a': '{'x ' * 9_000}'}}"},
            "docs/a.md",
            "{{a}} " * 10_000,
        ),
        (
            {**SPHINX, "docs/conf.py": f"extensions = ['myst_parser']\nextlinks = {{'x': ('a', '{'%s' * 5_000}')}}"},
            "docs/a.md",
            f"{{x}}`{'y' * 900}` " * 20,
        ),
    ],
)
def test_included_text_is_bounded_for_each_page(others, path, text):
    title = "Title\n=====\n" if path.endswith("rst") else "# Title\n"
    page = page_of({**others, path: f"{title}\nWords.\n\n{text}\n"}, path)
    assert len(page.content) <= MAX_SHOWN + 4 * len(text) + 1_000


def test_hugo_lists_end_with_the_room_of_a_page():
    terms = {f"content/glossary/p{number}.md": f"---\ntitle: t\n---\n{'word ' * 4_000}" for number in range(40)}
    calls = "{{< glossary >}}\n" * 4_999 + '{{< children "none" >}}\n'
    page = page_of({"hugo.toml": "", "content/_index.md": "x", **terms, "content/a.md": calls}, "content/a.md")
    assert len(page.content) < 1_000_000


def test_page_that_a_reader_fails_on_is_left_out():
    layout = detect_layout({"a.md": b"# A"}, lambda _: b"# A")

    def fails(_name, _limit):
        raise LookupError("an error of ours")

    assert PageReader(layout, fails).page("a.md") == Skipped("a.md", "It cannot be read (LookupError).")
