"""Models that are added while the service runs: by a command and in a browser, tried, used at once, and removed."""

import asyncio
import json
import re

import aiohttp
import pytest
import pytest_asyncio

from tests.dashboard.conftest import HTML, SAME_ORIGIN, post_form
from tests.end_to_end.talk import ask, create_job, events_in, files_with, get_job, job_events, question, text_of
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-typed-1n-a-br0wser"
FINISH = {"title": "Nothing", "summary": "Nothing was to change."}


def able(asked: Asked) -> Reply | Failure:
    """A model that can do everything that is asked here."""
    if asked.key not in (KEY, "sk-variable"):
        return Failure(401, "authentication_error", "wrong key")
    prompt = json.dumps(asked.body["messages"])
    if "Count from" in prompt:
        return Reply(("1, 2, ", "3, 4"))
    if "look_up_weather twice" in prompt:
        return Reply((), tuple(Call("look_up_weather", (json.dumps({"city": city}),)) for city in ("Paris", "Rome")))
    if "Answer now" in prompt:
        return Reply(("Sunny",))
    if "Call the tool look_up_weather" in prompt:
        return Reply((), (Call("look_up_weather", ('{"city": "Paris"}',)),))
    if "Which word was named" in prompt:
        return Reply(("Juniper",))
    if any(tool["function"]["name"] == "finish" for tool in asked.body.get("tools", ())):
        return Reply((), (Call("finish", (json.dumps(FINISH),)),))
    return Reply(("The model ", "says so [1]."))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider():
    async with ScriptedProvider(able) as provider:
        yield provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory, provider):
    folder = tmp_path_factory.mktemp("models")
    environment = {
        "OUR_KEY": "sk-variable",
        "DOCSMITH_ASSISTANT__PLANNER": "off",
        "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
        "DOCSMITH_MODELS__FIXED__MODEL": "builtin",
    }
    with service_in(folder, environment) as service:
        await asyncio.to_thread(service.set_up, write_docs(folder / "docs"))
        await asyncio.to_thread(service.start)
        yield service


@pytest_asyncio.fixture(loop_scope="module")
async def http():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as http:
        yield http


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookie(service):
    added = await cli(service, "person", "add", "operator@example.com", "--operator")
    fields = {"link": added["link"].partition("#")[2]}
    answer = await asyncio.to_thread(post_form, f"{service.url}/sign-in", fields)
    return answer.headers["Set-Cookie"].partition(";")[0]


@pytest_asyncio.fixture(loop_scope="module")
async def operator(service, cookie):
    headers = {**SAME_ORIGIN, **HTML, "Cookie": cookie}
    async with aiohttp.ClientSession(service.url, headers=headers, timeout=aiohttp.ClientTimeout(total=300)) as client:
        yield client


async def cli(service, *arguments, status=0):
    return await asyncio.to_thread(lambda: service.cli(*arguments, status=status))


async def add(service, provider, name, *more, status=0):
    where = ("--provider", "other", "--model", "our-own", "--address", provider.openai_base, "--key-env", "OUR_KEY")
    return await cli(service, "model", "add", name, *where, *more, status=status)


async def names(http, service):
    async with http.get(f"{service.url}/v2/models", headers=service.admin) as answer:
        return (await answer.json())["aliases"]


async def known_as(http, service, name):
    """Wait until the service knows a model of this name."""
    async with asyncio.timeout(60):
        while name not in await names(http, service):
            pass


async def page_with(operator, words):
    """The page of models, once it has these words."""
    async with asyncio.timeout(120):
        while True:
            text = await (await operator.get("/operator/models")).text()
            if words in text:
                return text


async def test_added_model_is_used_by_a_running_service(http, service, provider):
    added = await add(service, provider, "ours", "--input-price", "1", "--output-price", "2")
    assert added["state"] == "It writes answers and does jobs."
    assert {one["verdict"] for one in added["findings"]} == {"works"}
    await known_as(http, service, "ours")
    await cli(service, "model", "choose", "ours", "--for", "assistant")
    async with asyncio.timeout(60):
        while True:
            said = text_of(await ask(http, service, question("What is the delay between two tries?")))
            if "The model says so" in said:
                break
    service_job = {"prompt": "Look around.", "model": "ours"}
    url = f"{service.url}/v2/agent/{service.project_id}/job"
    async with http.post(url, json=service_job, headers=service.admin) as answer:
        assert answer.status == 201, await answer.text()
        job = await answer.json()
    await job_events(http, service, job["id"])
    assert (await get_job(http, service, job["id"]))["model"] == "openai/our-own"
    listed = {one["name"]: one for one in (await cli(service, "model", "list"))["models"]}
    assert (listed["ours"]["origin"], listed["ours"]["key"]) == ("added", "OUR_KEY")
    assert listed["ours"]["usedFor"] == ["assistant"]
    assert listed["fixed"]["origin"] == "settings"


async def test_key_that_is_typed_is_kept_in_the_vault_alone(http, service, provider, operator):
    form = {
        "provider": "other", "name": "typed", "model": "our-own", "address": provider.openai_base, "key": KEY,
        "key_env": "OUR_KEY", "context_tokens": "32768",
    }  # fmt: skip
    answer = await operator.post("/operator/models", data=form, allow_redirects=False)
    assert answer.status == 303, await answer.text()
    text = await page_with(operator, "It writes answers and does jobs.")
    async with asyncio.timeout(60):
        while "being tried" in text or text.count("It writes answers and does jobs.") < 2:
            text = await (await operator.get("/operator/models")).text()
    assert "key in the vault" in text
    assert KEY not in text
    assert [one.type for one in await events_in(service, "models-installation")][-1] == "model-tried"
    assert any(asked.key == KEY for asked in provider.asked)
    assert files_with(KEY.encode(), *service.folders) == []
    removed = await operator.post("/operator/models/remove", data={"name": "typed"}, allow_redirects=False)
    assert removed.status == 303
    async with asyncio.timeout(60):
        while "typed" in await names(http, service):
            pass


async def test_model_of_the_settings_wins(service, provider, operator):
    await add(service, provider, "fixed")
    text = await page_with(operator, "which wins over one of this name that was added")
    assert re.search(r"<code>fixed</code>.*?<code>builtin</code>", text, re.DOTALL)
    listed = {one["name"]: one for one in (await cli(service, "model", "list"))["models"]}
    assert (listed["fixed"]["model"], listed["fixed"]["hidesAdded"]) == ("builtin", True)
    await cli(service, "model", "remove", "fixed")


async def test_model_that_does_not_answer_is_used_for_nothing(http, service, provider, operator):
    where = ("--provider", "other", "--model", "our-own", "--address", provider.openai_base)
    added = await cli(service, "model", "add", "keyless", *where, status=1)
    assert added["state"] == "It does not answer."
    assert added["findings"][0]["mend"]
    text = await page_with(operator, "keyless")
    assert "It does not answer." in text
    job = await create_job(http, service, "Fix broken links")
    await job_events(http, service, job["id"])
    assert (await get_job(http, service, job["id"]))["model"].startswith("builtin/")
    await cli(service, "model", "remove", "keyless")


async def test_model_that_cannot_be_used_so_is_named(service, provider, operator):
    where = ("--provider", "other", "--model", "our-own", "--address", provider.openai_base, "--context-tokens", "10")
    refused = await asyncio.to_thread(service.run, "model", "add", "tiny", *where, "--untried")
    assert (refused.returncode, "context_tokens is at least" in refused.stderr) == (1, True)
    form = {"provider": "other", "name": "tiny", "model": "m", "address": provider.openai_base, "context_tokens": "10"}
    await operator.post("/operator/models", data=form)
    text = await page_with(operator, "context_tokens is at least")
    assert "It does not answer." in text
    await cli(service, "model", "remove", "tiny")


async def test_each_provider_has_a_form(operator):
    page = await (await operator.get("/operator/models/new")).text()
    providers = re.findall(r"models/new\?provider=([a-z-]+)", page)
    assert {"openai", "anthropic", "gemini", "azure", "bedrock", "openrouter", "groq", "mistral", "deepseek", "xai",
            "ollama", "vllm", "llama-cpp", "lm-studio", "other"} == set(providers)  # fmt: skip
    for provider in providers:
        answer = await operator.get(f"/operator/models/new?provider={provider}")
        text = await answer.text()
        assert (answer.status, 'type="password"' in text, 'name="key_env"' in text) == (200, True, True), provider


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "builtin"}, "cannot be the name"),
        ({"name": "A b"}, "cannot be the name"),
        ({"address": ""}, "address of another, by address is missing"),
        ({"address": "ftp://a"}, "is not an address"),
        ({"model": ""}, "model is missing"),
        ({"context_tokens": "many"}, "is not a number"),
        ({"key_env": "sk-1-2"}, "name of an environment variable"),
        ({"input_usd_per_million_tokens": "1"}, "both prices"),
    ],
)
async def test_bad_values_are_named_beside_the_form(operator, changes, words):
    form = {"provider": "other", "name": "bad", "model": "m", "address": "http://127.0.0.1:9/v1", **changes}
    answer = await operator.post("/operator/models", data=form)
    text = await answer.text()
    assert (answer.status, words in text) == (400, True), text[:2_000]


async def test_settings_may_name_an_added_model(service, provider, tmp_path):
    file = tmp_path / "docsmith.toml"
    file.write_text('[agent]\nmodel = "ours"\n')
    checked = await asyncio.to_thread(service.run, "config", "check", "--config", str(file))
    assert checked.returncode == 0, checked.stdout
    file.write_text('[agent]\nmodel = "theirs"\n')
    checked = await asyncio.to_thread(service.run, "config", "check", "--config", str(file))
    assert "no model 'theirs' in the settings, or among those that were added" in checked.stdout
