"""MkDocs sites: which files are pages, in which order, where, and what a page shows."""

import pytest

from service.retrieval.site.navigation import detect_layout, make_site
from service.retrieval.site.pages import PageReader
from tests.retrieval.formats import page_of


def site_of(files):
    data = {name: text.encode() for name, text in files.items()}
    layout = detect_layout(data, data.get)
    assert layout.kind == "mkdocs"
    reader = PageReader(layout, lambda name, limit: data[name][:limit] if name in data else None)
    return make_site(layout, [reader.page(name) for name in sorted(data) if layout.is_page(name)], data)


def listed(files):
    pages = sorted(site_of(files).pages.values(), key=lambda page: (page.order < 0, page.order, page.path))
    return [(page.url, page.title, page.language) for page in pages]


def test_folders_of_languages_are_one_site():
    config = "site_name: S\nsite_url: https://x.y/docs/\ntheme: {language: en}\nnav:\n- Home: index.md\n- a.md\n"
    files = {
        "docs/de/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\n",
        "docs/en/mkdocs.yml": config + "extra:\n  alternate:\n  - {link: /docs/, name: en}\n",
        "docs/fr/mkdocs.yml": "INHERIT: ../en/mkdocs.yml\nsite_url: https://x.y/docs/francais/\n",
        **{
            f"docs/{name}/docs/{page}.md": f"# {page} {name}\n"
            for name in ("en", "de", "fr", "zh-hant")
            for page in "ab"
        },
        "docs/en/docs/index.md": "# Welcome\n",
        "docs/de/docs/index.md": "# Willkommen\n",
        "docs/parts/docs/a.md": "# No language\n",
    }
    assert listed(files) == [
        ("/", "Home", "en"),
        ("/a", "a en", "en"),
        ("/de", "Home", "de"),
        ("/de/a", "a de", "de"),
        ("/francais/a", "a fr", "fr"),
        ("/zh-hant/a", "a zh-hant", "zh-hant"),
        ("/de/b", "b de", "de"),
        ("/b", "b en", "en"),
        ("/francais/b", "b fr", "fr"),
        ("/zh-hant/b", "b zh-hant", "zh-hant"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/// note | Mind *it*\n\nText.\n\n///\n\nMore.", "**Mind *it***\n\nText.\n\nMore."),
        ("//// tab | One\n    select: true\n/// warning\nText.\n///\n////", "**One**\n\n**Warning**\nText."),
        ("/// html | div.box\nText.\n///", "Text."),
        ('!!! note ""\n    Text.', "Text."),
        ('??? info inline end "Title"\n    Text.\n\n===! "Tab"\n\n    In it.', "**Title**\nText.\n\n**Tab**\n\nIn it."),
        ("1. One\n\n    !!! tip\n\n        Text.", "1. One\n\n**Tip**\n\nText."),
        ("::: pkg.Class\n    options:\n      members: [a]\n\nText.", "`pkg.Class`\n\nText."),
        ("[TOC]\n\nHTML[^1] is.\n\n*[HTML]: Hyper\n\n[^1]: A note.", "HTML is.\n\nA note."),
        ("[Go](b.md){ .md-button target=_blank }\n\nText.\n{: .lead #top }", "[Go](b.md)\n\nText."),
        (
            "Press ++ctrl+page-up++, see ==this==, `++x++` and `{ .y }`.",
            "Press Ctrl+Page Up, see this, `++x++` and `{ .y }`.",
        ),
        ("Term\n\n:   What it is.", "Term\n\nWhat it is."),
        (":material-check: Done {# hidden #}\n\n{{ macro(1) }}\n\n{% if x %}Yes{% endif %}", " Done\n\nYes"),
        ('<div class="grid" markdown>\n\n- __Card__\n\n</div>\n\n<a title="{{ x }}">A</a>', "- __Card__\n\nA"),
        ('``` { .py .annotate hl_lines="1" title="x.py" }\na\n```', "**x.py**\n```py\na\n```"),
        ('```C++ linenums="1"\na\n```\n\n``` title="b"\nb\n```', "```C++\na\n```\n\n**b**\n```\nb\n```"),
        ("if a == b and c == d, C++ or D++ {x} [^", "if a == b and c == d, C++ or D++ {x} [^"),
    ],
)
def test_markup_of_extensions_is_shown_as_words(text, shown):
    assert page_of({"mkdocs.yml": "site_name: S", "docs/a.md": text}, "docs/a.md").content == shown.strip()


def test_headings_have_the_anchors_of_attribute_lists():
    page = page_of(
        {"mkdocs.yml": "site_name: S", "docs/a.md": "# T\n\n## A { .x #own y=z }\n\nT.\n\n## B { .c }\n\nT."},
        "docs/a.md",
    )
    assert [(one.heading, one.anchor) for one in page.sections] == [("A", "own"), ("B", "b")]


async def test_page_is_found_by_heading_and_navigation_title(indexed):
    await indexed.fill({
        "mkdocs.yml": "site_name: S\nnav:\n- Home: index.md\n- Mooring: ropes.md\n",
        "docs/index.md": "# Welcome\n\nWords.\n",
        "docs/ropes.md": "# Hawsers\n\nThick.\n",
    })  # fmt: skip
    assert await indexed.paths("hawsers") == ["docs/ropes.md"]
    assert await indexed.paths("mooring") == ["docs/ropes.md"]


def test_pages_that_are_no_search_results_are_left_out():
    files = {"mkdocs.yml": "site_name: S\nexclude_docs: /old.md\n", "docs/a.md": "# A", "docs/old.md": "# Old"}
    files["docs/b.md"] = "---\nsearch:\n  exclude: true\n---\n# B"
    assert listed(files) == [("/a", "A", "")]


def test_appended_files_stand_at_the_end_of_each_page():
    config = "site_name: S\nmarkdown_extensions:\n- pymdownx.snippets:\n    base_path:\n    - x\n    - parts\n"
    files = {
        "mkdocs.yml": config + "    auto_append: [end.md, gone.md]\n",
        "parts/end.md": "*[HTML]: Hyper\n\n## Help\n\nAsk us.\n",
        "docs/a.md": "# A\n\nHTML.\n",
    }
    page = page_of(files, "docs/a.md")
    assert page.content == "HTML.\n\n## Help\n\nAsk us."
    assert [(one.heading, one.start_line, one.end_line) for one in page.sections] == [("", 1, 3), ("Help", 3, 3)]
