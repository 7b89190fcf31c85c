"""A page that readers no longer find is an error, unless people asked for it."""

import pytest

from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.workspace import Workspace
from tests.agent.test_site_gates import BOOK, DOCUSAURUS, MKDOCS, PICTURES, SOURCE, SPHINX, STARLIGHT, VITEPRESS
from tests.fakes.docs_source import FakeDocsSource


async def lost(files, changes, *asked):
    docs = FakeDocsSource(files)
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, changes)
    problems = await gates.check(workspace, Links(workspace), asked=asked)
    return [(each.path, each.severity) for each in problems if each.code == "page_unreachable"]


INDEX = "X\n=\n\nA new start.\n"
MYST = {
    "docs/conf.py": "extensions = ['myst_parser']\nproject = 'X'\n",
    "docs/index.md": "# X\n\n```{toctree}\n:maxdepth: 2\n\na\nb/index\n```\n",
    "docs/a.md": "# A\n",
    "docs/b/index.md": "# B\n\n```{toctree}\nc\n```\n",
    "docs/b/c.md": "# C\n",
}
NESTED = {
    **BOOK,
    "src/SUMMARY.md": "# Summary\n\n- [A](guide/a.md)\n  - [B](guide/b.md)\n",
    "src/guide/b.md": "# B\n",
}


@pytest.mark.parametrize(
    ("files", "changes", "pages"),
    [
        (SPHINX, {"docs/index.rst": INDEX}, ["docs/a.rst", "docs/b.rst"]),
        (SPHINX, {"docs/index.rst": SPHINX["docs/index.rst"].replace("   a\n", "")}, ["docs/a.rst"]),
        (MYST, {"docs/index.md": "# X\n"}, ["docs/a.md", "docs/b/index.md", "docs/b/c.md"]),
        (MYST, {"docs/b/index.md": "# B\n"}, ["docs/b/c.md"]),
        (MKDOCS, {"mkdocs.yml": "nav:\n  - Home: index.md\n"}, ["docs/a.md"]),
        (PICTURES, {"docs.json": '{"name": "X", "navigation": {"pages": []}}\n'}, ["guide/a.mdx"]),
        (DOCUSAURUS, {"sidebars.js": "module.exports = {docs: ['guide/a', 'intro']}\n"}, ["docs/guide/b.md"]),
        (VITEPRESS, {"docs/.vitepress/config.ts": "export default { themeConfig: { sidebar: [] } }\n"},
         ["docs/guide/a.md"]),
        (STARLIGHT, {"astro.config.mjs": STARLIGHT["astro.config.mjs"].replace(", {slug: 'b'}", "")},
         ["src/content/docs/b.md"]),
        (NESTED, {"src/SUMMARY.md": "# Summary\n\n- [A](guide/a.md)\n"}, ["src/guide/b.md"]),
    ],
)  # fmt: skip
async def test_page_that_loses_its_last_entry_is_an_error(files, changes, pages):
    assert await lost(files, changes) == [(page, "error") for page in pages]


@pytest.mark.parametrize(
    ("asked", "is_asked"),
    [
        ("Remove the page a from the navigation", True),
        ("Please delete all entries of the sidebar", True),
        ("Hide `docs/a.rst`.", True),
        ("Entferne a.rst aus dem Inhaltsverzeichnis", False),
        ("Entferne docs/a und docs/b aus der Navigation", True),
        ("Make the start page shorter", False),
        ("Rewrite the navigation", False),
        ("Remove the typos from the start page", False),
    ],
)
async def test_what_people_asked_for_is_no_error(asked, is_asked):
    files = {**SPHINX, "docs/alpha.rst": "Alpha\n=====\n"}
    files["docs/index.rst"] = files["docs/index.rst"].replace("   a\n", "   alpha\n")
    changes = {"docs/index.rst": INDEX}
    asked = asked.replace(" a ", " alpha ").replace("docs/a.", "docs/alpha.").replace("docs/a ", "docs/alpha ")
    found = [page for page, _ in await lost(files, changes, asked)]
    assert ("docs/alpha.rst" not in found) == is_asked


LINKED = {
    "mkdocs.yml": "nav:\n  - Home: index.md\n  - A: a.md\n",
    "docs/index.md": "# Home\n\nSee [more](more.md) and [A](a.md).\n",
    "docs/a.md": "# A\n",
    "docs/more.md": "# More\n",
}


@pytest.mark.parametrize(
    ("others", "changes", "pages"),
    [
        ({}, {"docs/index.md": "# Home\n"}, ["docs/more.md"]),
        ({}, {"docs/index.md": "# Home\n\n[All of it](./more.md#x)\n"}, []),
        ({"docs/a.md": "# A\n\n[More](more.md)\n"}, {"docs/index.md": "# Home\n"}, []),
        ({"docs/b.md": "# B\n"}, {"docs/index.md": "# Home\n\n[B](b.md) and [more](more.md)\n"}, []),
        ({}, {"docs/index.md": "# Home\n", "docs/more.md": None}, []),
        ({}, {"docs/index.md": "# Home\n\n[More](much.md)\n", "docs/more.md": None, "docs/much.md": "# More\n"}, []),
    ],
)
async def test_page_that_loses_its_last_link_is_an_error(others, changes, pages):
    assert [page for page, _ in await lost({**LINKED, **others}, changes)] == pages


@pytest.mark.parametrize(
    ("files", "changes"),
    [
        ({"a.md": "[b](b.md)\n", "b.md": "# B\n"}, {"a.md": "# A\n"}),
        ({"hugo.toml": "", "content/a.md": "# A\n", "content/b.md": "# B\n"}, {"content/a.md": "# Aa\n"}),
        (SPHINX, {"docs/a.rst": None, "docs/index.rst": SPHINX["docs/index.rst"].replace("   a\n", "")}),
        (SPHINX, {
            "docs/a.rst": None, "docs/c.rst": "A\n=\n",
            "docs/index.rst": SPHINX["docs/index.rst"].replace("   a\n", "   c\n"),
        }),
    ],
)  # fmt: skip
async def test_lists_that_others_make_and_pages_that_went_are_no_problem(files, changes):
    assert await lost(files, changes) == []


@pytest.mark.parametrize("link", ["", "See [below](#more).\n", "See [unlisted](/loose) and [below](#more).\n"])
async def test_moved_page_that_links_to_itself_and_others_loses_nothing(link):
    page = f"# Part\n\n{link}\n## More\n\nText.\n"
    files = {**PICTURES, "part.mdx": page, "loose.mdx": "# Loose\n"}
    assert await lost(files, {"part.mdx": None, "piece.mdx": page}) == []
