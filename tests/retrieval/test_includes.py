import pytest

from tests.retrieval.formats import page_of

MKDOCS = {
    "mkdocs.yml": "site_name: S\nmarkdown_extensions:\n  - pymdownx.snippets:\n      base_path: [parts]\n",
    "parts/part.md": "# Part\n\nIncluded *words*.\n\n--8<-- [start:one]\nOnly this.\n--8<-- [end:one]\n",
    "parts/code.py": "import a\n\n\ndef run():\n    pass\n",
    "parts/deep.py": "def f():\n    # --8<-- [start:deep]\n    x = 1\n    if x:\n"
    "        # --8<-- [start:o]\n        y = 2\n"
    "    # --8<-- [end:deep]\n",
    "parts/x.txt": "one\ntwo",
    "docs/x.md": "Beside.",
}


@pytest.mark.parametrize(
    ("text", "shown", "unseen"),
    [
        ('A.\n\n--8<-- "part.md"\n\nB.', "A.\n\n# Part\n\nIncluded *words*.\n\nOnly this.\n\nB.", "8<"),
        ('A.\n\n--8<-- "part.md:one"\n', "A.\n\nOnly this.", "Included"),
        ('A.\n\n--8<-- "part.md:3:3"\n', "A.\n\nIncluded *words*.", "Only"),
        ('```py\n--8<-- "code.py:4:5"\n```\n', "```py\ndef run():\n    pass\n```", "import"),
        ('A.\n\n--8<-- "x.md"\n', "A.\n\nBeside.", "8<"),
        ('A.\n\n--8<-- "../../etc/passwd"\n', "A.", "8<"),
        ('A.\n\n--8<-- "gone.md"\n', "A.", "8<"),
        ("A.\n\n--8<--\nx.md\n; part.md\n\ncode.py:1:1\n--8<--\nB.", "A.\n\nBeside.\n\nimport a\nB.", "8<"),
        ('A.\n\n;--8<-- "x.md"\n', 'A.\n\n--8<-- "x.md"', ";"),
        ('- A:\n\n    ```py\n    --8<-- "code.py:-2:"\n    ```\n', "- A:\n\n```py\ndef run():\n    pass\n```", "8<"),
        ('```py\n--8<-- "deep.py:deep"\n```\n', "```py\nx = 1\nif x:\n    y = 2\n```", "start:"),
        ("```py\n{!parts/code.py[ln:1,4-5]!}\n```\n", "```py\nimport a\ndef run():\n    pass\n```", "{!"),
        (
            'A.\n{% include-markdown "parts/part.md"\n  start="Included"\n  end="-8<-" %}\nB.',
            "A.\n *words*.\n\n-\nB.",
            "{%",
        ),
        ('{% include "parts/x.txt" %}{% include "gone.md" %}', "one\ntwo", "{%"),
        ("A {!> ../parts/x.txt !} B {!gone.md!}C", "A one\ntwo B C", "{!"),
        (
            "{* ../parts/code.py ln[1, 4:4] hl[4] *}\n",
            "```python\nimport a\n\n# Code here omitted\n\ndef run():\n\n# Code below omitted\n```",
            "{*",
        ),
        (
            'A.\n{* parts/x.txt hl[1] title["a/x.txt"] *}\n{* gone.py *}\nB.',
            "A.\n\n**a/x.txt**\n\n```txt\none\ntwo\n```\n\nB.",
            "{*",
        ),
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
    assert page_of(files, "content/docs/a.md").content == "A.\n\nIncluded words.\n\nIncluded words."


def test_files_that_show_each_other_end():
    files = {"mkdocs.yml": "", "docs/a.md": 'A\n\n--8<-- "b.md"\n', "docs/b.md": 'B\n\n--8<-- "a.md"\n'}
    assert "B" in page_of(files, "docs/a.md").content


def test_lines_of_other_files_count_as_the_line_that_names_them():
    text = '---\ntitle: T\n---\nA.\n\n--8<-- "part.md"\n\n## B\n\nC [x](x.md).\n'
    page = page_of({**MKDOCS, "docs/a.md": text}, "docs/a.md")
    assert [(one.heading, one.start_line, one.end_line) for one in page.sections] == [
        ("", 4, 5),
        ("Part", 6, 7),
        ("B", 8, 10),
    ]
    assert [link.line for link in page.links] == [10]


MYST = {"docs/conf.py": "extensions = ['myst_parser']", "docs/index.rst": "A\n=\n\n.. toctree::\n\n   changes\n"}
RELEASE = "## Version 8.{at}.0\n\n" + "- A parameter of the parser is read once more. It had been read twice.\n" * 45


@pytest.mark.parametrize(
    ("others", "path", "text"),
    [
        (MYST, "docs/changes.md", "```{include} ../CHANGES.md\n```"),
        (MYST, "docs/changes.rst", "Changes\n=======\n\n.. include:: ../CHANGES.md\n"),
        ({"mkdocs.yml": "site_name: x"}, "docs/changes.md", '--8<-- "CHANGES.md"'),
        ({"docs/.vitepress/config.js": "export default {}"}, "docs/changes.md", "<!--@include: ../CHANGES.md-->"),
        ({"hugo.toml": "", "content/_index.md": "x"}, "content/changes.md", '{{% include "CHANGES.md" %}}'),
    ],
)
def test_change_log_of_years_is_shown_whole(others, path, text):
    log = "".join(RELEASE.replace("{at}", str(at)) for at in range(50))
    assert len(log) > 150_000
    page = page_of(
        {
            **others,
            "CHANGES.md": log,
            "content/CHANGES.md": log,
            path: f"# Changes\n\n{text}\n" if path.endswith("md") else text,
        },
        path,
    )
    assert all(f"Version 8.{at}.0" in page.content for at in (0, 11, 49))
