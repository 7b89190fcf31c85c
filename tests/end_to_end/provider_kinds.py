# ruff: noqa: RUF001  (DeepSeek's tokens have that letter)
"""A running service and a provider that sends any bytes that a test gives it, for the agent and the assistant."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

from tests.end_to_end.talk import get_job, job_events, message_url, question
from tests.fakes.provider import Call, Failure, Reply
from tests.service_process import DOCS, Service, service_in, write_docs

QUESTION = "How do I install Kite?"
Answer = Reply | Failure


def events(*documents: object, done: bool = True) -> bytes:
    """A stream of OpenAI's protocol, of chunks as they are given."""
    lines = [f"data: {json.dumps(document)}\n\n" for document in documents]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(finish: object = None, **fields: object) -> dict[str, Any]:
    """A chunk with this delta."""
    return {"model": "own-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def raw(body: bytes, content_type: str = "text/event-stream") -> Failure:
    """An answer with status 200 and this body."""
    return Failure(200, body=body, headers={"content-type": content_type})


def stream(*documents: object, done: bool = True) -> Failure:
    return raw(events(*documents, done=done))


def calling(*pieces: object, finish: object = "tool_calls") -> Failure:
    """A reply whose chunks have these pieces of tool calls."""
    return stream(*(delta(tool_calls=[piece]) for piece in pieces), delta(finish))


def says(text: str) -> Failure:
    return stream(delta(content=text), delta("stop"))


def call(name: str, **arguments: object) -> Call:
    return Call(name, (json.dumps(arguments),))


def finishing(summary: str = "Nothing to do.") -> Reply:
    """The reply that ends a job."""
    return Reply((), (call("finish", title="Look", summary=summary),))


def piece(index: object, name: object = None, arguments: object = None, call_id: object = None) -> dict[str, Any]:
    """A piece of a call, with the fields that are given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    places = (("index", index), ("id", call_id), ("function", function))
    return {key: value for key, value in places if value is not None}


def two(name: str, first: dict[str, Any], second: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Framings of two calls of a tool, which people have reported."""
    one, other = json.dumps(first), json.dumps(second)
    half, rest = one[:5], one[5:]
    return {
        "index 0, no ids (smolagents#1958)": [piece(0, name, one), piece(0, name, other)],
        "index 0, no ids, in pieces": [piece(0, name, half), piece(0, None, rest), piece(0, name, other)],
        "no index, no ids": [piece(None, name, one), piece(None, name, other)],
        "no index, names again": [piece(None, name, half), piece(None, name, rest), piece(None, name, other)],
        "index 0, an id each": [piece(0, name, one, "a"), piece(0, name, other, "b")],
        "an id for each piece": [piece(0, name, half, "a"), piece(0, None, rest, "b"), piece(1, name, other, "c")],
        "all arguments so far": [piece(0, name, half), piece(0, None, one), piece(1, name, other)],
        "arguments are objects (llama.cpp#20198)": [piece(0, name, first), piece(1, name, second)],
        "a string of a string": [piece(0, name, json.dumps(one)), piece(1, name, other)],
        "an empty object, then pieces": [
            piece(0, name, {}),
            piece(0, None, half),
            piece(0, None, rest),
            piece(1, name, other),
        ],
        "index is a string, id a number": [piece("0", name, one, 7), piece("1", name, other, 8)],
        "beside the id": [
            {"index": 0, "name": name, "arguments": one},
            {"index": 1, "name": name, "parameters": second},
        ],
    }


def forms(name: str, **arguments: str) -> dict[str, str]:
    """A call as families of models write it where their server has no parser."""
    (key, value), *_ = arguments.items()
    document = json.dumps({"name": name, "arguments": arguments})
    return {
        "Hermes (usestrix/strix#520)": f"<tool_call>\n{document}\n</tool_call>",
        "Llama": f"<function={name}>{json.dumps(arguments)}</function>",
        "Qwen coder": f"<tool_call><function={name}><parameter={key}>\n{value}\n</parameter></function></tool_call>",
        "Mistral": f"[TOOL_CALLS][{document}]",
        "Kimi": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>"
        f"{json.dumps(arguments)}<|tool_call_end|><|tool_calls_section_end|>",
        "DeepSeek": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n"
        f"{json.dumps(arguments)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "gpt-oss": f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{json.dumps(arguments)}<|call|>",
        "bare": document,
    }


@contextmanager
def kinds_service(folder: Path, port: int, docs: Mapping[str, str] = DOCS, **settings: str) -> Iterator[Service]:
    """A service with one model of an own server for jobs and answers."""
    environment = {
        "DOCSMITH_ASSISTANT__PLANNER": "off",
        "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
        "DOCSMITH_ASSISTANT__MODEL": "own",
        "DOCSMITH_AGENT__MODEL": "own",
        "DOCSMITH_MODELS__OWN__MODEL": "openai/own",
        "DOCSMITH_MODELS__OWN__API_BASE": f"http://127.0.0.1:{port}/v1",
        "DOCSMITH_MODELS__OWN__INPUT_USD_PER_MILLION_TOKENS": "1",
        "DOCSMITH_MODELS__OWN__OUTPUT_USD_PER_MILLION_TOKENS": "1",
        **{f"DOCSMITH_{name}": value for name, value in settings.items()},
    }
    with service_in(folder, environment) as service:
        service.set_up(write_docs(folder / "docs", docs))
        service.start()
        yield service


class Done(Struct):
    """A job that has ended, or waits."""

    view: dict[str, Any]
    events: list[dict[str, Any]]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were carried out."""
        return [event["name"] for event in self.events if event["type"] == "tool-returned"]

    @property
    def has_waited(self) -> bool:
        return any(event["type"] == "job-waiting" for event in self.events)

    @property
    def failure(self) -> dict[str, Any]:
        return self.view["failure"] or {}


async def run_job(http: aiohttp.ClientSession, service: Service, prompt: str = "Look at it.") -> Done:
    """Give a job and wait for its end, or for its first wait."""
    url = f"{service.url}/v2/agent/{service.project_id}/job"
    async with http.post(url, json={"prompt": prompt}, headers=service.admin) as response:
        assert response.status == 201, await response.text()
        job_id = (await response.json())["id"]
    found = await job_events(http, service, job_id, until="job-waiting")
    return Done(await get_job(http, service, job_id), found)


class Answered(Struct):
    text: str
    error: str = ""
    usage: dict[str, Any] = {}


async def ask_v1(http: aiohttp.ClientSession, service: Service, text: str = QUESTION) -> Answered:
    """The answer of version 1, lines of the data stream."""
    async with http.post(message_url(service, 1), json=question(text), headers=service.assistant) as response:
        assert response.status == 200, await response.text()
        lines = (await response.text()).split("\n")
    found = [(line[:1], json.loads(line[2:])) for line in lines if line[1:2] == ":"]
    return Answered(
        "".join(value for code, value in found if code == "0"),
        next((value for code, value in found if code == "3"), ""),
        next((value.get("usage") or {} for code, value in found if code == "d"), {}),
    )


async def ask_v2(http: aiohttp.ClientSession, service: Service, text: str = QUESTION) -> Answered:
    """The answer of version 2, server-sent events."""
    async with http.post(message_url(service), json=question(text), headers=service.assistant) as response:
        assert response.status == 200, await response.text()
        lines = (await response.text()).split("\n")
    found = [json.loads(line[5:]) for line in lines if line.startswith("data:") and line != "data: [DONE]"]
    return Answered(
        "".join(chunk["delta"] for chunk in found if chunk["type"] == "text-delta"),
        next((chunk["errorText"] for chunk in found if chunk["type"] == "error"), ""),
        next((chunk["messageMetadata"] for chunk in found if chunk["type"] == "finish"), {}),
    )


ASK = {1: ask_v1, 2: ask_v2}
