"""References by roles, imports, includes and xref: sound, broken, or not known."""

import pytest

from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.workspace import Workspace
from tests.agent.test_site_gates import SOURCE
from tests.fakes.docs_source import FakeDocsSource


async def found(files, changes):
    docs = FakeDocsSource(files)
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, changes)
    return [(each.code, each.path, each.line) for each in await gates.check(workspace, Links(workspace))]


REST = {
    "docs/conf.py": "project = 'X'\nextensions = []\n",
    "docs/index.rst": ".. _start:\n\nX\n=\n\n.. toctree::\n\n   a\n   sub/b\n",
    "docs/a.rst": "A\n=\n\n.. figure:: x.png\n   :name: fig-a\n\n   A figure\n\n.. include:: part.txt\n",
    "docs/sub/b.rst": "B\n=\n\n.. glossary::\n   :sorted:\n\n   Berth\n   bunk : place\n     A bed.\n\n"
    "   mast\n     A pole.\n\nEnd\n",
    "docs/part.txt": ".. _in-part:\n\nText\n",
    "docs/x.png": "x",
}


@pytest.mark.parametrize(
    ("added", "code"),
    [
        (":doc:`sub/b`", ""),
        (":doc:`The b <sub/b>`", ""),
        (":doc:`/sub/b`", ""),
        (":doc:`sub/gone`", "link_broken"),
        (":doc:`That <gone>`", "link_broken"),
        (":doc:`python:library/os`", "reference_unknown"),
        (":ref:`start`", ""),
        (":ref:`Begin <Start>`", ""),
        (":numref:`fig-a`", ""),
        (":ref:`in-part`", ""),
        (":ref:`genindex`", ""),
        (":any:`sub/b` and :any:`The b <start>`", ""),
        (":any:`mast`", ""),
        (":any:`gone.thing`", "reference_unknown"),
        (":term:`berth`, :term:`two <bunk>` and :term:`!mast`", ""),
        (":term:`End`", "link_broken"),
        (":term:`gone`", "link_broken"),
        ("Write ``:term:`gone```.", ""),
        (":download:`x.png` and :download:`the picture </x.png>`", ""),
        (":download:`x <https://example.com/x.png>`", ""),
        (":download:`gone.png`", "reference_unknown"),
        (":download:`gone.rst`", "link_broken"),
        (":ref:`gone`", "link_broken"),
        (":ref:`That one <gone>`", "link_broken"),
        ("Write ``:ref:`gone```.", ""),
        (".. code-block:: rst\n\n   :ref:`gone`\n", ""),
        ("So::\n\n   :doc:`gone`\n\nand on", ""),
        ("So::\n\n   x\n\nand :doc:`gone`", "link_broken"),
        (".. note::\n\n   :ref:`gone`\n", "link_broken"),
        (".. include:: part.txt", ""),
        (".. include:: <isonum.txt>", ""),
        (".. include:: gone.rst", "link_broken"),
        (".. literalinclude:: ../src/gone.py", "reference_unknown"),
    ],
)
async def test_roles_and_includes_of_sphinx(added, code):
    codes = {each for each, *_ in await found(REST, {"docs/a.rst": f"{REST['docs/a.rst']}\n{added}\n"})}
    assert codes == ({code} if code else set())


@pytest.mark.parametrize(
    ("extensions", "code"),
    [
        ("'sphinx.ext.extlinks'", "link_broken"),
        ("'sphinx.ext.intersphinx'", "reference_unknown"),
        ("'sphinx.ext.autosectionlabel'", "reference_unknown"),
        ("'sphinx.ext.autodoc'", "reference_unknown"),
    ],
)
async def test_label_that_extensions_may_make_is_not_known(extensions, code):
    files = {**REST, "docs/conf.py": f"project = 'X'\nextensions = [{extensions}]\n"}
    changes = {"docs/a.rst": f"{REST['docs/a.rst']}\n:ref:`gone`\n"}
    assert await found(files, changes) == [(code, "docs/a.rst", 11)]


MYST = {
    "docs/conf.py": "project = 'X'\nextensions = ['myst_parser']\n",
    "docs/index.md": "(start)=\n# X\n\n```{toctree}\na\n```\n",
    "docs/a.md": "# A\n",
}


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ("{doc}`index` and {ref}`start`", ""),
        ("{doc}`gone`", "link_broken"),
        ("{ref}`gone`", "link_broken"),
        ("```{note}\n{ref}`gone`\n```", "link_broken"),
        ("````md\n```{note}\n{ref}`gone`\n```\n````", ""),
        ("``{ref}`gone` ``", ""),
        ("```{include} gone.md\n```", "link_broken"),
        ("```{include} ../README.md\n```", ""),
    ],
)
async def test_roles_and_includes_of_myst(added, code):
    files = {**MYST, "README.md": "# Readme\n"}
    assert {each for each, *_ in await found(files, {"docs/a.md": f"# A\n\n{added}\n"})} == ({code} if code else set())


DOCUSAURUS = {
    "docusaurus.config.js": "module.exports = {presets: [['classic', {docs: {}}]]}\n",
    "sidebars.js": "module.exports = {docs: ['a', 'b']}\n",
    "docs/a.mdx": "import Old from './_old.mdx'\n\n# A\n\n<Old />\n",
    "docs/b.mdx": "# B\n",
    "docs/_old.mdx": "Old\n",
    "src/components/Chart.tsx": "export default 1\n",
}


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("./_old.mdx", ""),
        ("@site/docs/_old.mdx", ""),
        ("@site/src/components/Chart", ""),
        ("./_gone.mdx", "link_broken"),
        ("@site/docs/_gone.mdx", "link_broken"),
        ("@site/src/components/Gone", ""),
        ("../../../outside.mdx", "reference_unknown"),
    ],
)
async def test_imports(target, code):
    text = f"import New from '{target}'\n\n# B\n\n<New />\n"
    codes = {each for each, *_ in await found(DOCUSAURUS, {"docs/b.mdx": text})} - {"new_code"}
    assert codes == ({code} if code else set())


ANTORA = {
    "antora.yml": "name: x\nversion: '1'\nnav:\n- modules/ROOT/nav.adoc\n",
    "modules/ROOT/nav.adoc": "* xref:index.adoc[Home]\n",
    "modules/ROOT/pages/index.adoc": "= Home\n",
    "modules/ROOT/pages/sub/b.adoc": "= B\n",
    "modules/api/pages/c.adoc": "= C\n\nxref:ROOT:sub/b.adoc[B]\n",
}


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ("xref:sub/b.adoc#part[B]", ""),
        ("xref:api:c.adoc[C]", ""),
        ("xref:gone.adoc[Gone]", "link_broken"),
        ("xref:api:gone.adoc[Gone]", "link_broken"),
        ("xref:2@other:api:c.adoc[C]", "reference_unknown"),
        ("----\nxref:gone.adoc[Gone]\n----", ""),
    ],
)
async def test_xref_of_antora(added, code):
    changes = {"modules/ROOT/pages/index.adoc": f"= Home\n\n{added}\n"}
    assert {each for each, *_ in await found(ANTORA, changes)} == ({code} if code else set())


async def test_glossary_that_went_leaves_its_terms_broken():
    files = {**REST, "docs/a.rst": "A\n=\n\nA :term:`berth` and :any:`sub/b`.\n"}
    assert ("link_broken", "docs/a.rst", 4) in await found(files, {"docs/sub/b.rst": None})


async def test_terms_of_myst():
    glossary = "# A\n\n```{glossary}\nBerth\n  A bed.\n```\n\nEnd {term}`berth`\n"
    assert await found(MYST, {"docs/a.md": glossary}) == []
    assert await found(MYST, {"docs/a.md": glossary.replace("`berth`", "`end`")}) == [("link_broken", "docs/a.md", 8)]
    defined = "{.glossary}\nBerth\n: A bed.\n\n{term}`berth`\n"
    assert {each for each, *_ in await found(MYST, {"docs/a.md": defined})} == {"reference_unknown"}


async def test_page_that_went_leaves_its_xrefs_broken():
    assert ("link_broken", "modules/api/pages/c.adoc", 3) in await found(
        ANTORA, {"modules/ROOT/pages/sub/b.adoc": None}
    )


async def test_what_was_not_known_before_is_not_held_against_a_job():
    files = {**REST, "docs/a.rst": f"{REST['docs/a.rst']}\n:ref:`gone` :doc:`gone`\n"}
    assert await found(files, {"docs/a.rst": f"{files['docs/a.rst']}\nMore.\n"}) == []


@pytest.mark.parametrize("target", ["/a", "a", "a.md"])
async def test_relref_of_hugo(target):
    files = {"hugo.toml": "", "content/a.md": "# A\n", "content/b.md": "# B\n"}
    text = '# B\n\n[A]({{< relref "TARGET" >}})\n'
    assert await found(files, {"content/b.md": text.replace("TARGET", target)}) == []
    broken = await found(files, {"content/b.md": text.replace("TARGET", target.replace("a", "gone"))})
    assert broken == [("link_broken", "content/b.md", 3)]


async def test_heading_of_a_shown_file_that_went_leaves_links_broken():
    files = {
        "docusaurus.config.js": DOCUSAURUS["docusaurus.config.js"],
        "docs/a.mdx": "import P from './_p.mdx'\n\n# A\n\n<P />\n",
        "docs/_p.mdx": "import Q from './_q.mdx'\n\n<Q />\n",
        "docs/_q.mdx": "## Sail\n\nText.\n\n## Mast\n\nText.\n",
        "docs/b.mdx": "# B\n\n[a](./a.mdx#sail) [b](./a.mdx#mast)\n",
    }
    went = {"docs/_q.mdx": "## Mast\n\nText.\n"}
    assert await found(files, went) == [("anchor_broken", "docs/b.mdx", 3)]
    both = {**went, "docs/b.mdx": files["docs/b.mdx"] + "\nMore.\n"}
    assert await found(files, both) == [("anchor_broken", "docs/b.mdx", 3)]
