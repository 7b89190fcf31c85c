"""Each gate with a change that breaks something and one that does not; old faults are not held against a job."""

import pytest

from service.agent.checks import gates
from service.agent.checks.gates import Changed
from service.agent.checks.links.links import Links
from service.agent.workspace import Workspace
from service.ports.docs_source import Source
from tests.fakes.docs_source import FakeDocsSource

SOURCE = Source("p1", "", "main", "", "local")
GENERATOR = {".vitepress/config.js": "export default {}\n"}
"""Of a generator whose rules of links are known: without one, an address that no page has may be another program's."""
SITE = {
    "index.md": "# Home\n\n[Start](guides/start.md), [retry](/guides/start#retry), [lost](gone.md)\n",
    "guides/start.md": "---\ntitle: Start\n---\n\n# Start\n\n![A](images/a.png)\n\n## Retry\n\nSee [end](end.md).\n",
    "guides/end.md": "# End\n\nBack to [start](./start.md) and [its retry](start.md#retry).\n",
    "guides/images/a.png": b"\x89PNG\0",
    "other/deep/page.md": "# Page\n\n[up](../../guides/start.md#retry)\n",
}


async def problems(files, changes, source=SOURCE):
    docs = FakeDocsSource(files)
    workspace = await Workspace.open(docs, source, (await docs.fetch(source)).base_commit, changes)
    return [(p.gate, p.path, p.line) for p in await gates.check(workspace, Links(workspace))]


START = SITE["guides/start.md"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"guides/end.md": "# End\n\nBetter words for [start](./start.md).\n"}, []),
        ({"index.md": SITE["index.md"] + "\n[end](/guides/end/)\n"}, []),
        ({"index.md": SITE["index.md"] + "\n[no](guides/no.md)\n"}, [("links", "index.md", 5)]),
        ({"index.md": SITE["index.md"] + "\n`[no](/guides/no)` and [away](https://example.com/x)\n"}, []),
        ({"index.md": SITE["index.md"] + "\n[anchor](#missing)\n"}, [("links", "index.md", 5)]),
        (
            {"guides/start.md": START.replace("## Retry", "## Try again")},
            [("links", "guides/end.md", 3), ("links", "index.md", 3), ("links", "other/deep/page.md", 3)],
        ),
        ({"guides/start.md": START + "\n## More\n"}, []),
        (
            {"guides/start.md": None},
            [
                ("links", "guides/end.md", 3), ("links", "guides/end.md", 3), ("links", "index.md", 3),
                ("links", "index.md", 3), ("links", "other/deep/page.md", 3),
            ],
        ),
        ({"other/deep/page.md": None, "other/page.md": "# Page\n\n[up](../guides/start.md#retry)\n"}, []),
        (
            {"other/deep/page.md": None, "other/deep/er/page.md": SITE["other/deep/page.md"]},
            [("links", "other/deep/er/page.md", 3)],
        ),
        (
            {"guides/start.md": None, "start.md": START.replace("end.md", "guides/end.md"),
             "guides/end.md": "# End\n", "index.md": "# Home\n", "other/deep/page.md": "# Page\n"},
            [("links", "start.md", 7)],
        ),
    ],
)  # fmt: skip
async def test_links(changes, found):
    assert sorted(await problems(SITE, changes)) == sorted(found)


async def test_a_moved_page_is_suggested_to_those_that_link_to_it():
    docs = FakeDocsSource(SITE)
    changes = {
        "guides/start.md": None,
        "begin.md": START.replace("end.md", "guides/end.md").replace("images", "guides/images"),
    }
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, changes)
    broken = await Links(workspace).broken_by_changes()
    assert [(link.path, link.found, link.suggestions[0], link.clear) for link in broken] == [
        ("guides/end.md", "(./start.md)", "(../begin.md)", True),
        ("guides/end.md", "(start.md#retry)", "(../begin.md#retry)", True),
        ("index.md", "(guides/start.md)", "(begin.md)", True),
        ("index.md", "(/guides/start#retry)", "(/begin#retry)", True),
        ("other/deep/page.md", "(../../guides/start.md#retry)", "(../../begin.md#retry)", True),
    ]


async def test_broken_links_come_with_what_was_meant():
    files = {
        **GENERATOR,
        "index.md": "[a](/guides/instal) [b](guides/install.md#requirement) [c](/old/install) [d](/x/nothing)\n",
        "guides/install.md": "# Install\n\n## Requirements\n",
        "guides/use.md": "# Use\n",
    }
    docs = FakeDocsSource(files)
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, {})
    broken = {link.found: link for link in (await Links(workspace).report()).broken}
    assert broken["(guides/install.md#requirement)"].suggestions[0] == "(guides/install.md#requirements)"
    assert broken["(guides/install.md#requirement)"].clear
    assert broken["(/guides/instal)"].suggestions[0] == "(/guides/install)"
    assert broken["(/guides/instal)"].clear
    assert broken["(/old/install)"].suggestions[0] == "(/guides/install)"
    assert not broken["(/old/install)"].clear  # many folders have such a page
    assert broken["(/x/nothing)"].suggestions == ()


CODE = """# Use

Write a link as `[guide](/instal)`:

    [guide](/instal)

or over two ``lines
[guide](/instal)``.

- In a list:

      [guide](/instal)

Or `[guide](/instal)` in a line with [guide](/instal).

<!-- [guide](/instal) -->
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CODE, [(14, " [guide](/instal)", (" [guide](/install)",))]),
        ("`[guide](/instal)`\n\n[guide](/instal)\n", [(3, "(/instal)", ("(/install)",))]),
        ("[guide](</instal> 'title')\n", [(1, "</instal>", ("</install>",))]),
        ("> [guide][a]\n>\n> [a]: /instal\n", [(3, "> [a]: /instal", ("> [a]: /install",))]),
        ("[guide](/a_(b))\n", [(1, "(/a_(b))", ())]),
        ("---\ntitle: '[a](/instal)'\n---\n", []),
        ("\\[guide](/instal)\n", []),
        ("<div>\n[guide](/instal)\n</div>\n", []),
    ],
)
async def test_broken_links_are_distinguished_from_code(text, found):
    docs = FakeDocsSource({**GENERATOR, "page.md": text, "install.md": "# Install\n"})
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, {})
    broken = (await Links(workspace).report()).broken
    assert [(link.line, link.found, link.suggestions) for link in broken] == found


NAVIGATION = {
    "docs.json": '{\n  "name": "X",\n  "navigation": {"groups": [{"group": "A", "pages": ["a", "b", "never"]}]}\n}\n',
    "a.mdx": "# A\n",
    "b.mdx": "# B\n",
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"a.mdx": "# A!\n"}, []),
        ({"b.mdx": None}, [("navigation", "docs.json", 3)]),
        ({"docs.json": NAVIGATION["docs.json"].replace('"b"', '"c"')},
         [("navigation", "docs.json", 3), ("navigation", "b.mdx", None)]),
        ({"docs.json": NAVIGATION["docs.json"].replace('"b"', '"c"'), "c.mdx": "# C\n"},
         [("navigation", "b.mdx", None)]),
        ({"docs.json": '{"navigation": [}\n'}, [("navigation", "docs.json", 1)]),
    ],
)  # fmt: skip
async def test_navigation_of_docs_json(changes, found):
    assert await problems(NAVIGATION, changes) == found


MKDOCS = {
    "mkdocs.yml": "nav:\n  - Home: index.md\n  - Guide:\n    - a.md\n",
    "docs/index.md": "# I\n",
    "docs/a.md": "# A\n",
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"docs/a.md": "# B\n"}, []),
        ({"docs/a.md": None}, [("navigation", "mkdocs.yml", 4)]),
        ({"mkdocs.yml": "nav: [\n"}, [("navigation", "mkdocs.yml", 2)]),
        ({"docs/a.md": None, "mkdocs.yml": "nav:\n  - Home: index.md\n"}, []),
    ],
)
async def test_navigation_of_mkdocs(changes, found):
    assert await problems(MKDOCS, changes) == found


async def test_sidebar_that_is_a_program_is_reported():
    files = {"site/sidebars.js": "module.exports = {\n  docs: ['guides/a'],\n}\n", "site/docs/guides/a.md": "# A\n"}
    assert await problems(files, {"site/docs/guides/a.md": None}) == [("navigation", "site/sidebars.js", 2)]


def check(before, after, path="a.mdx"):
    return [(problem.gate, problem.line) for problem in gates.check_files([Changed(path, before, after)])]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("---\ntitle: A\n---\n", "---\ntitle: B\n---\n", []),
        ("---\ntitle: A\n---\n", "---\ntitle: a: b\n---\n", [("front-matter", 2)]),
        ("---\ntitle: A\n---\n", "---\ntitle: A\n", [("front-matter", 1)]),
        ("---\ntitle: A\n---\n", "---\njust words\n---\n", [("front-matter", 1)]),
        ("---\ntitle: A\n---\n", "# A\n", [("front-matter", 1)]),
        ("---\ntitle: a: b\n---\n", "---\ntitle: a: c\n---\n", []),
        (None, "---\n", [("front-matter", 1)]),
        ("# A\n", "---\n\n# A rule, not front matter\n", [("front-matter", 1)]),
    ],
)
def test_front_matter(before, after, found):
    assert check(before, after) == found


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("```\na\n```\n", "```py\na\n```\n", []),
        ("```\na\n```\n", "```py\na\n``\n", [("markup", 1)]),
        ("```\na\n", "```\na\nb\n", []),
        ("", "````md\n```\n````\n", []),
        ("", "- a\n\n  ```sh\n  x\n  ```\n", []),
        ("<Note>\na\n</Note>\n", "<Note>\nb\n</Note>\n<Card title='a > b' />\n", []),
        ("<Note>\na\n</Note>\n", "<Note>\nb\n", [("markup", 1)]),
        ("<Note>\na\n", "<Note>\nb\n", []),
        ("", "`<Note>` is a tag\n", []),
        ('import X from "x"\n\n<X />\n', "<X />\n", [("markup", 1)]),
        ('import X from "x"\n\n<X />\n', "No more.\n", []),
        ('import { X, Y as Z } from "x"\n\n<Z />\n', 'import { Z } from "y"\n\n<Z />\n', []),
        ("{{< note >}}\na\n{{< /note >}}\n", "{{< note >}}\na\n", []),
        ("{{< note >}}\na\n{{< /note >}}\n", "{{< note >}}\na\n{{< /note >}}\n{{< note >}}\n", [("markup", 4)]),
    ],
)
def test_markup(before, after, found):
    assert check(before, after) == found


SECRET = "AKIA" + "Q3RT7YUP2LKJ8HGF"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"key: {SECRET}\n", [("secrets", 1)]),
        ("AKIAIOSFODNN7EXAMPLE\n", []),
        ("\nxoxb-" + "2384092384-" + "aB3dE5fG7hJ9kL1mN2pQ\n", [("secrets", 2)]),
        ("glpat-" + "aB3dE5fG7hJ9kL1mN2pQ\n", [("secrets", 1)]),
        ("sk_live_" + "aB3dE5fG7hJ9kL1mN2pQ\n", [("secrets", 1)]),
        ("docsmith_dsc_" + "aB3dE5fG7hJ9kL1mN2pQrS4tU6vW8xY0zA1b\n", [("secrets", 1)]),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7rT9zL2kqW\n", [("secrets", 1)]),
        ("ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and YOUR_TOKEN\n", []),
    ],
)
def test_secrets(text, found):
    assert check("# A\n", text) == found
    assert check(text, text + "More.\n") == []


def test_the_size_of_the_change():
    long = "".join(f"Line {number}.\n" for number in range(200))
    assert check(long, long.replace("Line 5", "line 5")) == []
    assert check(long, "Line 1.\n") == [("size", None)]
    many = [Changed(f"{number}.md", None, "x\n") for number in range(gates.MAX_CHANGED_FILES + 1)]
    assert [problem.gate for problem in gates.check_files(many)] == ["size"]


async def test_a_large_site_is_not_parsed_for_a_small_change():
    """10,000 pages, one renamed: in seconds, with the two links to it found."""
    files = {
        f"section{n % 100}/page{n}.md": f"# Page {n}\n\nSee [next](page{(n + 100) % 10_000}.md#page).\n"
        for n in range(10_000)
    }
    files["index.md"] = "[one](/section7/page7)\n"
    changes = {"section7/page7.md": None, "section7/renamed.md": files["section7/page7.md"]}
    assert await problems(files, changes) == [("links", "index.md", 1), ("links", "section7/page9907.md", 3)]
