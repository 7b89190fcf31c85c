"""How a job went: over HTTP, on the command line and on the pull request's page."""

import asyncio
import json
from urllib.request import urlopen

import pytest

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import Call, ScriptedProvider
from tests.service_process import service_in, write_docs


@pytest.fixture
async def provider():
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def serving(tmp_path, provider):
    with service_in(tmp_path, with_model(provider)) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
        await asyncio.to_thread(service.start)
        yield service


def says(provider, *calls):
    provider.will_reply(calls=tuple(Call(name, (json.dumps(arguments),)) for name, arguments in calls))


FINISH = ("finish", {"title": "Add a page", "summary": "It was missing."})


def page(url):
    with urlopen(url) as response:
        return response.read().decode()


async def test_errors_are_seen_everywhere_until_a_round_clears_them(http, serving, provider):
    says(provider, ("insert", {"path": "install.md", "text": "\nSee [it](nowhere.md).\n"}), FINISH)
    says(provider, FINISH)
    job = await create_job(http, serving, "Add a page")
    assert (job["outcome"], job["message"], job["problems"]) == (None, None, [])
    await job_events(http, serving, job["id"])
    done = await get_job(http, serving, job["id"])
    assert (done["status"], done["outcome"], done["message"]) == ("completed", "pull_request", "It was missing.")
    (problem,) = done["problems"]
    assert (problem["severity"], problem["file"], problem["line"] > 1) == ("error", "install.md", True)
    assert problem["code"].replace("_", "").islower()
    shown = await asyncio.to_thread(page, done["prLink"])
    assert "The checks found 1 error" in shown
    assert "Draft" in shown
    assert "Ready to merge" not in shown
    plain = await asyncio.to_thread(serving.run, "job", "show", job["id"])
    assert f"outcome pull_request\nmessage It was missing.\nerror install.md:{problem['line']}: " in plain.stdout

    says(provider, ("replace", {"path": "install.md", "old": "nowhere.md", "new": "retry.md"}), FINISH)
    await asyncio.to_thread(serving.run, "job", "message", job["id"], "Mend the link")
    watched = await asyncio.to_thread(serving.cli, "job", "watch", job["id"])
    assert (watched["outcome"], watched["problems"]) == ("pull_request", [])
    assert "Ready to merge" in await asyncio.to_thread(page, done["prLink"])


async def test_job_that_asks_needs_input_and_goes_on(http, serving, provider):
    says(provider, ("ask", {"question": "Which version?"}))
    watched = await asyncio.to_thread(serving.run, "job", "create", "Name the version", "--watch")
    assert watched.returncode == 4
    assert watched.stdout.endswith("\noutcome needs_input\nmessage Which version?\n")
    (job,) = (await asyncio.to_thread(serving.cli, "job", "list"))["jobs"]
    assert (job["status"], job["outcome"], job["prLink"]) == ("completed", "needs_input", None)
    says(provider, ("insert", {"path": "install.md", "text": "\nThis is version 2.\n"}), FINISH)
    await asyncio.to_thread(serving.run, "job", "message", job["id"], "Version 2")
    watched = await asyncio.to_thread(serving.cli, "job", "watch", job["id"])
    assert (watched["outcome"], watched["message"]) == ("pull_request", "It was missing.")
