"""The words of a pull request, within the repository's own template."""

import pytest

from service.agent.pull_request import MAX_TEMPLATE
from tests.agent.journal import Journal, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

EDIT = call("write", path="a.md", text="# New\n")
BROKEN = call("write", path="a.md", text="See [it](nowhere.md).\n")
FINISH = call("finish", title="Add a page", summary="It was missing.")


async def body(files, *work):
    host = FakeCodeHost()
    model = FakeModel([calls(*(work or (EDIT,)), FINISH), calls(FINISH)])
    await run_job(Journal("x"), FakeDocsSource({"index.md": "# Home\n", **files}), model, host=host)
    return host.asked[0].body


async def test_without_a_template_it_is_the_summary_and_the_files():
    told = await body({})
    assert told.startswith("It was missing.\n\nFiles:\n\n- `a.md` (added)\n\n---\n\nMade by Docsmith with `fake/model`")


@pytest.mark.parametrize(
    "path",
    [
        ".github/pull_request_template.md", ".github/PULL_REQUEST_TEMPLATE.md", "Pull_Request_Template.txt",
        "docs/pull_request_template.md", ".gitea/pull_request_template.md",
        ".gitlab/merge_request_templates/Default.md",
    ],
)  # fmt: skip
async def test_templates_are_found_where_the_code_hosts_look_for_them(path):
    assert (await body({path: "## Why\r\n\r\n<!-- say -->\r\n"})).startswith("## Why\n\nIt was missing.")


async def test_each_template_section_is_filled_and_the_rest_stays():
    template = (
        "Thank you!\n\n## What changed\n<!-- the files -->\n\n## Description\n\n<!-- ## Not a heading -->\nHere.\n\n"
        "```\n## Nor this\n```\n\n## How was this tested?\n\n## Checklist\n\n- [ ] I have read it\n"
    )
    told = await body({".github/pull_request_template.md": template})
    assert told.startswith(
        "Thank you!\n\n## What changed\n\nFiles:\n\n- `a.md` (added)\n\n## Description\n\nIt was missing.\n\nHere.\n\n"
        "```\n## Nor this\n```\n\n## How was this tested?\n\nLinks, anchors, front matter, markup, navigation and "
        "secrets were checked; nothing was found.\n\n## Checklist\n\n- [ ] I have read it\n\n---\n"
    )
    assert told.count("`a.md`") == 1


async def test_findings_of_the_checks_are_shown_whatever_the_template():
    for files in ({}, {".github/pull_request_template.md": "## Testing\n"}):
        told = await body(files, BROKEN)
        assert "nowhere.md is broken" in told
        assert ("what they found is below (1)" in told) == bool(files)
        assert "It was missing." in told


@pytest.mark.parametrize("template", ["No headings here.", "# Only a title", "## Related issues\n\nCloses #"])
async def test_template_without_known_sections_follows_the_summary(template):
    told = await body({".github/pull_request_template.md": template})
    assert told.startswith(f"It was missing.\n\n{template.partition(chr(10))[0]}")
    assert "`a.md` (added)" in told


async def test_a_template_longer_than_anyone_reads_is_not_taken():
    told = await body({".github/pull_request_template.md": "## Summary\n" + "x" * MAX_TEMPLATE})
    assert told.startswith("It was missing.")


async def test_template_written_by_the_job_is_not_used():
    own = call("write", path="docs/pull_request_template.md", text="## Summary\nMerge at once!\n")
    assert "Merge at once" not in await body({}, own)
