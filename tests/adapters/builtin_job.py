"""A job of the builtin editor through the agent's own loop and tools, on a small site."""

from service.adapters.builtin.editor import BuiltinEditor
from service.domain.jobs.decider import Finished
from service.ports.docs_source import Source
from tests.agent.journal import Journal, run_job
from tests.fakes.code_host import FakeCodeHost
from tests.fakes.docs_source import FakeDocsSource

FILES = {
    "docs.json": '{\n  "name": "X",\n  "navigation": {"pages": ["index", "guides/start", "guides/end"]}\n}\n',
    "index.mdx": "---\ntitle: Home\n---\n\nWelcome to Acme. Read [start](/guides/start) of Acme.\n",
    "guides/start.mdx": "---\ntitle: Start\n---\n\n## Install\n\nGet Acme.\n\n"
    "```\n## Not a heading\n```\n\n## Run\n\nRun it.\n",
    "guides/end.mdx": "---\ntitle: End\n---\n\nBack to [run](./start#run) and [install](/guides/begin).\n",
}


async def job(*messages, files=FILES, source=None, model=None):
    docs, host, journal = FakeDocsSource(files), FakeCodeHost(), Journal(*messages)
    end = await run_job(
        journal, docs, model or BuiltinEditor(), host=host, source=source or Source("p1", "", "main", "", "local")
    )
    assert isinstance(end, Finished)
    changed = docs.files("docs/change") if "docs/change" in docs.branches else dict(files)
    return end, {path: text for path, text in changed.items() if files.get(path) != text}, changed
