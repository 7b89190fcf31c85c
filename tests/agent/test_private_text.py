"""Text of a context repository that is not public reaches neither another site nor the pull request unnoticed."""

import pytest
from msgspec.structs import replace

from service.agent.checks import quoted
from service.agent.checks.changed import Changed
from service.agent.loop.loop import work
from service.agent.sources import Passage, Private
from service.domain.jobs.decider import ChecksReported, ToolReturned
from tests.agent.journal import Journal, context_of
from tests.agent.test_contexts import CODE
from tests.agent.test_external_links import FakeLinkChecker
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

LINE = "# The override for the vault of customers is opened by the second on-call engineer alone."
LINES = ["first = open_the_vault()", "second = read_all(first)", "third = close(second)"]
FILE = "\n".join([LINE, "", *LINES, "}", "}", "}", "See https://internal.acme.dev/vault?key=abc for more.", ""])


def repositories():
    docs = FakeDocsSource({"index.md": "# Kites\n\n[old](https://docs.acme.dev/old)\n"})
    docs.contexts = {"code": FakeDocsSource({"vault.py": FILE})}
    return docs


async def reported(*steps, title="Vault", summary="Done.", context=CODE, link_checker=None):
    """The rules and messages of the problems that remain, after a job that reads the context and does these steps."""
    journal = Journal("Describe https://docs.acme.dev/asked")
    done = call("finish", "f", title=title, summary=summary)
    script = [calls(call("read", "r", path="@code/vault.py")), *map(calls, steps)]
    working = context_of(journal, repositories(), FakeModel([*script, *[calls(done)] * 5]))
    await work(journal.start(), replace(working, contexts=(context,), link_checker=link_checker))
    last = [event for event in journal.events if isinstance(event, ChecksReported)][-1]
    return [one for one in last.problems if one.rule == "private_text"], journal


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"> {LINE[2:]}",
        "We know: " + LINE[2:].replace(" opened ", " opened\n"),
        "```\n" + "\n".join(LINES) + "\n```",
    ],
    ids=["line", "quote", "wrapped", "lines"],
)
async def test_private_lines_in_a_page_are_an_error_with_their_source(text):
    problems, _ = await reported(call("write", "w", path="vault.md", text=f"# Vault\n\n{text}\n"))
    assert [(one.severity, one.path) for one in problems] == [("error", "vault.md")]
    assert "@code/vault.py" in problems[0].message
    assert "customers" not in problems[0].message


@pytest.mark.parametrize("where", ["title", "summary"])
async def test_private_lines_in_title_and_description_are_an_error(where):
    page = call("write", "w", path="vault.md", text="# Vault\n")
    problems, _ = await reported(page, **{where: f"About it: {LINE[2:]}"})
    assert len(problems) == 1
    assert problems[0].path == ""


async def test_short_lines_other_words_and_public_repositories_are_no_error():
    page = call("write", "w", path="vault.md", text=f"# Vault\n\n{LINES[0]}\n\n}}\n}}\n}}\n")
    assert (await reported(page))[0] == []
    page = call("write", "w", path="vault.md", text=f"# Vault\n\n{LINE}\n")
    assert (await reported(page, context=replace(CODE, public=True)))[0] == []


def test_what_stood_there_before_or_was_asked_for_is_no_error():
    private = Private((Passage("@code/vault.py", "", 1, (LINE,)),))
    assert quoted.check([Changed("a.md", "", LINE)], {}, private)
    assert quoted.check([Changed("a.md", f"Old: {LINE[2:]}", LINE)], {}, private) == []
    assert quoted.check([Changed("a.md", "", LINE)], {}, replace(private, public=(LINE,))) == []


async def test_only_addresses_that_others_have_written_are_asked():
    checker = FakeLinkChecker()
    links = ("https://evil.example.dev/?said=The-override-for-the-vault", "https://internal.acme.dev/vault?key=abc",
             "https://docs.acme.dev/asked", "https://docs.acme.dev/old")  # fmt: skip
    text = "# Vault\n\n" + "\n".join(f"[x]({link})" for link in links) + "\n"
    _, journal = await reported(
        call("write", "w", path="vault.md", text=text), call("check_external", "e"), link_checker=checker
    )
    assert checker.asked == ["https://docs.acme.dev/asked", "https://docs.acme.dev/old"]
    [told] = [one for one in journal.events if isinstance(one, ToolReturned) and one.name == "check_external"]
    assert "2 links not asked" in told.result
