"""A model that fails: passages for readers, and for the operator the reason and the setting, until it works again."""

import asyncio
import json

import pytest

from tests.dashboard.conftest import browser, invite, sign_in
from tests.end_to_end.scripted import scripted_service
from tests.end_to_end.talk import ask, message_url, question, text_of
from tests.fakes.provider import ScriptedProvider
from tests.service_process import free_port

QUESTION = "How do I install Kite?"


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    with scripted_service(tmp_path_factory.mktemp("failing"), port) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


async def readiness(http, service):
    async with http.get(f"{service.url}/readyz") as response:
        return response.status, (await response.json())["degraded"]


async def fail(provider):
    provider.will_fail(401, "authentication_error", "Incorrect API key provided: sk-scripted")


async def model_finding(service):
    found = json.loads((await asyncio.to_thread(service.run, "doctor", "--json")).stdout)
    return next(one for one in found["findings"] if one["name"] == "assistant model")


async def test_chat_clients_show_passages_in_place_of_an_answer(http, service, provider):
    await fail(provider)
    _, *found = await ask(http, service, question(QUESTION))
    note, _, passages = text_of(found).partition("\n\n")
    assert note == (
        "The assistant is misconfigured. These are the passages of the documentation that were found for your question."
    )
    assert "](/install" in passages
    assert {chunk["type"] for chunk in found} & {"error"} == set()
    finish = found[-1]["messageMetadata"]
    assert (finish["finishReason"], finish["failure"]) == ("error", "assistant_misconfigured")
    await fail(provider)
    body = question(QUESTION)
    body["messages"][0]["content"] = QUESTION
    async with http.post(message_url(service, 1), json=body, headers=service.assistant) as response:
        lines = (await response.text()).splitlines()
    assert note in "".join(json.loads(line[2:]) for line in lines if line.startswith("0:"))
    assert not [line for line in lines if line.startswith("3:")]
    assert json.loads(lines[-1][2:])["finishReason"] == "error"


async def test_operator_learns_why_until_a_reply_works(http, service, provider):
    await fail(provider)
    await ask(http, service, question(QUESTION))
    status, degraded = await readiness(http, service)
    assert status == 200
    assert "model_key_refused" in degraded["assistant"]
    assert "sk-" not in degraded["assistant"]
    health = await asyncio.to_thread(service.cli, "health")
    assert (health["ready"], health["degraded"]) == (True, degraded)
    finding = await model_finding(service)
    assert finding["level"] == "wrong"
    assert "The provider refuses the key" in finding["says"]
    assert "api_key_env" in finding["mend"]
    person = {"email": "operator@example.com", "organization_id": service.organization_id, "role": "owner"}
    _, link = await invite(service.data, is_operator=True, **person)
    async with browser(service.url, await asyncio.to_thread(sign_in, service.url, link)) as operator:
        start = await (await operator.get(f"/dashboard/{service.organization_id}")).text()
        health = await (await operator.get("/operator/health")).text()
    assert "replies without the model" in start
    assert "The assistant's model fails." in health
    assert "All parts of the service work." not in health
    assert "api_key_env" in health
    provider.will_reply("Run the installer [1].")
    await ask(http, service, question(QUESTION))
    assert (await readiness(http, service))[1] == {}
    assert (await model_finding(service))["level"] == "ok"


async def test_failed_model_makes_no_gap(http, service, provider):
    await fail(provider)
    headers, *_ = await ask(http, service, question("How do I fly a zeppelin with Kite?"))
    url = f"{service.url}/v1/analytics/{service.project_id}/assistant"
    async with http.get(url, headers=service.admin) as response:
        rows = {row["threadId"]: row for row in (await response.json())["conversations"]}
    row = rows[headers["X-Thread-Id"]]
    assert (row["outcome"], row["isGap"], row["failure"]["code"]) == ("failed", False, "assistant_misconfigured")
