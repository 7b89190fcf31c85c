"""What a job's model is told of the repository: the site's generator, house rules, navigation and components."""

import pytest

from service.agent.guidance.house_rules import MAX_CHARACTERS, MAX_IN_ALL, MAX_NESTED_CHARACTERS
from service.agent.loop.conversation import facts
from service.agent.workspace import Workspace
from service.ports.docs_source import Source
from tests.fakes.docs_source import FakeDocsSource


async def facts_of(files, *, docs_folder="docs", changes=None, window_tokens=None):
    docs = FakeDocsSource(files)
    source = Source("p1", "", "main", docs_folder, "local")
    workspace = await Workspace.open(docs, source, docs.branches["main"], changes or {})
    return await facts(workspace, window_tokens)


PAGE = "# Page\n"


async def test_own_instructions_come_before_other_guidance():
    told = await facts_of(
        {
            ".docsmith/agent.md": "Use metric units.",
            "AGENTS.md": "Root rules.",
            "docs/CLAUDE.md": "Docs rules.",
            "docs/api/AGENTS.md": "Rules of the reference.",
            "docs/a.md": PAGE,
        }
    )
    order = ["Use metric units.", "Root rules.", "Docs rules.", "Rules of the reference."]
    assert [told.index(text) for text in order] == sorted(told.index(text) for text in order)
    assert "otherwise, these count" in told
    assert "Guidance for the files below its folder, from docs/api/AGENTS.md" in told


async def test_own_instructions_nearest_to_the_docs_count():
    told = await facts_of({".docsmith/agent.md": "Root.", "docs/.docsmith/agent.md": "Docs.", "docs/a.md": PAGE})
    assert "Docs." in told
    assert "Root." not in told


async def test_only_the_first_file_of_a_folder_is_quoted():
    told = await facts_of({"AGENTS.md": "One text.", "CLAUDE.md": "The same text.", ".cursorrules": "Again."})
    assert "One text." in told
    assert "The same text." not in told
    assert "Again." not in told
    assert "Copilot." in await facts_of({".github/copilot-instructions.md": "Copilot."})


@pytest.mark.parametrize(
    "named",
    ["Follow the [style guide](../STYLE.md).", "Style: `STYLE.md`", "The style guide is STYLE.md", "style: /STYLE.md"],
)
async def test_style_guide_that_guidance_names_is_quoted(named):
    files = {".docsmith/agent.md": named, "STYLE.md": "Write short sentences.", "OTHER.md": "Not this."}
    told = await facts_of(files)
    assert "The style guide that the repository's guidance names, STYLE.md" in told
    assert "Write short sentences." in told
    assert "Not this." not in told


async def test_style_guide_outside_of_the_repository_is_not_read():
    told = await facts_of({"AGENTS.md": "Style guide: ../../etc/passwd.md or nowhere.md", "docs/a.md": PAGE})
    assert "The style guide" not in told


async def test_guidance_has_limits():
    files = {f"docs/{n:02}/AGENTS.md": f"Rules {n:02}. " + "x" * 5_000 for n in range(30)}
    told = await facts_of({"AGENTS.md": "y" * 50_000, ".docsmith/agent.md": "z" * 50_000, **files})
    assert told.count("y" * 100) == told.count("z" * 100) == MAX_CHARACTERS // 100
    assert len(told) < MAX_IN_ALL + 10_000
    assert 0 < told.count("x" * 1_000) <= (MAX_IN_ALL - 2 * MAX_CHARACTERS) // 1_000
    assert f"x{'x' * MAX_NESTED_CHARACTERS}" not in told
    assert "Read the one that applies before you change such a file" in told
    assert "docs/20/AGENTS.md" in told
    small = await facts_of({"AGENTS.md": "y" * 50_000, **files}, window_tokens=8_000)
    assert len(small) < 9_000


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"docs/docs.json": "{}"}, "made with Mintlify"),
        ({"docusaurus.config.js": "", "docs/a.md": PAGE}, "made with Docusaurus"),
        ({"website/docusaurus.config.ts": "export default {presets: [['classic', {docs: {path: '../docs'}}]]}"},
         "made with Docusaurus"),
        ({"mkdocs.yml": "markdown_extensions: [admonition]\n"}, "configuration names: admonition."),
        ({"hugo.toml": "", "content/_index.md": PAGE}, "made with Hugo"),
        ({"docs/conf.py": "extensions = ['myst_parser']", "docs/index.rst": "A\n=\n"}, "names: myst_parser."),
        ({"docs/.vitepress/config.mts": "export default {}"}, "made with VitePress"),
        ({"astro.config.mjs": "", "docs/a.md": PAGE}, "Astro Starlight"),
        ({"docs/_config.yml": "title: x\n"}, "made with Jekyll"),
        ({"other/_config.yml": "title: x\n"}, "No site generator was found"),
        ({}, "No site generator was found"),
    ],
)  # fmt: skip
async def test_rules_of_the_generator_are_named(files, says):
    folder = "content" if "content/_index.md" in files else "docs"
    assert says in await facts_of({f"{folder}/page.md": PAGE, **files}, docs_folder=folder)


async def test_shape_of_the_navigation_is_shown():
    told = await facts_of({"mkdocs.yml": "site_name: X\nnav:\n  - Home: index.md\n", "docs/index.md": PAGE})
    assert "- mkdocs.yml, 4 lines, from line 2:\n<data " in told
    assert "nav:\n  - Home: index.md" in told


async def test_components_that_pages_use_are_named():
    page = (
        '<Card title=\'A\' href="/a">x</Card>\n<Card />\n\n:::note Read this\n\n!!! tip "T"\n\n> [!WARNING]\n> y\n\n'
        '{{< figure src="a.png" >}}\n\n```jsx\n<NotUsed />\n```\n\n`<NorThis />` <div>z</div>\n\n```{tab} One\n```\n'
    )
    told = await facts_of({"docs/a.mdx": page, "docs/b.mdx": "<Card>z</Card>\n", "src/c.mdx": "<Elsewhere />\n"})
    assert "<Card> (2 pages; title, href): <Card title='A' href=\"/a\">" in told
    for name in (
        "::: note (1 page)",
        "!!! tip",
        "> WARNING",
        "``` tab (1 page): ```{tab} One",
        '{{< figure (1 page; src): {{< figure src="a.png" >}}',
    ):
        assert name in told
    for name in ("NotUsed", "NorThis", "Elsewhere", "<div>"):
        assert name not in told


async def test_macros_are_components_and_a_small_window_sees_fewer():
    page = 'See {{jsxref("Array")}}.\n' + "".join(f"<Part{n} />\n" for n in range(15))
    files = {"docs/a.mdx": page, "docs/docs.json": '{"navigation": ["a"]}', "docs/sidebars.json": '{"x": ["a"]}'}
    whole = await facts_of(files)
    assert '{{jsxref}} (1 page): {{jsxref("Array")}}' in whole
    small = await facts_of(files, window_tokens=8_000)
    assert 0 < small.count("<Part") < whole.count("<Part")
    assert small.count(", from line ") < whole.count(", from line ")


async def test_components_are_found_in_time_among_odd_text():
    odd = "<A " * 20_000 + "{{< " * 20_000 + "```\n" * 5_000 + ":::" * 20_000
    assert "About the repository" in await facts_of({"docs/a.mdx": odd, "docs/b.mdx": "<" * 60_000})


async def test_facts_stay_the_same_while_the_job_changes_files():
    files = {"AGENTS.md": "Be brief.", "docs/a.mdx": "<Note>x</Note>\n", "mkdocs.yml": "nav: []\n"}
    changes = {"docs/b.mdx": "<Tip>y</Tip>\n", "docs/a.mdx": None, "mkdocs.yml": "nav: [b.mdx]\n"}
    assert await facts_of(files) == await facts_of(files, changes=changes)
