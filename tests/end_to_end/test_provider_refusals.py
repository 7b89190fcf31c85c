"""Parts of requests that servers refuse: sent another way once, and remembered, for all processes, for a day."""

import asyncio
import json
from itertools import pairwise

import pytest

from tests.end_to_end.provider_kinds import ASK, call, delta, events, finishing, kinds_service, run_job, says
from tests.fakes import model_servers as servers
from tests.fakes.provider import Asked, Failure, Reply, ScriptedProvider
from tests.service_process import free_port

ANSWER = "Run the installer [1]."
THOUGHT = events(delta(reasoning_content="I look."), done=False)


class Server:
    """A server that refuses requests of a kind, and otherwise answers as jobs and readers need it."""

    def __init__(self):
        self.refuses = lambda body: None
        self.refused = 0
        self.reads = 3  # so a job is reminded, behind a tool's result
        self.thinks = False

    def __call__(self, asked: Asked) -> Reply | Failure:
        if (words := self.refuses(asked.body)) is not None:
            self.refused += 1
            status, message = words if isinstance(words, tuple) else (400, words)
            return Failure(status, "BadRequestError", message)
        messages = asked.body["messages"]
        if any(tool["function"]["name"] == "finish" for tool in asked.body.get("tools", [])):
            said = sum(message["role"] == "assistant" for message in messages)
            if said < self.reads:
                calls = (call("read", path="install.md"), call("read", path="index.md"))
                return Reply((), calls, after=0 if self.thinks else None, raw=THOUGHT)
            return finishing()
        return Reply((ANSWER,))


@pytest.fixture
def server():
    return Server()


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture
async def provider(server, port):
    async with ScriptedProvider(server, port=port) as provider:
        yield provider


@pytest.fixture
def service(tmp_path, port):
    """A service of its own for each: what is learned is learned for good."""
    with kinds_service(tmp_path, port, MODELS__OWN__TEMPERATURE="0.2", MODELS__OWN__REASONING_EFFORT="low") as service:
        yield service


def roles(body):
    return [message["role"] for message in body["messages"]]


def alternate(body):
    found = [each["role"] for each in body["messages"] if each["role"] != "tool" and not each.get("tool_calls")]
    if any(one == other for one, other in pairwise(found)):
        return 500, "Conversation roles must alternate user/assistant/user/assistant/..."
    return None


def behind_tool(body):
    found = roles(body)
    if ("tool", "user") in pairwise(found):
        return "Unexpected role 'user' after role 'tool'"
    return None


def system(body):
    return "System role not supported" if "system" in roles(body) else None


def single(body):
    if any(len(message.get("tool_calls") or ()) > 1 for message in body["messages"]):
        return 500, "This model only supports single tool-calls at once!"
    return None


def long_ids(body):
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    if any(len(each) != 9 for each in ids):
        return "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def thoughts(body):
    if any("reasoning_content" in message for message in body["messages"]):
        return 422, "messages[2].reasoning_content: Extra inputs are not permitted"
    return None


def calls_without_thoughts(body):
    said = [message for message in body["messages"] if message.get("tool_calls")]
    if any("reasoning_content" not in message for message in said):
        return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


REFUSALS = {
    "system_role": system,
    "max_tokens": lambda body: (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        if "max_tokens" in body
        else None
    ),
    "stream_options": lambda body: (
        (422, "stream_options: Extra inputs are not permitted") if "stream_options" in body else None
    ),
    "temperature": lambda body: (
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default"
        " (1) value is supported."
        if "temperature" in body
        else None
    ),
    "reasoning_effort": lambda body: (
        "Unrecognized request argument supplied: reasoning_effort" if "reasoning_effort" in body else None
    ),
    "message_order": behind_tool,
    "parallel_calls": single,
    "call_ids": long_ids,
    "memory": thoughts,
    "calls_without_memory": calls_without_thoughts,
    "tool_names": lambda body: (
        (422, "messages[3].tool.name: Extra inputs are not permitted")
        if any("name" in message for message in body["messages"])
        else None
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_refusal_is_learned_once_for_jobs_and_answers(http, service, provider, server, kind):
    server.refuses, server.thinks = REFUSALS[kind], kind == "memory"
    done = await run_job(http, service)
    assert (done.view["status"], done.failure, server.refused) == ("completed", {}, 1)
    assert (await run_job(http, service)).view["status"] == "completed"
    for version in (1, 2):
        answered = await ASK[version](http, service)
        assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
    assert server.refused == 1
    async with http.get(f"{service.url}/v2/models", headers=service.admin) as response:
        shown = await response.json()
    assert shown["refused"] == {"own": [kind]}
    service.stop()
    service.start()  # another process has it from the log
    assert (await run_job(http, service)).view["status"] == "completed"
    assert server.refused == 1


async def test_changed_settings_are_tried_anew(http, service, provider, server):
    server.refuses = REFUSALS["stream_options"]
    assert (await run_job(http, service)).view["status"] == "completed"
    service.stop()
    service.environment["DOCSMITH_MODELS__OWN__TEMPERATURE"] = "0.3"
    service.start()
    assert (await run_job(http, service)).view["status"] == "completed"
    assert server.refused == 2


async def test_roles_that_must_alternate_alternate_from_the_first_request(http, service, provider, server):
    """The templates of several families refuse two messages of the user in a row (vllm-project/vllm#6862)."""
    server.refuses, server.reads = alternate, 1
    done = await run_job(http, service)
    assert (done.view["status"], server.refused) == ("completed", 0)
    assert roles(provider.asked[0].body) == ["system", "user"]
    assert "Look at it." in provider.asked[0].body["messages"][1]["content"]
    for version in (1, 2):
        answered = await ASK[version](http, service)
        assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
    assert server.refused == 0


async def shown_refusals(http, service):
    async with http.get(f"{service.url}/v2/models", headers=service.admin) as response:
        return (await response.json())["refused"]


async def test_newer_name_of_the_limit_is_left_for_the_older(http, tmp_path, port, provider, server):
    """litellm knows the model, and writes ``max_completion_tokens``; a server of that name may be older."""
    server.refuses = lambda body: (
        "Unrecognized request argument supplied: max_completion_tokens" if "max_completion_tokens" in body else None
    )
    with kinds_service(tmp_path, port, MODELS__OWN__MODEL="openai/gpt-5-mini") as service:
        for _ in range(2):
            done = await run_job(http, service)
            assert (done.view["status"], done.failure, server.refused) == ("completed", {}, 1)
        for version in (1, 2):
            answered = await ASK[version](http, service)
            assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
        assert server.refused == 1
        assert all("max_tokens" in asked.body for asked in provider.asked[1:])
        assert await shown_refusals(http, service) == {"own": ["max_completion_tokens"]}


async def test_schema_that_is_refused_is_left_out_of_plans(http, tmp_path, port, provider, server):
    server.refuses = lambda body: "This response_format type is unavailable now" if "response_format" in body else None
    with kinds_service(tmp_path, port, ASSISTANT__PLANNER="own") as service:
        for version in (1, 2):
            answered = await ASK[version](http, service, "What is the difference between the installer and the kite?")
            assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
        plans = [asked for asked in provider.asked if "tools" not in asked.body]
        assert ["response_format" in asked.body for asked in plans] == [True, False, False]
        assert await shown_refusals(http, service) == {"own": ["output_schema"]}


@pytest.mark.parametrize(
    "words",
    [
        "registry.ollama.ai/library/tiny:latest does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use."),
    ],
)
async def test_model_without_tools_answers_and_does_no_jobs(http, service, provider, server, words):
    server.refuses = lambda body: words if body.get("tools") else None
    for version in (1, 2):
        answered = await ASK[version](http, service)
        assert (answered.text.startswith("Run the installer"), answered.error) == (True, "")
    assert server.refused == 1
    done = await run_job(http, service)
    assert (done.failure["code"], done.has_waited, server.refused) == ("model_takes_no_tools", False, 1)
    assert "needs a model with tools" in done.failure["message"]


async def test_settings_name_what_a_server_refuses_and_accepts(http, tmp_path, port, provider, server):
    server.refuses = lambda body: REFUSALS["max_tokens"](body) or system(body)
    settings = {"MODELS__OWN__REFUSES": "max_tokens", "MODELS__OWN__ACCEPTS": "system_role"}
    with kinds_service(tmp_path, port, **settings) as service:
        done = await run_job(http, service)
        assert (done.failure["code"], server.refused) == ("model_refused_request", 1)
        assert "System role" in done.failure["message"]
        shown = json.loads((await asyncio.to_thread(service.run, "doctor", "--ask-models", "--json")).stdout)
        assert any(
            "max_tokens" in one["says"] for one in shown["findings"] if one["name"] == "model own, refused parts"
        )


async def test_doctor_shows_what_was_learned(http, service, provider, server):
    server.refuses = system
    provider.will(says("hello"))
    found = json.loads((await asyncio.to_thread(service.run, "doctor", "--ask-models", "--json")).stdout)
    says_of = {one["name"]: one["says"] for one in found["findings"]}
    assert "system_role" in says_of["model own, refused parts"]


TOOL_CALL, LONG, ROLES = "tool call", "long prompt", "order of messages"
LACKING = (
    (servers.able, {}, ""),
    (servers.without_parser, {TOOL_CALL: "wrong", "two calls at once": "note"}, "as text"),
    (servers.one_at_a_time, {"two calls at once": "note"}, "one call at a time"),
    (servers.in_one_piece, {"stream": "note"}, "one piece"),
    (servers.small_window, {LONG: "wrong"}, "too long"),
    (servers.cuts_silently, {LONG: "wrong"}, "beginning"),
    (servers.refuses_orders, {ROLES: "wrong"}, "refuses the order"),
    (servers.without_tools, {TOOL_CALL: "wrong", "two calls at once": "note"}, "takes no tools."),  # that is learned
)
"""Servers, how bad it is that they lack something, and words of it."""


async def test_doctor_tries_all_that_jobs_and_answers_need(service, port):
    for answer, lacks, words in LACKING:
        async with ScriptedProvider(answer, port=port):
            done = await asyncio.to_thread(service.run, "doctor", "--ask-models", "--json")
        found = [one for one in json.loads(done.stdout)["findings"] if one["name"].startswith("agent model")]
        levels = {one["name"].partition(", ")[2]: one["level"] for one in found if one["level"] != "ok"}
        assert levels == lacks, answer.__name__
        assert len(found) == 6
        assert not lacks or any(words in one["says"] and one["level"] != "ok" for one in found), answer.__name__
        assert all(one["mend"] for one in found if one["level"] == "wrong")
