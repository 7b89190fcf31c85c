"""Ignore files: which paths they fit, and in what time."""

import re
import statistics
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.site.ignore_files import MAX_LINES, ignore_rules
from service.retrieval.site.navigation import detect_layout
from tests.retrieval.sites import build

WILDCARDS = {r"\*\*/": "(?:.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]"}


def expression(line: str) -> re.Pattern[str]:
    """The same line as a regular expression, which is right but not linear."""
    body = re.sub(r"\\\*\\\*/|\\\*\\\*|\\\*|\\\?", lambda found: WILDCARDS[found[0]], re.escape(line.strip("/")))
    start = "^" if line.startswith("/") or "/" in line.strip("/") else "(?:^|/)"
    return re.compile(f"{start}{body}" + ("/" if line.endswith("/") else r"(?:/|\Z)"), re.DOTALL)


@pytest.mark.parametrize(
    ("line", "fits", "not_fits"),
    [
        ("/drafts/", ["drafts/a.md", "drafts/b/c.md"], ["drafts", "a/drafts/b.md", "drafts.md"]),
        ("*.draft.mdx", ["a.draft.mdx", "b/a.draft.mdx"], ["a.draft.mdx.md"]),
        ("drafts", ["drafts", "a/drafts", "a/drafts/b"], ["a/drafts2", "adrafts"]),
        ("a/*/c", ["a/b/c", "a/b/c/d"], ["a/b/d/c", "x/a/b/c"]),
        ("a/**/c", ["a/c", "a/b/c", "a/b/b/c"], ["ac", "a/bc"]),
        ("**/c.md", ["c.md", "a/b/c.md"], ["xc.md"]),
        ("a/**", ["a/", "a/b", "a/b/c"], ["a", "b/a"]),
        ("?.md", ["a.md", "x/b.md"], [".md", "ab.md"]),
        ("# *", [], ["# *", "a"]),
        ("!a", [], ["a", "!a"]),
        ("/", [], ["a", "a/b"]),
    ],
)
def test_ignore_line_matches_as_in_gitignore(line, fits, not_fits):
    rules = ignore_rules([line])
    assert [path for path in (*fits, *not_fits) if rules.ignores(path)] == fits


PARTS = st.sampled_from(["a", "b", "/", "*", "?", "**/", "**", "."])


@given(st.lists(PARTS, max_size=8).map("".join), st.text("ab/.", max_size=12))
def test_ignore_lines_fit_what_an_expression_fits(line, path):
    if "***" in line or "**/**" in line or not line.strip("/"):
        return  # runs of stars, which the expression reads otherwise
    assert ignore_rules([line]).ignores(path) == bool(expression(line).search(path))


@given(st.lists(st.lists(PARTS, max_size=6).map("".join), max_size=4), st.lists(st.text("ab/.", max_size=9)))
def test_many_ignore_lines_fit_what_one_of_them_fits(lines, paths):
    together = ignore_rules(lines)
    for path in paths:
        assert together.ignores(path) == any(ignore_rules([line]).ignores(path) for line in lines)


def seconds(line: str, path: str) -> float:
    rules = ignore_rules([line])
    began = time.process_time()
    assert not rules.ignores(path)
    return time.process_time() - began


@pytest.mark.parametrize(
    ("line", "letters"), [("*a*a*a*a*a*a*b", "a"), ("a*" * 200 + "b", "a"), ("a/**/?*/**/b", "a/"), ("?*?*b", "ab/")]
)
def test_ignore_line_is_matched_in_linear_time(line, letters):
    size = 100_000
    while seconds(line, letters * size + "x") < 0.02:
        size *= 2
    ratios = [seconds(line, letters * 2 * size + "x") / seconds(line, letters * size + "x") for _ in range(5)]
    assert statistics.median(ratios) <= 3


def test_hostile_ignore_file_leaves_a_site_its_pages(tmp_path):
    name = "a" * 200
    files = {
        "docs.json": '{"name": "x"}',
        ".mintignore": "/drafts\n" + "*a*a*a*b\n" * 1000,
        "drafts/x.mdx": "# X",
        **{f"{name}{number}.mdx": "# Page\n\nText." for number in range(300)},
    }
    report = build(files, tmp_path / "index")
    assert report.pages == 300
    assert [one.path for one in report.skipped] == [".mintignore", "drafts/x.mdx"]
    assert "1 of its lines" in report.skipped[0].reason
    assert report.skipped[1].reason == "Excluded by .mintignore."


def test_ignore_lines_of_a_folder_above_count_from_there():
    files = {
        "build/docs/mkdocs.yml": "exclude_docs: |\n  build\n",
        "build/docs/docs/a.md": "",
        "build/docs/docs/build/b.md": "",
    }
    layout = detect_layout(files, {name: text.encode() for name, text in files.items()}.get)
    assert [name for name in files if layout.is_page(name)] == ["build/docs/docs/a.md"]


def test_ignore_lines_beyond_the_limit_are_counted():
    assert ignore_rules(["a"] * (MAX_LINES + 2)).cut == 2
    assert ignore_rules(["a" * 501, "b"]).cut == 1
