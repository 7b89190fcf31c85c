"""The tools of a job's model, and what it is told first, in a running service."""

import asyncio
import json

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
    docs = write_docs(tmp_path / "docs")
    (docs / "AGENTS.md").write_text("The style guide is STYLE.md.\n")
    (docs / "STYLE.md").write_text("Write one idea in a sentence.\n")
    with service_in(tmp_path, with_model(provider)) as service:
        await asyncio.to_thread(service.set_up, docs, index=False)
        await asyncio.to_thread(service.start)
        yield service


def says(provider, *calls):
    provider.will_reply(calls=tuple(Call(name, (json.dumps(arguments),)) for name, arguments in calls))


async def test_model_finds_reads_changes_and_checks(http, serving, provider):
    says(
        provider,
        ("search", {"query": "how to install"}),
        ("search", {"query": r"^#+ \w+", "regex": True, "folder": "."}),
        ("read", {"path": "./install.md", "start_line": 1, "end_line": 2}),
        ("history", {"path": "install.md"}),
        ("read", {"path": "../secret.md"}),
    )
    says(
        provider,
        ("insert", {"path": "install.md", "text": "See [it](nowhere.md)."}),
        ("check", {}),
        ("diff", {"path": "/install.md"}),
    )
    says(provider, ("replace", {"path": "install.md", "old": "See [it](nowhere.md).", "new": "That is all."}))
    says(provider, ("check", {}), ("finish", {"title": "End the page", "summary": "It had no end."}))
    job = await create_job(http, serving, "End the page")
    await job_events(http, serving, job["id"])
    done = await get_job(http, serving, job["id"])
    assert (done["outcome"], done["problems"]) == ("pull_request", [])

    prompts = [asked.body["messages"] for asked in provider.asked]
    beginning = [(message["role"], message["content"]) for message in prompts[0]]
    assert all(
        [(message["role"], message["content"]) for message in one[: len(beginning)]] == beginning for one in prompts
    )
    assert len({json.dumps(asked.body["tools"]) for asked in provider.asked}) == 1
    assert "Write one idea in a sentence." in json.dumps(beginning)
    words, pattern, read, history, outside, _, check, diff, *_ = (
        message["content"] for message in prompts[-1] if message["role"] == "tool"
    )
    assert words.startswith("Best sections, ")
    assert "install.md, lines " in words
    assert "install.md (" in pattern
    assert "     1\t" in read
    assert "1 commit of install.md" in history
    assert "leads out of the repository" in outside
    assert "1 error" in check
    assert "nowhere.md" in check
    assert "+See [it](nowhere.md)." in diff
