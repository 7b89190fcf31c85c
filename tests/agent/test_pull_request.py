"""The words of a pull request, within the repository's own template."""

import pytest
from msgspec.structs import replace

from service.agent import pull_request
from service.agent.pull_request import MAX_TEMPLATE
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem, Work, WorkFinished
from tests.agent.journal import SOURCE, START, Journal, run_job
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
        assert ("secrets were checked; 1 error remains." in told) == bool(files)
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


def described(summary, *problems):
    finish = WorkFinished("Add a page", summary, START)
    return Work(finish=finish, remaining_problems=problems, changes={f"{n}.md": "x" for n in range(12)})


async def text_of(work, **more):
    journal = Journal("x")
    workspace = await Workspace.open(
        docs := FakeDocsSource({"index.md": "# Home\n"}), SOURCE, docs.branches["main"], {}
    )
    return await pull_request.body(replace(journal.start(), work=work), workspace, work.changes, "job1", **more)


async def test_long_lists_are_collapsed_and_complete():
    told = await text_of(described("It was missing.\n\n" + "\n".join(f"- Item {n}" for n in range(40))))
    assert told.startswith("It was missing.\n\n- Item 0\n")
    assert "\n- Item 12\n\n<details><summary>More</summary>\n\n- Item 13\n" in told
    assert "\n\n<details><summary>12 files</summary>\n\n- `0.md` (added)\n" in told
    assert told.count("\n- `") == 12
    assert told.count("\n- Item ") == 40
    assert told.count("<details>") == told.count("</details>") == 2


async def test_errors_stand_first_and_warnings_last():
    warning = Problem("size", "", "It is large.", severity="warning", code="too_large")
    error = Problem("links", "a.md", "x is broken.", 3)
    told = await text_of(described("It was missing.", warning, error))
    places = [
        told.index(part) for part in ("x is broken.", "It was missing.", "12 files", "It is large.", "---\n\nMade")
    ]
    assert places == sorted(places)


KEPT = """\
Two lines
that the writer broke.

1. one
   * two,
     wrapped

| a table | with a long line that goes on and on and on, far beyond the limit |
|---|---|

```toml
# a comment in code that is long, longer than any line of a commit message should be
key = 1
```

# Heading"""


async def test_commit_body_keeps_the_writers_lines():
    journal, finish = Journal("x"), call("finish", title="Add a page", summary=KEPT)
    end = await run_job(journal, FakeDocsSource({"index.md": "# Home\n"}), FakeModel([calls(EDIT, finish)]))
    assert end.work.commit.message == f"docs: Add a page\n\n{KEPT}\n\nDocsmith-Job: job1\n"


async def test_commit_body_breaks_long_lines_of_prose():
    journal, finish = Journal("x"), call("finish", title="Add", summary="- " + "word " * 20 + "\n- short")
    end = await run_job(journal, FakeDocsSource({"index.md": "# Home\n"}), FakeModel([calls(EDIT, finish)]))
    body = end.work.commit.message.split("\n\n")[1].split("\n")
    assert [line[:6] for line in body] == ["- word", "  word", "- shor"]
    assert max(map(len, body)) <= 72


async def test_description_says_how_to_ask_for_more():
    work = described("It was missing.")
    assert "write a comment that mentions `@docsmith`" in await text_of(work, mention="docsmith")
    assert "@" not in await text_of(work)
