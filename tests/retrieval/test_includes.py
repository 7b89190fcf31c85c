import pytest

from tests.retrieval.formats import page_of

MKDOCS = {
    "mkdocs.yml": "site_name: S\nmarkdown_extensions:\n  - pymdownx.snippets:\n      base_path: [parts]\n",
    "parts/part.md": "# Part\n\nIncluded *words*.\n\n--8<-- [start:one]\nOnly this.\n--8<-- [end:one]\n",
    "parts/code.py": "import a\n\n\ndef run():\n    pass\n",
    "docs/x.md": "Beside.",
}


@pytest.mark.parametrize(
    ("text", "shown", "unseen"),
    [
        ('A.\n\n--8<-- "part.md"\n\nB.', "A.\n\nB.\n\nIncluded *words*.\n\nOnly this.", "8<"),
        ('A.\n\n--8<-- "part.md:one"\n', "A.\n\nOnly this.", "Included"),
        ('A.\n\n--8<-- "part.md:3:3"\n', "A.\n\nIncluded *words*.", "Only"),
        ('```py\n--8<-- "code.py:4:5"\n```\n', "```py\ndef run():\n    pass\n```", "import"),
        ('A.\n\n--8<-- "x.md"\n', "A.\n\nBeside.", "8<"),
        ('A.\n\n--8<-- "../../etc/passwd"\n', 'A.\n\n--8<-- "../../etc/passwd"', "root:"),
        ('A.\n\n--8<-- "gone.md"\n', 'A.\n\n--8<-- "gone.md"', "Part"),
    ],
)
def test_snippets_of_mkdocs_are_shown_where_they_are_used(text, shown, unseen):
    content = page_of({**MKDOCS, "docs/a.md": text}, "docs/a.md").content
    assert content == shown
    assert unseen not in content


def test_files_that_hugo_pages_show_are_shown():
    files = {
        "hugo.toml": "",
        "content/docs/_index.md": "D",
        "content/docs/part.md": "---\ntitle: P\n---\nIncluded words.",
        "content/docs/a.md": 'A.\n\n{{% include "part.md" %}}\n\n{{< readfile file="part.md" >}}\n\n'
        '{{% include "gone.md" %}}\n',
    }
    assert page_of(files, "content/docs/a.md").content == "A.\n\nIncluded words."


def test_files_that_show_each_other_end():
    files = {"mkdocs.yml": "", "docs/a.md": 'A\n\n--8<-- "b.md"\n', "docs/b.md": 'B\n\n--8<-- "a.md"\n'}
    assert "B" in page_of(files, "docs/a.md").content
