"""The agent with language models, through a running service, in OpenAI's protocol and in Anthropic's."""

import asyncio
import json
import time

import pytest

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider
from tests.service_process import free_port, service_in, write_docs

MODELS = {
    "sonnet": {"model": "openai/gpt-5.2", "api_key_env": "SCRIPTED_KEY", "fallback": "opus"},
    "opus": {"model": "anthropic/claude-opus-5-5", "api_key_env": "SCRIPTED_KEY"},
    "small": {
        "model": "openai/our-own",
        "context_tokens": "16000",
        "input_usd_per_million_tokens": "1",
        "output_usd_per_million_tokens": "1",
    },
    "hasty": {"model": "openai/our-own", "idle_timeout_seconds": "0.3"},
}


def call(tool, **arguments):
    return Call(tool, (json.dumps(arguments),))


PLAN = call("plan", todos=[{"content": "Mend the figure", "status": "in_progress"}])
STEPS = (
    Reply(("I look. ",), (PLAN, call("read", path="install.md"))),
    Reply((), (call("replace", path="install.md", old="20 MB", new="25 MB"),)),
    Reply(("Done.",), (call("finish", title="Correct the size", summary="It needs 25 MB."),)),
)


class Player:
    """Answers by how far the conversation is; ``down`` are protocols that are overloaded."""

    def __init__(self):
        self.down = set()
        self.steps = STEPS

    def __call__(self, asked: Asked) -> Reply | Failure:
        if asked.protocol in self.down:
            return Failure(529 if asked.protocol == "anthropic" else 503, "overloaded_error")
        done = sum(message["role"] == "assistant" for message in asked.body["messages"])
        return self.steps[done] if done < len(self.steps) else Reply(("Nothing more.",))


@pytest.fixture
def player():
    return Player()


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture
async def provider(player, port):
    async with ScriptedProvider(player, port=port) as provider:
        yield provider


@pytest.fixture(scope="module")
def served(tmp_path_factory, port):
    environment = {"SCRIPTED_KEY": "sk-scripted", "DOCSMITH_AGENT__MODEL": "sonnet"}
    for alias, settings in MODELS.items():
        base = f"http://127.0.0.1:{port}" + ("" if alias == "opus" else "/v1")
        for name, value in {**settings, "api_base": base}.items():
            environment[f"DOCSMITH_MODELS__{alias.upper()}__{name.upper()}"] = value
    folder = tmp_path_factory.mktemp("models")
    with service_in(folder, environment) as service:
        docs = {f"long/page{number}.md": f"# {number}\n" + "word " * 4_000 for number in range(12)}
        write_docs(folder / "docs")
        service.set_up(write_docs(folder / "docs", docs), index=False)
        service.start()
        yield service


async def run(http, service, model):
    """A job with the model of an alias, by version 1 of the API, which names one; its view, and its events."""
    url = f"{service.url}/v1/agent/{service.project_id}/job"
    body = {"messages": [{"role": "user", "content": "The installer needs 25 MB."}], "model": model}
    async with http.post(url, json=body, headers=service.admin) as response:
        assert response.status == 200, await response.text()
        await response.read()
        job_id = response.headers["X-Session-Id"]
    return await get_job(http, service, job_id), await job_events(http, service, job_id)


@pytest.mark.parametrize(
    ("alias", "protocol", "model"),
    [("sonnet", "openai", "openai/gpt-5.2"), ("opus", "anthropic", "anthropic/claude-opus-5-5")],
)
async def test_a_language_model_makes_a_pull_request(http, served, provider, alias, protocol, model):
    job, events = await run(http, served, alias)
    assert (job["status"], job["failure"], job["model"]) == ("completed", None, model)
    assert job["prLink"]
    asked = provider.asked
    assert [(each.protocol, each.key) for each in asked] == [(protocol, "sk-scripted")] * 3
    assert job["usage"]["inputTokens"] == 36
    assert job["usage"]["costUsd"] > 0
    assert "Mend the figure" in json.dumps([event for event in events if event["type"] == "plan-changed"])
    assert "The installer needs 20 MB" in json.dumps(asked[1].body["messages"])


async def test_second_model_takes_over_from_one_down_and_is_shown(http, served, provider, player):
    player.down = {"openai"}
    job, _ = await run(http, served, "sonnet")
    assert [asked.protocol for asked in provider.asked] == ["openai"] * 2 + ["anthropic"] * 3
    assert (job["status"], job["model"]) == ("completed", "anthropic/claude-opus-5-5")


async def test_a_job_over_many_long_pages_stays_within_a_small_window(http, served, provider, player):
    player.steps = (*(Reply((), (call("read", path=f"long/page{at}.md"),)) for at in range(12)), STEPS[2])
    job = await asyncio.to_thread(served.cli, "job", "create", "Read it all", "--model", "small")
    await job_events(http, served, job["id"])
    shown = await get_job(http, served, job["id"])
    assert (shown["status"], shown["prLink"], shown["model"]) == ("completed", None, "openai/our-own")
    asked = provider.asked
    assert len(asked) == 13
    assert all(len(json.dumps(each.body)) / 3 + each.body["max_tokens"] < 16_000 for each in asked)
    assert shown["usage"]["costUsd"] == pytest.approx(13 * 46 / 1_000_000)


async def test_model_silent_beyond_the_setting_is_asked_again(http, served, provider, player):
    player.steps = (Reply(("I am", " on it."), after=1, hold=asyncio.Event()),)
    job = await asyncio.to_thread(served.cli, "job", "create", "Look", "--model", "hasty")
    async with asyncio.timeout(60):
        await provider.next_asked()
        player.steps = (Reply(("Nothing to do.",)),)
        await job_events(http, served, job["id"])
    assert (await get_job(http, served, job["id"]))["status"] == "completed"
    assert len(provider.asked) >= 2  # on a busy machine the second may fall silent, too


async def test_cancelled_job_ends_its_provider_call_within_a_second(http, served, provider, player):
    player.steps = (Reply(("I am", " on it."), after=1, hold=asyncio.Event()),)
    job = await create_job(http, served, "The installer needs 25 MB.")
    async with asyncio.timeout(60):
        asked = await provider.next_asked()
        url = f"{served.url}/v2/agent/{served.project_id}/job/{job['id']}/cancel"
        cancelled_at = time.monotonic()
        async with http.post(url, headers=served.admin) as response:
            assert response.status == 200, await response.text()
        await asked.disconnected.wait()
    assert asked.disconnected_at - cancelled_at < 10
    assert (await get_job(http, served, job["id"]))["failure"]["code"] == "cancelled"
