"""Links to other sites are asked for on request; what fails for good is a warning of the job."""

import msgspec
from msgspec.structs import replace

from service.agent.checks.links.links import Links
from service.agent.loop.loop import work
from service.agent.tools import external
from service.agent.tools.toolbox import Toolbox
from service.agent.workspace import Workspace
from service.domain.jobs.decider import ToolReturned
from service.domain.model import ToolCall
from service.ports.docs_source import Source
from service.ports.link_checker import LinkAnswer
from tests.agent.journal import START, Journal, context_of
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.model import FakeModel, call, calls

SOURCE = Source("p1", "", "main", "", "local")
OLD = "https://docs.acme.dev/old"


class FakeLinkChecker:
    def __init__(self, **answers):
        self.asked, self._answers = [], answers

    async def ask(self, urls):
        self.asked += urls
        names = {url: url.rpartition("/")[2] for url in urls}
        return {url: self._answers.get(name, LinkAnswer(200)) for url, name in names.items()}


async def run(text, checker, **arguments):
    docs = FakeDocsSource({"a.md": f"# A\n\n[old]({OLD})\n", "b.md": "# B\n"})
    changes = {"a.md": f"# A\n\n[old]({OLD})\n{text}"}
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, changes)
    box = Toolbox(workspace, Links(workspace), None, "docs", link_checker=checker)
    asked = ToolCall("1", "check_external", msgspec.json.encode(arguments).decode())
    return await box.run(asked), workspace


ADDED = """
[fine](https://docs.acme.dev/fine#part) and <https://docs.acme.dev/gone>, `https://docs.acme.dev/code`,
[sample](https://example.com/x), [busy](https://docs.acme.dev/busy) and [no host](https://docs.acme.dev/host).
"""
ANSWERS = {
    "gone": LinkAnswer(404),
    "busy": LinkAnswer(503),
    "host": LinkAnswer(None, "not_resolved"),
    "old": LinkAnswer(410),
}


async def test_added_links_are_asked_and_failures_are_warnings():
    checker = FakeLinkChecker(**ANSWERS)
    outcome, workspace = await run(ADDED, checker)
    assert [url.rpartition("/")[2] for url in checker.asked] == ["fine", "gone", "busy", "host"]
    assert "4 links to other sites: 2 broken, 1 without a clear answer" in outcome.result
    step = ToolReturned("1", "check_external", outcome.result, False, START, outcome.value)
    problems = await external.remaining([step], workspace)
    assert [(p.code, p.severity, p.path, p.line, p.message) for p in problems] == [
        ("external_link_broken", "warning", "a.md", 5, "https://docs.acme.dev/gone does not work: it answers 404."),
        ("external_link_broken", "warning", "a.md", 6,
         "https://docs.acme.dev/host does not work: its host name is not found."),
    ]  # fmt: skip


async def test_added_link_is_asked_though_a_longer_one_was_there():
    checker = FakeLinkChecker()
    await run("[part](https://docs.acme.dev/ol)\n", checker)
    assert checker.asked == ["https://docs.acme.dev/ol"]


async def test_broken_link_on_every_page_is_named_on_some():
    docs = FakeDocsSource({f"page{number}.md": f"[a]({OLD})\n" * 5 for number in range(external.MAX_PLACES + 5)})
    workspace = await Workspace.open(docs, SOURCE, (await docs.fetch(SOURCE)).base_commit, {})
    box = Toolbox(workspace, Links(workspace), None, "docs", link_checker=FakeLinkChecker(old=LinkAnswer(404)))
    outcome = await box.run(ToolCall("1", "check_external", '{"all": true}'))
    assert len({broken.path for broken in outcome.value.broken}) == len(outcome.value.broken) == external.MAX_PLACES


async def test_links_that_were_there_before_are_asked_when_all_are_wanted():
    checker = FakeLinkChecker(**ANSWERS)
    outcome, workspace = await run("", checker)
    assert (checker.asked, outcome.value) == ([], None)
    outcome, workspace = await run("", checker, all=True)
    assert checker.asked == [OLD]
    step = ToolReturned("1", "check_external", outcome.result, False, START, outcome.value)
    assert len(await external.remaining([step], workspace)) == 1
    (change,) = await workspace.write("a.md", "# A\n")
    workspace.apply([change])
    assert await external.remaining([step], workspace) == ()


async def test_job_reports_broken_links_of_its_pages():
    write = call("write", path="new.md", text="# New\n\n[gone](https://docs.acme.dev/gone)\n")
    finish = call("finish", title="Add a page", summary="It was missing.")
    model = FakeModel([calls(write, call("check_external")), calls(finish), calls(finish)])
    journal = Journal("Add a page about https://docs.acme.dev/gone, and check its links")
    context = replace(
        context_of(journal, FakeDocsSource({"a.md": "# A\n"}), model), link_checker=FakeLinkChecker(**ANSWERS)
    )
    end = await work(journal.start(), context)
    assert [(problem.code, problem.path) for problem in end.work.remaining_problems] == [
        ("external_link_broken", "new.md")
    ]


async def test_an_installation_may_forbid_asking_other_sites():
    outcome, _ = await run(ADDED, None)
    assert outcome.is_error
    assert "not checked by this installation" in outcome.result
