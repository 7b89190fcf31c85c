"""The gates that look at the whole site: images, addresses, navigation, new code. What was there before counts not."""

import re
from pathlib import Path

import pytest

import service
from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.checks.rules import RULES
from service.agent.workspace import Workspace
from service.ports.docs_source import LeftOut, Source
from tests.fakes.docs_source import FakeDocsSource

SOURCE = Source("p1", "", "main", "", "local")


async def problems(files, changes, left_out=()):
    docs = FakeDocsSource(files)
    docs.left_out_files = list(left_out)
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, changes)
    return await gates.check(workspace, Links(workspace))


async def found(files, changes, **options):
    return [(problem.code, problem.path, problem.line) for problem in await problems(files, changes, **options)]


PICTURES = {
    "docs.json": '{"name": "X", "navigation": {"pages": ["guide/a"]}}\n',
    "guide/a.mdx": "---\ntitle: A\n---\n\n![One](/images/one.png)\n\n![Gone](/images/gone.png)\n",
    "images/one.png": b"\x89PNG",
    "guide/near.png": b"\x89PNG",
    "static/img/two.png": b"\x89PNG",
}
A = PICTURES["guide/a.mdx"]


@pytest.mark.parametrize(
    ("added", "is_found"),
    [
        ("![x](/images/one.png)", False),
        ("![x](near.png)", False),
        ("![x](../images/one.png?raw=true#x)", False),
        ("<img src='/img/two.png' />", False),
        ("![x](https://x.example/y.png)", False),
        ("![x](/images/gone.png)", False),
        ("`![x](/images/no.png)`", False),
        ("![x](/images/no.png)", True),
        ("![x](far.png)", True),
        ("```{image} far.png\n```", True),
        ("<img src='../images/no.png' />", True),
        ("![x](/other/one.png)", True),
    ],
)
async def test_new_image_has_to_exist(added, is_found):
    expected = [("image_missing", "guide/a.mdx", 9)] if is_found else []
    assert await found(PICTURES, {"guide/a.mdx": f"{A}\n{added}\n"}) == expected


async def test_missing_image_is_named_with_the_nearest_one():
    (problem,) = await problems(PICTURES, {"guide/a.mdx": f"{A}\n![x](/pictures/one.png)\n"})
    assert problem.message == "The image /pictures/one.png does not exist. Did you mean images/one.png?"


async def test_images_that_a_site_has_elsewhere_are_not_missing():
    files = {"a.md": "![x](/assets/one.png)\n", "b.md": "# B\n"}
    assert await found(files, {"b.md": "# B\n\n![x](/assets/new/two.png) ![x](/media/two.png)\n"}) == [
        ("image_missing", "b.md", 3)
    ]
    linked = [LeftOut("pics", "It is a symbolic link, which is not followed.")]
    assert await found(files, {"b.md": "# B\n\n![x](pics/two.png)\n"}, left_out=linked) == []


DOCUSAURUS = {
    "docusaurus.config.js": "module.exports = {}\n",
    "sidebars.js": "module.exports = {docs: ['guide/a', 'guide/b', 'intro']}\n",
    "docs/intro.md": "---\nslug: /start\n---\n\n# Intro\n",
    "docs/guide/a.md": "---\nid: a\n---\n\n# A\n",
    "docs/guide/b.md": "# B\n",
}
HUGO = {
    "hugo.toml": "",
    "content/a.md": "---\nurl: /x/\n---\n",
    "content/b.md": "# B\n",
    "content/c/_index.md": "# C\n",
}


@pytest.mark.parametrize(
    ("files", "changes", "path"),
    [
        (DOCUSAURUS, {"docs/guide/b.md": "---\nslug: /start\n---\n\n# B\n"}, "docs/guide/b.md"),
        (DOCUSAURUS, {"docs/guide/b.md": "---\nslug: a\n---\n\n# B\n"}, "docs/guide/b.md"),
        (DOCUSAURUS, {"docs/guide/b.md": "---\nid: a\nslug: other\n---\n\n# B\n"}, "docs/guide/b.md"),
        (DOCUSAURUS, {"docs/guide/b.md": "---\nslug: other\n---\n\n# B\n"}, None),
        (HUGO, {"content/b.md": "---\nurl: /x\n---\n"}, "content/b.md"),
        (HUGO, {"content/c.md": "# C\n"}, "content/c.md"),
        (HUGO, {"content/d.md": "---\nslug: b\n---\n"}, "content/d.md"),
        (HUGO, {"content/d.md": "---\nslug: b\ndraft: true\n---\n"}, None),
        (HUGO, {"content/e.md": "# E\n", "content/b.md": None}, None),
        ({"a.md": "---\npermalink: /x/\n---\n", "b.md": "# B\n"}, {"b.md": "---\npermalink: /x\n---\n"}, "b.md"),
        ({"a.md": "# A\n"}, {"a/index.md": "# A\n"}, None),  # it depends on the generator, which is not known
    ],
)
async def test_two_pages_with_one_address_are_found(files, changes, path):
    expected = [("address_taken", path, None)] if path else []
    assert [each for each in await found(files, changes) if each[0] == "address_taken"] == expected


async def test_addresses_that_were_shared_before_are_not_held_against_a_job():
    files = {"a.md": "---\npermalink: /x/\n---\n", "b.md": "---\npermalink: /x/\nid: b\n---\n"}
    assert await found(files, {"b.md": "---\npermalink: /x/\nid: c\n---\n"}) == []


MKDOCS = {"mkdocs.yml": "nav:\n  - Home: index.md\n  - A: a.md\n", "docs/index.md": "# I\n", "docs/a.md": "# A\n"}
VITEPRESS = {
    "docs/.vitepress/config.ts": "export default { themeConfig: { sidebar: [{ text: 'A', link: '/guide/a' }] } }\n",
    "docs/guide/a.md": "# A\n",
}
SPHINX = {
    "docs/conf.py": "project = 'X'\n",
    "docs/index.rst": "X\n=\n\n.. toctree::\n   :maxdepth: 2\n\n   a\n   B <b>\n",
    "docs/a.rst": "A\n=\n",
    "docs/b.rst": "B\n=\n",
}
SUMMARY = {"SUMMARY.md": "# Summary\n\n- [A](guide/a.md)\n", "guide/a.md": "# A\n"}
BOOK = {"book.toml": "[book]\n", **{f"src/{path}": text for path, text in SUMMARY.items()}}
STARLIGHT = {
    "astro.config.mjs": "export default defineConfig({integrations: [starlight({sidebar: ['a', {slug: 'b'}]})]})\n",
    "src/content/docs/a.md": "# A\n",
    "src/content/docs/b.md": "# B\n",
}


@pytest.mark.parametrize(
    ("files", "new", "line"),
    [
        (PICTURES, "guide/new.mdx", 'Add "guide/new" to docs.json.'),
        (MKDOCS, "docs/new.md", "Add - New page: new.md to mkdocs.yml."),
        (DOCUSAURUS, "docs/guide/new.md", "Add 'guide/new', to sidebars.js."),
        (VITEPRESS, "docs/guide/new.md", 'Add { text: "New page", link: "/guide/new" }, to docs/.vitepress/config.ts.'),
        (SPHINX, "docs/new.rst", "Add new to the toctree of docs/index.rst."),
        (SUMMARY, "guide/new.md", "Add - [New page](guide/new.md) to SUMMARY.md."),
        (BOOK, "src/guide/new.md", "Add - [New page](guide/new.md) to src/SUMMARY.md."),
        (STARLIGHT, "src/content/docs/new.md", 'Add "new", to astro.config.mjs.'),
    ],
)
async def test_new_page_that_no_navigation_names_is_a_warning(files, new, line):
    text = "# New page\n"
    if new.endswith(".mdx"):
        text = "---\ntitle: New page\n---\n"
    (problem,) = await problems(files, {new: text})
    assert (problem.code, problem.severity, problem.path) == ("page_unlisted", "warning", new)
    assert problem.message.endswith(line)


@pytest.mark.parametrize(
    ("files", "changes"),
    [
        (MKDOCS, {"docs/new.md": "# N\n", "mkdocs.yml": MKDOCS["mkdocs.yml"] + "  - N: new.md\n"}),
        ({**MKDOCS, "mkdocs.yml": "nav:\n  - index.md\n  - a.md\n  - new.md\n"}, {"docs/new.md": "# N\n"}),
        ({**MKDOCS, "mkdocs.yml": "site_name: X\n"}, {"docs/new.md": "# N\n"}),
        ({**MKDOCS, "docs/blog/a.md": "# A\n", "docs/blog/b.md": "# B\n"}, {"docs/blog/c.md": "# C\n"}),
        (PICTURES, {"guide/new.mdx": "---\nhidden: true\n---\n"}),
        (SPHINX, {"docs/new.rst": "N\n=\n", "docs/index.rst": SPHINX["docs/index.rst"] + "   new\n"}),
        (VITEPRESS, {
            "docs/guide/new.md": "# N\n",
            "docs/.vitepress/config.ts": "export default { sidebar: sidebar('/guide/new', '/guide/a') }\n",
        }),
        (SUMMARY, {"guide/new.md": "# N\n", "SUMMARY.md": SUMMARY["SUMMARY.md"] + "- [N](./guide/new.md)\n"}),
        (BOOK, {"src/new.md": "# N\n", "src/SUMMARY.md": SUMMARY["SUMMARY.md"] + "- [N](new.md)\n"}),
        (SPHINX, {"docs/new.rst": ":orphan:\n\nN\n=\n"}),
        (HUGO, {"content/new.md": "# N\n"}),
    ],
)  # fmt: skip
async def test_named_or_unlisted_by_custom_page_is_no_problem(files, changes):
    assert await found(files, changes) == []


CODE = {
    "docs.json": '{"name": "X", "navigation": {"pages": ["a", "b"]}}\n',
    "a.mdx": 'import { Box } from "/snippets/box.jsx"\nimport X from "./x.jsx"\n\n<Box />\n\n<X />\n\n{new Date()}\n',
    "b.mdx": "# B\n",
    "c/d.mdx": "# D\n",
    ".github/README.md": "<iframe src='https://x.dev' />\n",
}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# B\n\nBetter words, {1} and `{code}`.\n", []),
        ('import { Box } from "/snippets/box.jsx"\n\n# B\n\n{new Date()}\n', []),  # the site runs it already
        ('import X from "./x.jsx"\n\n# B\n', []),
        ('import X from "../x.jsx"\n\n# B\n', [1]),
        ('import Y from "./x.jsx"\n\n# B\n', [1]),
        ("# B\n\n{fetch(1)}\n\n<iframe src='https://x.dev' />\n", [3, 5]),
        ("# B\n\n[x](javascript:x)\n", [3]),
    ],
)
async def test_new_code_is_an_error(text, lines):
    seen = await problems(CODE, {"b.mdx": text})
    assert [(problem.code, problem.severity, problem.line) for problem in seen] == [
        ("new_code", "error", line) for line in lines
    ]


async def test_module_is_the_same_from_another_folder():
    assert await found(CODE, {"c/d.mdx": 'import X from "../x.jsx"\n\n# D\n'}) == []
    assert await found(CODE, {"c/d.mdx": 'import X from "./x.jsx"\n\n# D\n'}) == [("new_code", "c/d.mdx", 1)]


async def test_code_that_moves_between_pages_is_not_new():
    moved = {"b.mdx": CODE["a.mdx"], "a.mdx": "# A\n"}
    assert await found(CODE, moved) == []


async def test_changed_heading_names_links_and_nearest_anchor():
    files = {"a.md": "# A\n\n## Install it\n\n## Other\n", "b.md": "[x](a.md#install-it)\n"}
    (problem,) = await problems(files, {"a.md": "# A\n\n## Install it now\n\n## Other\n"})
    assert (problem.code, problem.severity, problem.path, problem.line) == ("anchor_broken", "error", "b.md", 1)
    assert "a.md#install-it-now" in problem.message


async def test_errors_come_first():
    changes = {f"{n}.md": f"# {n}\n\n[x](gone{n}.md)\n" for n in range(3)}
    changes["a.md"] = "# A\n"
    seen = await problems({"a.md": "Line.\n" * 100}, changes)
    assert [problem.is_error for problem in seen] == [True, True, True, False]
    assert {problem.code for problem in seen} <= {rule.code for rule in RULES}


def test_manual_lists_every_check():
    text = (Path(service.__file__).parent / "manual" / "agent.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (error|warning) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(rule.code, rule.severity, rule.summary) for rule in RULES]


TWO_LANGUAGES = {
    "hugo.toml": "defaultContentLanguage = 'en'\n[languages.en]\nweight = 1\n[languages.fr]\nweight = 2\n",
    "content/_index.md": "---\ntitle: Home\n---\n",
    "content/_index.fr.md": "---\ntitle: Accueil\n---\n",
    "content/colours.fr.md": "---\ntitle: Couleurs\n---\n\n[haut](../)\n",
    "content/b/_index.md": "---\ntitle: B\n---\n",
    "content/b/c.md": "---\ntitle: C\n---\n\n[up](../) and [here](./)\n",
    "content/d.md": "---\ntitle: D\n---\n\n[up](../)\n",
}
IN_FOLDERS = {
    "mkdocs.yml": "site_name: X\n",
    "docs/index.md": "# X\n",
    "docs/b/index.md": "# B\n",
    "docs/b/c.md": "# C\n\n[up](./) and [index](index.md)\n",
    "docs/d/index.md": "# D\n",
    "docs/d/e.md": "# E\n\n[index](index.md)\n",
}


@pytest.mark.parametrize(
    ("files", "gone", "broken"),
    [
        (TWO_LANGUAGES, "content/_index.fr.md", ["content/colours.fr.md"]),
        (TWO_LANGUAGES, "content/b/_index.md", ["content/b/c.md"]),
        (IN_FOLDERS, "docs/b/index.md", ["docs/b/c.md"]),
    ],
)
async def test_links_that_do_not_name_the_page_of_their_folder_are_found(files, gone, broken):
    links = await found(files, {gone: None})
    assert sorted({path for code, path, _ in links if code == "link_broken"}) == broken
