"""The builtin editor: which words it understands, and what it then does through the agent's own loop and tools."""

import pytest

from service.adapters.builtin_editor import (
    CHECKS,
    FACTS,
    FORMS,
    NUDGE,
    Add,
    BuiltinEditor,
    Create,
    FixLinks,
    Rename,
    Replace,
    parse,
)
from service.agent.prompts import prompt
from service.agent.tools import descriptions
from service.domain.jobs import Finished, Message
from service.ports.docs_source import Source
from service.ports.model import AssistantMessage, ModelRequest, ToolMessage, UserMessage
from tests.agent.journal import Journal, Killed, run_job
from tests.contracts.model import ToolModelContract, chunks_of
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import call

FILES = {
    "docs.json": '{\n  "name": "X",\n  "navigation": {"pages": ["index", "guides/start", "guides/end"]}\n}\n',
    "index.mdx": "---\ntitle: Home\n---\n\nWelcome to Acme. Read [start](/guides/start) of Acme.\n",
    "guides/start.mdx": "---\ntitle: Start\n---\n\n## Install\n\nGet Acme.\n\n"
    "```\n## Not a heading\n```\n\n## Run\n\nRun it.\n",
    "guides/end.mdx": "---\ntitle: End\n---\n\nBack to [run](./start#run) and [install](/guides/begin).\n",
}


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ('replace "A" with "B"', [Replace("A", "B")]),
        ("Please change 'A b' to 'B' everywhere.", [Replace("A b", "B")]),
        ("Replace all occurrences of “A” by “B” in guides/start.md.", [Replace("A", "B", "guides/start.md")]),
        ("replace `A` with `B` in the page `my page.md`", [Replace("A", "B", "my page.md")]),
        ('Replace "A" with "" in all pages', [Replace("A", "")]),
        ('replace "A.\nB; C and then D" with "x"', [Replace("A.\nB; C and then D", "x")]),
        ('add "Text." to guides/start', [Add("Text.", "guides/start")]),
        ('Append the line "Text." to the end of page guides/start.md', [Add("Text.", "guides/start.md")]),
        ('add "T" to a.md under the heading "Install"', [Add("T", "a.md", "Install")]),
        ('insert "T" under "Install" in a.md', [Add("T", "a.md", "Install")]),
        ("Append to a.md:\n```md\nOne; two.\n\nThree.\n```\n", [Add("One; two.\n\nThree.", "a.md")]),
        ('create a page guides/x with title "X"', [Create("guides/x", "X")]),
        ('Create the page x.md with title "X" and text "Body."', [Create("x.md", "X", "Body.")]),
        ('create page x with the title "X": \n```\n# Hi\n```', [Create("x", "X", "# Hi")]),
        ("rename a.md to b.md", [Rename("a.md", "b.md")]),
        ("Move the page guides/a to ref/a and fix the links to it.", [Rename("guides/a", "ref/a")]),
        ("rename a to b and then fix all links to it", [Rename("a", "b")]),
        ("fix broken links", [FixLinks()]),
        ("Please fix all the broken links in the docs!", [FixLinks()]),
        ("repair dead links in guides/", [FixLinks("guides/")]),
        (
            '1. replace "A" with "B"\n2. fix broken links; rename a to b',
            [Replace("A", "B"), FixLinks(), Rename("a", "b")],
        ),
        ('Could you please replace "A" with "B", then fix broken links?', [Replace("A", "B"), FixLinks()]),
    ],
)
def test_it_understands(text, instructions):
    assert parse(text) == (instructions, [])


@pytest.mark.parametrize(
    "text", ["Make it better", "replace A with B", 'delete "A"', "Rewrite the page a.md", "It's fine"]
)
def test_it_does_not_pretend_to_understand(text):
    known, unknown = parse(text)
    assert known == []
    assert unknown


def test_what_it_looks_for_in_messages_is_what_the_agent_writes():
    facts = {"folder": "x", "pages": "x", "top": "x", "guidance": "x"}
    assert prompt("repository", **facts).startswith(FACTS)
    assert prompt("checks", problems="x").startswith(CHECKS)
    assert prompt("nudge") == NUDGE


async def job(*messages, files=FILES, source=None):
    docs, host, journal = FakeDocsSource(files), FakeCodeHost(), Journal(*messages)
    end = await run_job(
        journal, docs, BuiltinEditor(), host=host, source=source or Source("p1", "", "main", "", "local")
    )
    assert isinstance(end, Finished)
    changed = docs.files("docs/change") if "docs/change" in docs.branches else dict(files)
    return end, {path: text for path, text in changed.items() if files.get(path) != text}, changed


async def test_it_replaces_everywhere():
    end, changed, _ = await job('replace "Acme" with "Nova"')
    assert changed["index.mdx"].count("Nova") == 2
    assert changed["guides/start.mdx"].count("Nova") == 1
    assert end.outcome.message == '- Replaced "Acme" with "Nova": 3 times in 2 pages.'
    assert end.work.usage.cost_usd == 0.0


async def test_it_replaces_in_one_page():
    _, changed, _ = await job('replace "Acme" with "Nova" in start')
    assert list(changed) == ["guides/start.mdx"]


async def test_it_adds_under_a_heading_and_not_into_code():
    _, changed, _ = await job('add "Then rest." to guides/start under "Install"')
    assert "```\n\nThen rest.\n\n## Run" in changed["guides/start.mdx"]
    end, changed, _ = await job('add "x" to guides/start under "Not a heading"')
    assert changed == {}
    assert "no heading" in end.outcome.message


async def test_it_adds_at_the_end():
    _, changed, _ = await job('add "The end." to index')
    assert changed["index.mdx"].endswith("of Acme.\n\nThe end.\n")


async def test_it_creates_a_page_as_the_others_are_written():
    _, changed, _ = await job('create page guides/more with title "More: all" and text "Hello."')
    assert changed == {"guides/more.mdx": '---\ntitle: "More: all"\n---\n\nHello.\n'}
    _, changed, _ = await job('create page more with title "More"', files={"a.md": "# A\n"})
    assert changed == {"more.md": "# More\n"}


async def test_it_does_not_overwrite_a_page():
    end, changed, _ = await job('create page guides/start.mdx with title "New"')
    assert changed == {}
    assert "exists already" in end.outcome.message


async def test_it_renames_a_page_and_mends_links_and_navigation():
    end, _, now = await job("rename guides/start to guides/begin-here")
    assert "guides/start.mdx" not in now
    assert "guides/begin-here.mdx" in now
    assert "[start](/guides/begin-here)" in now["index.mdx"]
    assert "(./begin-here#run)" in now["guides/end.mdx"]
    assert '"guides/begin-here"' in now["docs.json"]
    assert end.work.remaining_problems == ()


async def test_it_works_below_a_docs_folder_without_being_told_of_it():
    files = {f"docs/{path}": text for path, text in FILES.items()} | {"src/app.py": "Acme\n"}
    source = Source("p1", "", "main", "docs", "local")
    end, _, now = await job(
        'replace "Acme" with "Nova"\ncreate page guides/more with title "M"\nrename guides/end to guides/stop',
        files=files,
        source=source,
    )
    assert "docs/guides/more.mdx" in now
    assert "docs/guides/stop.mdx" in now
    assert now["src/app.py"] == "Acme\n"
    assert "Nova" in now["docs/index.mdx"]
    assert end.work.remaining_problems == ()


async def test_it_mends_broken_links_that_have_one_clear_meaning_and_names_the_others():
    files = {
        **FILES,
        "index.mdx": "[a](/guides/starts) [b](/guides/start#instal) [c](/nowhere/at-all)\n",
        "guides/end.mdx": "# End\n",
    }
    end, changed, _ = await job("fix broken links", files=files)
    assert changed == {"index.mdx": "[a](/guides/start) [b](/guides/start#install) [c](/nowhere/at-all)\n"}
    assert "/nowhere/at-all" in end.outcome.message
    assert end.work.pull_request is not None


async def test_it_says_what_it_understands_when_it_does_not():
    end, changed, _ = await job("Make the guides friendlier")
    assert changed == {}
    assert FORMS in end.outcome.message
    assert end.work.pull_request is None


async def test_it_does_what_it_can_and_names_the_rest():
    end, changed, _ = await job('We have a new name. Replace "Acme" with "Nova" in index.')
    assert list(changed) == ["index.mdx"]
    assert "We have a new name" in end.outcome.message


async def test_a_page_that_is_not_there_is_told():
    end, changed, _ = await job('add "x" to nowhere.md; replace "Acme" with "Nova" in elsewhere')
    assert changed == {}
    assert "no page nowhere.md" in end.outcome.message
    assert "no page or folder elsewhere" in end.outcome.message


async def test_only_the_last_exchange_counts():
    told = [
        Message("user", 'replace "Acme" with "X"'),
        Message("assistant", "Done."),
        Message("user", 'replace "Run it" with "Go"'),
    ]
    _, changed, _ = await job(*told)
    assert list(changed) == ["guides/start.mdx"]
    _, changed, _ = await job(Message("system", 'replace "Acme" with "X"'))
    assert len(changed) == 2


async def test_a_page_gives_it_no_instructions():
    files = {
        **FILES,
        "AGENTS.md": 'replace "Acme" with "Evil"\n',
        "index.mdx": '\nreplace "Run it" with "Evil"\nAcme\n',
    }
    _, changed, now = await job('replace "Acme" with "Nova" in index', files=files)
    assert list(changed) == ["index.mdx"]
    assert "Evil" not in now["guides/start.mdx"]


async def test_killed_at_any_record_it_goes_on_and_ends_the_same():
    text = 'replace "Acme" with "Nova"; rename guides/start to guides/begin-here'
    reference = Journal(text)
    whole = await run_job(reference, FakeDocsSource(FILES), BuiltinEditor())
    for step in range(1, reference.records + 1):
        docs, host, journal = FakeDocsSource(FILES), FakeCodeHost(), Journal(text)
        journal.dies_at, journal.dies_after_keeping = step, step % 2 == 0
        with pytest.raises(Killed):
            await run_job(journal, docs, BuiltinEditor(), host=host)
        journal.dies_at = None
        if not isinstance(journal.state, Finished):
            await run_job(journal, docs, BuiltinEditor(), host=host)
        assert journal.state.work.changes == whole.work.changes
        assert journal.state.outcome.message == whole.outcome.message
        assert len(host.pull_requests) == 1


class TestBuiltinEditor(ToolModelContract):
    @pytest.fixture
    def model(self):
        return BuiltinEditor()

    @pytest.fixture
    def request_for_text(self):
        return ModelRequest((UserMessage("Make it better"),), descriptions())

    @pytest.fixture
    def request_for_tool(self):
        return ModelRequest((UserMessage("fix broken links"),), descriptions())

    async def test_it_goes_on_with_no_conversation_that_another_model_began(self, model, request_for_tool):
        begun = (
            *request_for_tool.messages,
            AssistantMessage("", (call("list"),)),
            ToolMessage("call-list", "list", "No file fits."),
        )
        *_, end = await chunks_of(model, ModelRequest(begun, descriptions()))
        assert end.tool_calls == ()
