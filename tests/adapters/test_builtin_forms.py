"""Which words the builtin editor understands."""

# ruff: noqa: RUF001  quotes of all kinds are what this is about

import time

import pytest

from service.adapters.builtin.editing.forms import (
    EVERY_PAGE,
    Add,
    Create,
    FixLinks,
    Remove,
    Rename,
    Replace,
    SetTitle,
    parse,
)


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ('replace "A" with "B"', [Replace("A", "B")]),
        ("Please change 'A b' to 'B' everywhere.", [Replace("A b", "B")]),
        ("Replace all occurrences of “A” by “B” in guides/start.md.", [Replace("A", "B", "guides/start.md")]),
        ("replace `A` with `B` in the page `my page.md`", [Replace("A", "B", "my page.md")]),
        ('Replace "A" with "" in all pages', [Replace("A", "")]),
        ('replace "A.\nB; C and then D" with "x"', [Replace("A.\nB; C and then D", "x")]),
        ('add "Text." to guides/start', [Add("Text.", "guides/start")]),
        ('Append the line "Text." to the end of page guides/start.md', [Add("Text.", "guides/start.md")]),
        ('add "T" to a.md under the heading "Install"', [Add("T", "a.md", "Install", "under")]),
        ('insert "T" under "Install" in a.md', [Add("T", "a.md", "Install", "under")]),
        ("Append to a.md:\n```md\nOne; two.\n\nThree.\n```\n", [Add("One; two.\n\nThree.", "a.md")]),
        ('create a page guides/x with title "X"', [Create("guides/x", "X")]),
        ('Create the page x.md with title "X" and text "Body."', [Create("x.md", "X", "Body.")]),
        ('create page x with the title "X": \n```\n# Hi\n```', [Create("x", "X", "# Hi")]),
        ("rename a.md to b.md", [Rename("a.md", "b.md")]),
        ("Move the page guides/a to ref/a and fix the links to it.", [Rename("guides/a", "ref/a", is_move=True)]),
        ("rename a to b and then fix all links to it", [Rename("a", "b")]),
        ("remove page a.md", [Remove("a.md")]),
        ("Please delete the page `my page` and all links to it.", [Remove("my page")]),
        ("delete guides/start", [Remove("guides/start")]),
        ("remove guides/start.md with its navigation entry", [Remove("guides/start.md")]),
        ('set title of a.md to "A B"', [SetTitle("a.md", "A B")]),
        ('Change the title of page guides/x to: "X".', [SetTitle("guides/x", "X")]),
        ('give guides/x the title "X", and delete page b', [SetTitle("guides/x", "X"), Remove("b")]),
        ("fix broken links", [FixLinks()]),
        ("Please fix all the broken links in the docs!", [FixLinks()]),
        ("repair dead links in guides/", [FixLinks("guides/")]),
        (
            '1. replace "A" with "B"\n2. fix broken links; rename a to b',
            [Replace("A", "B"), FixLinks(), Rename("a", "b")],
        ),
        ('Could you please replace "A" with "B", then fix broken links?', [Replace("A", "B"), FixLinks()]),
    ],
)
def test_form_is_understood(text, instructions):
    assert parse(text) == (instructions, [])


@pytest.mark.parametrize(
    "text", ["Make it better", "replace A with B", 'delete "A"', "Rewrite the page a.md", "It's fine"]
)
def test_other_text_is_not_understood(text):
    known, unknown = parse(text)
    assert known == []
    assert unknown


@pytest.mark.parametrize(
    "text",
    [
        'replace "A" with "B"', "replace 'A' with 'B'", "replace “A” with “B”", "replace ‘A’ with ‘B’",
        "replace «A» with «B»", "replace „A“ with „B“", "replace »A« with »B«", "replace `A` with `B`",
        "replace ``A`` with ``B``", "replace 「A」 with 「B」", "replace \u2039A\u203a with \u2039B\u203a",
    ],
)  # fmt: skip
def test_quotes_of_all_kinds_are_understood(text):
    assert parse(text) == ([Replace("A", "B")], [])


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ("replace 'don't' with 'do not'", [Replace("don't", "do not")]),
        ("replace ‘don’t’ with ‘do not’", [Replace("don’t", "do not")]),
        (r'replace "say \"A\"" with "B"', [Replace('say "A"', "B")]),
        ('replace `"A"` with `"B"`', [Replace('"A"', '"B"')]),
        ('Replace "A" with "B" in every page of the documentation.', [Replace("A", "B")]),
        ('In guides/start.md, replace "A" with "B".', [Replace("A", "B", "guides/start.md")]),
        ('On the page start: add "T" under "Install"', [Add("T", "start", "Install", "under")]),
        ('update "A" to "B" in all files', [Replace("A", "B")]),
        ('add "T" to every page', [Add("T", EVERY_PAGE)]),
        ('append "T" under "See also" in all pages', [Add("T", EVERY_PAGE, "See also", "under")]),
        ('add "T" at the top of a.md', [Add("T", "a.md", "", "top")]),
        ('insert a line "T" to the beginning of the page a.md', [Add("T", "a.md", "", "top")]),
        ('add "T" to a.md before the heading "## Run"', [Add("T", "a.md", "Run", "before")]),
        ('add "T" to the section "Install" in a.md', [Add("T", "a.md", "Install", "under")]),
        ('add a note to the section "Install" of a.md:\n\n~~~\nOne\n\nTwo\n~~~',
         [Add("One\n\nTwo", "a.md", "Install", "under")]),
        ("add to a.md:\n```\n```", []),
        ("create page x containing the text: \n````md\n```sh\nls\n```\n````", [Create("x", "", "```sh\nls\n```")]),
        ('rename page a.md to b.md and replace "A" with "B"', [Rename("a.md", "b.md"), Replace("A", "B")]),
        ("move `old name.md` to folder guides/", [Rename("old name.md", "guides/", is_move=True)]),
        ("fix all broken links and anchors in guides", [FixLinks("guides")]),
        ('replace "A" with "B", add "C" to d.md and fix broken links',
         [Replace("A", "B"), Add("C", "d.md"), FixLinks()]),
    ],
)  # fmt: skip
def test_many_wordings_of_an_instruction_are_understood(text, instructions):
    assert parse(text)[0] == instructions


@pytest.mark.parametrize(
    "piece", [" ", "\n", "'", '"', "‘", "„", "« ", "`", "```\n", "~~~~", "replace ", 'add "', ": ", "a, ", "; "]
)
def test_no_text_keeps_it_busy(piece):
    began = time.process_time()
    parse("replace " + piece * (32_768 // len(piece)) + "x")
    assert time.process_time() - began < 1
