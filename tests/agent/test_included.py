"""Files outside the documentation folder that pages include: a job may change their text, and nothing else there."""

import pytest
from msgspec.structs import replace

from tests.agent.journal import SOURCE, Journal, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

DOCS = replace(SOURCE, docs_folder="site/docs")
FINISH = call("finish", title="Note it", summary="It was missing.")
# fmt: off
INCLUDES = {
    "sphinx": ("changes.rst", "Changes\n=======\n\n.. include:: ../../CHANGES.rst\n", "CHANGES.rst"),
    "sphinx nearby": ("changes.rst", ".. include:: ../a/CHANGES.rst\n   :encoding: x\n", "site/a/CHANGES.rst"),
    "myst": ("changes.md", "# Changes\n\n```{include} ../../CHANGELOG.md\n:start-line: 1\n```\n", "CHANGELOG.md"),
    "myst with colons": ("changes.md", ":::{include} ../../CHANGELOG.md\n:::\n", "CHANGELOG.md"),
    "mkdocs snippets": ("changes.md", '--8<-- "CHANGELOG.md"\n', "CHANGELOG.md"),
    "mkdocs snippets in a block": ("changes.md", "--8<--\nCHANGELOG.md\n--8<--\n", "CHANGELOG.md"),
    "mkdocs part": ("changes.md", '--8<-- "CHANGELOG.md:3:9"\n', "CHANGELOG.md"),
    "include-markdown": ("changes.md", '{% include-markdown "../../CHANGELOG.md" start="<!--s-->"%}\n', "CHANGELOG.md"),
    "braces": ("changes.md", "{! ../../CHANGELOG.md !}\n", "CHANGELOG.md"),
    "vitepress": ("changes.md", "<!--@include: ../../CHANGELOG.md-->\n", "CHANGELOG.md"),
    "vitepress part": ("changes.md", "<!--@include: ../../CHANGELOG.md{3,9}-->\n", "CHANGELOG.md"),
    "docusaurus": ("changes.mdx", "import Changes from '@site/../CHANGELOG.md';\n\n<Changes />\n", "CHANGELOG.md"),
    "mdbook": ("changes.md", "{{#include ../../CHANGELOG.md}}\n", "CHANGELOG.md"),
    "hugo": ("changes.md", '{{% readfile "/CHANGELOG.md" %}}\n', "CHANGELOG.md"),
    "asciidoc": ("changes.md", "include::../../CHANGELOG.adoc[]\n", "CHANGELOG.adoc"),
}
# fmt: on


async def job(page, text, path, *replies, **files):
    docs, host = FakeDocsSource({f"site/docs/{page}": text, path: "# Changes\n\nOld.\n", **files}), FakeCodeHost()
    model = FakeModel([*(calls(one) for one in replies), calls(FINISH), calls(FINISH)])
    await run_job(Journal("Note it"), docs, model, host=host, source=DOCS)
    return docs, host, [message.text for request in model.requests for message in request.messages]


@pytest.mark.parametrize(("page", "text", "path"), INCLUDES.values(), ids=INCLUDES)
async def test_file_that_a_page_includes_may_be_changed(page, text, path):
    edit = call("replace", path=path, old="Old.", new="New.")
    docs, host, told = await job(page, text, path, edit)
    assert docs.files("docs/change")[path] == "# Changes\n\nNew.\n"
    assert f"`{path}` (changed)" in host.pull_requests[0].body
    assert any("Pages include these files" in text and path in text for text in told)


async def test_gates_see_an_included_file():
    edit = call("replace", path="CHANGELOG.md", old="Old.", new="```sh\nNew.")
    _, host, told = await job(*INCLUDES["myst"], edit)
    assert any("code" in text and "CHANGELOG.md" in text and "found problems" in text for text in told)
    assert host.pull_requests[0].draft


REFUSED = {
    "a file that no page includes": (call("write", path="README.md", text="x\n"), "only the documentation in site/"),
    "a program that a page shows": (call("replace", path="run.py", old="1", new="2"), "only the documentation in"),
    "guidance for agents": (call("write", path="AGENTS.md", text="x\n"), "only the documentation in site/docs/"),
    "its deletion": (call("delete", path="CHANGELOG.md"), "pages include it"),
    "its new place": (call("move", path="CHANGELOG.md", to="site/docs/x.md"), "pages include it"),
}  # fmt: skip


@pytest.mark.parametrize(("refused", "why"), REFUSED.values(), ids=REFUSED)
async def test_nothing_else_outside_the_documentation_may_be_written(refused, why):
    page, text, path = INCLUDES["myst"]
    text += "\n```{literalinclude} ../../run.py\n```\n```{include} ../../AGENTS.md\n```\n"
    files = {"run.py": "1\n", "AGENTS.md": "Note each change in CHANGELOG.md and README.md.\n", "README.md": "R\n"}
    _, host, told = await job(page, text, path, refused, **files)
    assert host.pull_requests == []
    assert any(why in one for one in told)
    assert any("Never written, whatever guidance asks for: all other files" in one for one in told)


async def test_a_job_cannot_include_a_file_to_write_it():
    include = call("write", path="site/docs/new.md", text="# R\n\n```{include} ../../README.md\n```\n")
    edit = call("write", path="README.md", text="x\n")
    docs, _, _ = await job(*INCLUDES["myst"], include, edit, **{"README.md": "R\n"})
    assert docs.files("docs/change")["README.md"] == "R\n"


async def test_included_file_that_both_sides_changed_is_merged():
    page, text, path = INCLUDES["myst"]
    lines = "".join(f"Line {number}.\n" for number in range(20))
    docs, host = FakeDocsSource({f"site/docs/{page}": text, path: lines}), FakeCodeHost()
    journal = Journal("Note it")
    edit = call("replace", path=path, old="Line 3.", new="Line three.")
    await run_job(journal, docs, FakeModel([calls(edit), calls(FINISH)]), host=host, source=DOCS)
    docs.change("main", {path: lines.replace("Line 17.", "Line seventeen.")})
    journal.say("Merge main")
    await run_job(journal, docs, FakeModel([calls(FINISH)]), host=host, source=DOCS)
    merged = docs.files("docs/change")[path]
    assert "Line three." in merged
    assert "Line seventeen." in merged
