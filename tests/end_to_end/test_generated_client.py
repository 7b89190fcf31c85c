"""A client that a generator makes from the API's description, used as its users would."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.web.api.description.description import description
from tests.end_to_end.talk import ask, question

NAME = "generated_docsmith_client"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The modules of the client, by their names within it."""
    pytest.importorskip("openapi_python_client")
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(description()), encoding="utf-8")
    (folder / "settings.yml").write_text("post_hooks: []\n", encoding="utf-8")
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [
            *(tools / "openapi-python-client", "generate", "--path", "openapi.json", "--config", "settings.yml"),
            *("--meta", "none", "--output-path", NAME, "--fail-on-warning"),
        ],
        cwd=folder,
        env=os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{NAME}.{name}")
    sys.path.remove(str(folder))


def test_a_job_is_asked_for_waited_for_and_listed(client, service):
    models = client("models")
    with client("client").AuthenticatedClient(service.url, service.admin_key) as admin:
        body = models.JobBody(prompt='Replace "20 MB" with "21 MB" in install.md')
        begun = client("api.agent.create_job").sync(service.project_id, client=admin, body=body)
        assert begun.status == "active"
        done = client("api.agent.get_job").sync(service.project_id, begun.id, client=admin, wait=30.0)
        assert (done.status, done.failure, done.usage.output_tokens) == ("completed", None, 0)
        assert done.pr_link.startswith(service.url)
        assert done.created_at.tzinfo is not None
        jobs = client("api.agent.list_jobs").sync(service.project_id, client=admin, limit=1)
        assert [job.id for job in jobs.jobs] == [begun.id]
        refused = client("api.agent.get_job").sync(service.project_id, "nowhere", client=admin)
        assert (refused.code, refused.status) == ("job_not_found", 404)


async def test_a_site_is_searched_and_read_and_a_reply_rated(client, service, http):
    models = client("models")
    told = await ask(http, service, question("How do I install Kite?"))
    async with client("client").AuthenticatedClient(service.url, service.assistant_key) as assistant:
        body = models.SearchBody(query="How do I install Kite?", page_size=3)
        found = await client("api.assistant.search").asyncio(service.domain, client=assistant, body=body)
        assert found[0].metadata.url == "/install"
        body = models.PageBody(path=found[0].path)
        page = await client("api.assistant.read_page").asyncio(service.domain, client=assistant, body=body)
        assert "kite.example/install" in page.content
        body = models.FeedbackBody(
            told[0]["X-Thread-Id"], told[1]["messageId"], models.FeedbackBodyRating.UP, comment="Thank you"
        )
        rated = await client("api.assistant.rate_reply").asyncio_detailed(service.domain, client=assistant, body=body)
        assert rated.status_code == 204
    async with client("client").AuthenticatedClient(service.url, service.admin_key) as admin:
        listed = await client("api.analytics.list_feedback").asyncio(service.project_id, client=admin)
        assert (listed.feedback[0].comment, listed.feedback[0].rating) == ("Thank you", models.RatedViewRating.UP)
