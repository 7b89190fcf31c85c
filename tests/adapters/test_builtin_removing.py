"""The builtin editor removes a page with all that leads to it, and sets the title of a page wherever it stands."""

import pytest

from tests.adapters.builtin_job import FILES, job


async def test_removed_page_takes_links_and_navigation_with_it():
    end, _, now = await job("remove page guides/start")
    assert "guides/start.mdx" not in now
    assert "Welcome to Acme. Read start of Acme.\n" in now["index.mdx"]
    assert "Back to run and [install]" in now["guides/end.mdx"]
    assert '"pages": ["index", "guides/end"]' in now["docs.json"]
    assert end.work.remaining_problems == ()
    assert end.outcome.message.splitlines() == [
        "- Removed guides/start.mdx.",
        "- Took it out of docs.json.",
        "- Took the links to it out of 2 pages: 2 became plain text.",
    ]


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ('Use [the *old* way](/old "Old") now.', "Use the *old* way now."),
        ("Text. See [Old](old.md#x).", "Text."),
        ("Text. For more, see [Old](/old). More.", "Text. More."),
        ("Text.\n\nLearn more about it in the [Old](/old) guide.\n\nMore.", "Text.\n\nMore."),
        ("Text. Check out the [Old](/old) page for details. More.", "Text. More."),
        ("- [Old](/old)\n- [B](/b)", "- [B](/b)"),
        ("- **[Old](/old)**: as it was\n- [B](/b)", "- [B](/b)"),
        ("- [Old](/old) and [B](/b)", "- Old and [B](/b)"),
        ("- [Old](/old)\n  of two lines", "- Old\n  of two lines"),
        ("| [Old](/old) | x |", "| Old | x |"),
        ("An [Old][o] and an [o].\n\n[o]: /old", "An Old and an o."),
        ('<a href="/old">Old</a> text', "Old text"),
        ('Text.\n\n<Cards>\n  <Card title="Old" href="/old">\n    It\n  </Card>\n</Cards>\n\nMore.', "Text.\n\nMore."),
        ('<Cards>\n  <Card href="/old" />\n  <Card href="/b" />\n</Cards>', '<Cards>\n  <Card href="/b" />\n</Cards>'),
        ('<Card href="/old" if={() => 1 > 0} />\n\nText.', "Text."),
        ("Text.\n\n## See also\n\n- [Old](/old)", "Text."),
        ("## Next\n\n- [Old](/old)\n\n## Last\n\nText.", "## Last\n\nText."),
        ("`[Old](/old)` is code, [Old](/old) is not.", "`[Old](/old)` is code, Old is not."),
        ("[![Old](x.png)](/old) text", "![Old](x.png) text"),
        ("Windows:\r\n\r\n- [Old](/old)\r\n- [B](/b)\r\n", "Windows:\r\n\r\n- [B](/b)\r\n"),
    ],
)
async def test_link_to_a_removed_page_goes_or_becomes_text(written, left):
    files = {"old.md": "# Old\n\n## X\n", "b.md": "# B\n", "a.mdx": f"# A\n\n{written}\n", "x.png": "x"}
    end, _, now = await job("delete page old.md and the links to it", files=files)
    assert now["a.mdx"] == f"# A\n\n{left}\n"
    assert end.work.remaining_problems == ()


NESTED = """{
  "navigation": {
    "groups": [
      {"group": "Start", "pages": ["index", "b"]},
      {
        "group": "Old things",
        "icon": "clock",
        "pages": [
          "old"
        ]
      }
    ]
  },
  "redirects": [{"source": "/older", "destination": "/old"}]
}
"""
MKDOCS = "nav:\n  - Home: index.md\n  - Old:\n    - It: old.md\n  - b.md\n"


@pytest.mark.parametrize(
    ("file", "text", "left"),
    [
        ("docs.json", NESTED, '      {"group": "Start", "pages": ["index", "b"]}\n    ]\n  },\n'),
        ("mkdocs.yml", MKDOCS, "nav:\n  - Home: index.md\n  - b.md\n"),
        ("sidebars.json", '{"a": ["index", {"type": "doc", "id": "old"}, "b"]}\n', '{"a": ["index", "b"]}\n'),
    ],
)
async def test_removed_page_leaves_no_empty_group_in_navigation(file, text, left):
    docs = "" if file == "docs.json" else "docs/"
    pages = {f"{docs}{name}.md": f"# {name}\n" for name in ("index", "b", "old")}
    end, _, now = await job("remove page old", files={**pages, file: text})
    assert left in now[file]
    assert not any(problem.is_error for problem in end.work.remaining_problems or ())
    assert ("redirects 1 other address to it" in end.outcome.message) == (file == "docs.json")


async def test_removed_page_and_others_are_carried_out_together():
    asked = 'replace "Acme" with "Nova", remove page guides/end and set title of index to "Start here"'
    end, _, now = await job(asked)
    assert [todo.status for todo in end.work.todos] == ["completed"] * 3
    assert now["index.mdx"].startswith("---\ntitle: Start here\n---\n\nWelcome to Nova.")
    assert "guides/end.mdx" not in now


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.mdx", "---\ntitle: Old\nslug: /a\n---\n\nText.\n", "---\ntitle: New one\nslug: /a\n---\n\nText.\n"),
        ("a.md", '---\ntitle: "Old"\n---\n\n# Old\n', '---\ntitle: "New one"\n---\n\n# New one\n'),
        (
            "a.md",
            "---\ntitle: 'Old'\nsidebar_label: Old\n---\n",
            "---\ntitle: 'New one'\nsidebar_label: New one\n---\n",
        ),
        ("a.md", "---\ntitle: Old\n---\n\n# Another\n", "---\ntitle: New one\n---\n\n# Another\n"),
        ("a.md", "---\nweight: 3\n---\n\n# Old {#o}\n", "---\nweight: 3\n---\n\n# New one {#o}\n"),
        ("a.md", "---\nweight: 3\n---\n\nText.\n", "---\ntitle: New one\nweight: 3\n---\n\nText.\n"),
        ("a.md", "+++\ntitle = 'Old'\n+++\n", "+++\ntitle = 'New one'\n+++\n"),
        ("a.md", "---\ntitle: >\n  Old\n  thing\nid: a\n---\n", "---\ntitle: New one\nid: a\n---\n"),
        ("a.md", "Text.\n", "# New one\n\nText.\n"),
        ("a.md", "Old\n===\n\nText.\n", "New one\n=======\n\nText.\n"),
        ("a.rst", "===\nOld\n===\n\nText.\n", "=======\nNew one\n=======\n\nText.\n"),
        ("a.md", "---\r\ntitle: Old\r\n---\r\n", "---\r\ntitle: New one\r\n---\r\n"),
    ],
)
async def test_title_is_set_where_the_page_has_it(path, before, after):
    _, changed, _ = await job(f'set title of {path} to "New one"', files={path: before, "b.md": "# B\n"})
    assert changed == {path: after}


@pytest.mark.parametrize(
    ("file", "text", "left"),
    [
        ("mkdocs.yml", "nav:\n  - Old: a.md\n", "nav:\n  - 'New': a.md\n"),
        ("mkdocs.yml", "nav:\n  - Another: a.md\n", ""),
        ("sidebars.json", '{"x": [{"type": "doc", "id": "a", "label": "Old"}]}\n', '"id": "a", "label": "New: it"'),
    ],
)
async def test_label_that_repeats_the_title_is_set_with_it(file, text, left):
    files = {"docs/a.md": "# Old\n\nSee [it](#old).\n", file: text}
    end, changed, _ = await job('set title of a to "New: it"', files=files)
    assert changed["docs/a.md"] == "# New: it\n\nSee [it](#new-it).\n"
    assert left.replace("'New'", '"New: it"') in changed.get(file, "")
    assert (file in changed) == bool(left)
    assert end.work.remaining_problems == ()


async def test_title_that_is_there_already_changes_nothing():
    end, changed, _ = await job('set title of index to "Home"', files=FILES)
    assert changed == {}
    assert 'The title of index.mdx is "Home" already.' in end.outcome.message


SIDEBARS = """// @ts-check
module.exports = {
  docs: [
    "index",
    {
      type: "category",
      label: "Guides",
      items: ["guides/old", { type: "doc", id: "guides/second", label: "Second" }],
    },
  ],
};
"""
VITEPRESS = """import { defineConfig } from 'vitepress'

export default defineConfig({
  themeConfig: {
    sidebar: [
      { text: 'Start', link: '/' },
      { text: 'Old', link: '/guides/old' },
      { text: 'Second', link: '/guides/second' },
    ],
  },
})
"""
GUIDES = {
    "docs/index.md": "# Home\n",
    "docs/guides/old.md": "# Old\n",
    "docs/guides/next.md": "---\nid: second\n---\n\n# Second\n",
}


@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [
        ("remove page guides/old", '["guides/old", { type', "[{ type"),
        ("remove page guides/next", ', { type: "doc", id: "guides/second", label: "Second" }]', "]"),
        ("rename guides/old to guides/older", '"guides/old"', '"guides/older"'),
        ("rename guides/next to guides/deep/next", '"guides/second"', '"guides/deep/second"'),
    ],
)
async def test_sidebar_that_is_a_program_follows_its_pages(asked, before, after):
    files = {**GUIDES, "sidebars.js": SIDEBARS, "docusaurus.config.js": "module.exports = {}\n"}
    end, changed, _ = await job(asked, files=files)
    assert changed["sidebars.js"] == SIDEBARS.replace(before, after)
    assert end.work.remaining_problems == ()


@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [
        ("remove page guides/old", "      { text: 'Old', link: '/guides/old' },\n", ""),
        ("rename guides/old to guides/older", "'/guides/old'", "'/guides/older'"),
    ],
)
async def test_sidebar_of_vitepress_follows_its_pages(asked, before, after):
    files = {**GUIDES, "docs/.vitepress/config.ts": VITEPRESS}
    end, changed, _ = await job(asked, files=files)
    assert changed["docs/.vitepress/config.ts"] == VITEPRESS.replace(before, after)
    assert end.work.remaining_problems == ()


SPHINX = {
    "docs/conf.py": "project = 'x'\n",
    "docs/index.rst": "Home\n====\n\n.. toctree::\n   :maxdepth: 2\n\n   guides/old\n   Next <guides/next>\n\n"
    "See :doc:`guides/old` and :doc:`the next <guides/next>`. The old guide.\n",
    "docs/guides/index.md": "# Guides\n\n```{toctree}\n:maxdepth: 1\n\nold\nnext\n```\n\nSee {doc}`/guides/next`.\n",
    "docs/guides/old.rst": "Old\n===\n",
    "docs/guides/next.rst": "Next\n====\n\nSee :doc:`old`.\n",
}


async def test_removed_page_leaves_sphinx_tables_of_contents():
    end, changed, _ = await job("remove page guides/old", files=SPHINX)
    assert changed["docs/index.rst"] == SPHINX["docs/index.rst"].replace("   guides/old\n", "").replace(
        ":doc:`guides/old`", "old"
    )
    assert changed["docs/guides/index.md"] == SPHINX["docs/guides/index.md"].replace("\nold\n", "\n")
    assert changed["docs/guides/next.rst"].endswith("See old.\n")
    assert "Took it out of the tables of contents and references of 3 pages." in end.outcome.message


async def test_other_roles_of_sphinx_follow_a_page():
    files = {
        **SPHINX,
        "docs/guides/data.csv": "a\n",
        "docs/guides/next.rst": "Next\n====\n\n:any:`old`, :download:`data.csv`, :download:`D </guides/data.csv>`.\n",
        "docs/index.rst": SPHINX["docs/index.rst"] + "\n:any:`guides/next` and :any:`it <guides/next>`.\n",
    }
    end, changed, now = await job("rename guides/next to parts/later", files={**files, "docs/parts/x.rst": "X\n=\n"})
    assert ":any:`parts/later` and :any:`it <parts/later>`." in changed["docs/index.rst"]
    assert ":any:`../guides/old`, :download:`../guides/data.csv`, :download:`D </" in now["docs/parts/later.rst"]
    assert end.work.remaining_problems == ()


async def test_renamed_page_is_renamed_in_sphinx_markup():
    _, changed, now = await job("rename guides/next to parts/later", files={**SPHINX, "docs/parts/x.rst": "X\n=\n"})
    assert "   Next <parts/later>\n" in changed["docs/index.rst"]
    assert ":doc:`the next <parts/later>`" in changed["docs/index.rst"]
    assert "old\n../parts/later\n```\n\nSee {doc}`/parts/later`." in changed["docs/guides/index.md"]
    assert now["docs/parts/later.rst"].endswith("See :doc:`../guides/old`.\n")
