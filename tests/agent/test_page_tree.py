"""The pages and the part of the navigation that names them, as the agent is told at first."""

import re

import pytest

from service.agent.guidance.navigation_shape import navigation_shape
from service.agent.guidance.page_tree import MAX_CHARACTERS, page_tree
from service.agent.loop.conversation import facts
from service.agent.workspace import Workspace
from service.ports.docs_source import Source
from tests.agent.test_site_gates import BOOK, DOCUSAURUS, MKDOCS, PICTURES, SPHINX, STARLIGHT, VITEPRESS
from tests.fakes.docs_source import FakeDocsSource


async def workspace_of(files, docs_folder=""):
    docs = FakeDocsSource(files)
    return await Workspace.open(docs, Source("p1", "", "main", docs_folder, "local"), docs.branches["main"], {})


VITE = {
    "docs/.vitepress/config.ts": """\
import { footer } from './theme'
export default {
  themeConfig: {
    nav: [
      { text: 'Team', link: 'https://team.example' },
      { text: 'Blog', link: 'https://blog.example' },
    ],
    footer: {
      nav: [{ title: 'More', items: [{ text: 'Code', link: 'https://code.example' }] }],
    },
"""
    + "    social: 'x',\n" * 60
    + """\
    sidebar: {
      '/guide/': [
        {
          text: 'Start',
          items: [
            { text: 'Second', link: '/guide/second' },
            { text: 'First', link: '/guide/first' },
          ],
        },
      ],
    },
  },
}
""",
    "docs/index.md": "---\ntitle: Home\n---\n",
    "docs/guide/first.md": "# The first page\n",
    "docs/guide/second.md": "# The second page\n",
    "docs/blog/news.md": "# News\n",
}


async def test_pages_are_told_with_titles_in_the_order_of_the_navigation():
    told = await facts(await workspace_of(VITE, "docs"))
    assert "- Its pages with their titles, in the order of the navigation:" in told
    assert (
        "docs/\n  index.md: Home\ndocs/guide/\n  second.md: The second page\n  first.md: The first page\n"
        "Not in the navigation:\ndocs/blog/\n  news.md: News\n" in told
    )


NEXTRA = {
    "next.config.mjs": "import nextra from 'nextra'\n",
    "content/_meta.js": "export default {\n  index: 'Home',\n  zebra: 'Z',\n  apple: 'A',\n}\n",
    "content/index.mdx": "# Home\n",
    "content/zebra.mdx": "# Zebra\n",
    "content/apple.mdx": "# Apple\n",
}
JSON_NAV = '{"name": "X", "colors": {"primary": "#000"},\n "navigation": {"pages": [\n  "guide/a"\n ]}}\n'


@pytest.mark.parametrize(
    ("files", "path", "has", "lacks"),
    [
        (VITE, "docs/.vitepress/config.ts", "link: '/guide/second'", "code.example"),
        (VITEPRESS, "docs/.vitepress/config.ts", "link: '/guide/a'", ""),
        ({**PICTURES, "docs.json": JSON_NAV}, "docs.json", '"guide/a"', "colors"),
        (MKDOCS, "mkdocs.yml", "nav:\n  - Home: index.md", ""),
        (DOCUSAURUS, "sidebars.js", "'guide/a'", ""),
        (SPHINX, "docs/index.rst", ".. toctree::\n   :maxdepth: 2\n\n   a\n   B <b>", "=\n"),
        (BOOK, "src/SUMMARY.md", "- [A](guide/a.md)", ""),
        (STARLIGHT, "astro.config.mjs", "slug: 'b'", ""),
        (NEXTRA, "content/_meta.js", "zebra: 'Z'", ""),
    ],
)
async def test_the_part_that_names_pages_is_found(files, path, has, lacks):
    shape = await navigation_shape(await workspace_of(files))
    assert f"- {path}, " in shape
    assert has in shape
    assert not lacks or lacks not in shape


async def test_toctrees_of_other_pages_than_the_first_are_shown():
    files = {
        "docs/conf.py": "extensions = ['myst_parser']\nproject = 'X'\n",
        "docs/index.md": "# X\n\nWelcome.\n\n```{toctree}\n:maxdepth: 2\n\na\nb/index\n```\n",
        "docs/a.md": "# A\n",
        "docs/b/index.md": "# B\n\n```{toctree}\nc\nd\n```\n",
        "docs/b/c.md": "# C\n",
        "docs/b/d.md": "# D\n",
    }
    shape = await navigation_shape(await workspace_of(files))
    assert "- docs/index.md, " in shape
    assert "a\nb/index\n```" in shape
    assert "c\nd\n```" in shape


@pytest.mark.parametrize(("folders", "pages"), [(6, 10), (30, 10), (20, 700), (1, 3_000)])
async def test_the_tree_fits_its_room_however_large_the_site(folders, pages):
    files = {
        f"docs/folder{folder:02}/page{page:04}.md": f"---\ntitle: Page {page} of {folder}\n---\n"
        for folder in range(folders)
        for page in range(pages)
    }
    tree, is_ordered = await page_tree(await workspace_of(files, "docs"))
    assert len(tree) <= MAX_CHARACTERS + 100
    assert not is_ordered
    counted = sum(map(int, re.findall(r"\((\d+) pages?\)", tree))) or tree.count("page")
    assert counted == folders * pages
    if folders == 6:
        assert "  page0003.md: Page 3 of 0\n" in tree
    if folders == 30:
        assert "docs/folder07/ (10 pages): Page 0 of 7, Page 1 of 7, Page 2 of 7, …" in tree


async def test_what_does_not_fit_is_counted():
    files = {f"{'very-' * 12}long-{number:03}.md": "# T\n" for number in range(300)}
    tree, _ = await page_tree(await workspace_of(files))
    shown = tree.count("long-")
    assert tree.endswith(f"… {300 - shown} more lines: list shows them")
