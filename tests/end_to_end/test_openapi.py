"""The API's own description: whole, valid, and shown to people."""

import asyncio
import html
import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from aiohttp import web

import service.web
from service.domain.jobs.decider import JobEvent
from service.web.api.description.description import NOT_OF_THE_API, OPERATIONS, TAGS, description
from service.web.api.description.openapi import common_errors
from service.web.pages.manual import explained_errors
from service.wire.job_stream import LIVE_EVENTS, public
from service.wire.ui_messages import CHUNKS, WAITING, UiChunk
from tests.end_to_end.talk import ask, chunks, create_job, job_events, question

OPERATIONS_OF_THE_PAGE = [operation for tag in TAGS for operation in OPERATIONS if operation.tag == tag.name]


async def test_the_description_is_valid_and_says_what_programs_need(service, http):
    from openapi_spec_validator import OpenAPIV31SpecValidator  # it takes seconds, for which each collection would wait

    async with http.get(service.url + "/openapi.json") as response:
        assert response.status == 200
        document = await response.json()
        tag = response.headers["ETag"]
    OpenAPIV31SpecValidator(document).validate()
    assert document == json.loads(json.dumps(description())) | {"servers": [{"url": service.url}]}
    async with http.get(service.url + "/openapi.json", headers={"If-None-Match": tag}) as response:
        assert response.status == 304
    named = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(named) == len(set(named))


async def test_every_operation_of_the_description_is_served(service, http):
    for operation in OPERATIONS:
        path = re.sub(r"{\w+}", "x", operation.path)
        async with http.request(operation.method, service.url + path, json={}) as response:
            expected = 401 if operation.key else 200
            assert response.status == expected, (operation.method, path, await response.text())


def test_every_error_of_the_description_has_a_page():
    codes = {code for operation in OPERATIONS for codes in common_errors(operation).values() for code in codes}
    assert codes <= explained_errors().keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_examples_of_bodies_are_accepted_by_their_type(operation):
    for example in operation.body_examples.values():
        msgspec.json.decode(json.dumps(example), type=operation.body)
    for answer in operation.answers.values():
        if answer.media_type == "text/event-stream":
            for chunk in chunks(answer.example):
                msgspec.convert(chunk, answer.type)
        elif answer.type is not None:
            msgspec.json.decode(json.dumps(answer.example), type=answer.type)
        for example in answer.also.values():
            assert example


def test_every_route_is_described_or_is_no_part_of_the_api():
    served = set()
    for module in pkgutil.walk_packages(service.web.__path__, "service.web."):
        routes = getattr(importlib.import_module(module.name), "routes", None)
        if isinstance(routes, web.RouteTableDef):
            served |= {(route.method, re.sub(r":[^}]*}", "}", route.path)) for route in routes}
    described = {(one.method, path) for one in OPERATIONS for path in (one.path, *one.aliases)}
    assert described <= served
    rest = {path for _, path in served - described}
    assert {path for path in rest if not path.startswith(NOT_OF_THE_API)} == {"/", "/begin"}


def test_each_operation_names_its_key_and_scope():
    for methods in description()["paths"].values():
        for method, operation in methods.items():
            merges = operation["operationId"] == "mergeJob"
            agent = [{"admin": ["read" if method == "get" else "all" if merges else "jobs"]}]
            wants = {"Assistant": [{"assistant": []}, {}], "Agent": agent}.get(operation["tags"][0])
            assert wants is None or operation["security"] == wants, operation["operationId"]


def test_field_has_what_its_schema_has_besides_its_text():
    field = description()["components"]["schemas"]["LiveEvent"]["properties"]["type"]
    assert "job-started" in field["examples"]


def test_every_field_header_and_parameter_is_described():
    document = description()
    for name, schema in document["components"]["schemas"].items():
        assert schema["description"], name
        for field, of_field in schema["properties"].items():
            assert "$ref" in of_field or of_field["description"], (name, field)
    for methods in document["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert content["examples"]
            for status, answer in operation["responses"].items():
                for content in answer.get("content", {}).values():
                    assert {"example", "examples", "x-stream-example"} & set(content), (
                        operation["operationId"],
                        status,
                    )


async def test_streams_have_the_chunks_that_the_description_names(service, http):
    for agent in ("curl/8", "Mozilla/5.0"):
        asked = question("How do I install Kite?", features=["checks"])
        told = await ask(http, service, asked, **{"User-Agent": agent})
        for chunk in told[1:]:
            assert chunk["type"] in CHUNKS
            assert set(chunk) <= {field.encode_name for field in msgspec.structs.fields(UiChunk)}
        assert {chunk["type"] for chunk in told[1:]} >= set(CHUNKS) - {"error", "tool-output-error", WAITING}


def test_every_event_of_a_job_is_described_with_its_fields():
    samples = Path(__file__).parent.parent / "samples" / "events"
    for kind in get_args(JobEvent):
        tag = kind.__struct_config__.tag
        described = set(LIVE_EVENTS[tag][1].split(", "))
        newest = max(samples.glob(f"{tag}.v?.json"))
        told = set(public(msgspec.convert(json.loads(newest.read_text())["value"], kind)))
        assert told - {"type"} <= described, tag
    named = json.loads(json.dumps(description()))["components"]["schemas"]["LiveEvent"]["properties"]["type"]
    assert named["examples"] == list(LIVE_EVENTS)
    assert set(LIVE_EVENTS) == {kind.__struct_config__.tag for kind in get_args(JobEvent)} | {"queue-position"}


async def test_commands_on_the_page_work_when_pasted(service, http, tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("runs the page's commands; install curl to run it")
    told = await ask(http, service, question("How do I install Kite?", id="chat-of-a-page"))
    await ask(http, service, question("What does kite --zorblax do?"))
    webhook = await (
        await http.post(f"{service.url}/v2/webhooks", json={"url": "https://hooks.example/"}, headers=service.admin)
    ).json()
    job = await create_job(http, service, "Make it sing")
    await job_events(http, service, job["id"])
    deliveries = f"{service.url}/v2/webhooks/{webhook['id']}/deliveries"
    listed: list[dict[str, str]] = []
    async with asyncio.timeout(60):
        while not listed:  # it is recorded a moment after the job's end
            listed = (await (await http.get(deliveries, headers=service.admin)).json())["deliveries"]
    delivery = listed[0]
    variables = {
        "KEY": service.cli("key", "create", "--kind", "assistant", "--domain", service.domain)["id"],
        "WEBHOOK": webhook["id"],
        "DELIVERY": delivery["id"],
        "PROJECT": service.project_id,
        "DOMAIN": service.domain,
        "JOB": job["id"],
        "THREAD": told[0]["X-Thread-Id"],
        "MESSAGE": told[1]["messageId"],
        "GAP": (await (await http.get(f"{service.url}/v2/gaps", headers=service.admin)).json())["gaps"][0]["id"],
        "CHAT": "chat-of-a-page",
        "NUMBER": "1",
        "PAGE": "install.md",
        "PERSON": service.cli(
            "person", "add", "p@example.com", "--organization", service.organization_id, "--role", "editor"
        )["id"],
    }
    (tmp_path / "docs.zip").write_bytes(b"no archive: the service of all tests keeps its one project")
    keys = {"Takes an admin key": service.admin_key, "Takes an assistant key": service.assistant_key}
    unexpected = []
    for operation in OPERATIONS_OF_THE_PAGE:
        async with http.get(f"{service.url}/docs/{operation.id}") as response:
            page = await response.text()
        command = re.search(r'<pre class="sample command-text"[^>]*><code>(.*?)</code></pre>', page, re.DOTALL)[1]
        variables["DOCSMITH_KEY"] = next((key for words, key in keys.items() if words in page), "")
        script = html.unescape(command) + " -o answer -w '%{http_code}'"
        done = await asyncio.create_subprocess_exec(
            "sh", "-euc", script, env=os.environ | variables, cwd=tmp_path, stdout=subprocess.PIPE
        )
        status, _ = await done.communicate()
        # A job that goes on may end before it is cancelled; no reply is under way.
        expected = {
            "cancelJob": (200, 409),
            "retryJob": (200, 409),
            "mergeJob": (200, 409),
            "closeJob": (200, 409),
            "createReaderToken": (200, 409),
            "createProject": (201, 503),  # its repository is elsewhere
            "uploadProject": (400,),
            "uploadVersion": (400,),
            "updateProject": (200, 400),
            "resumeReply": (204,),
            "resumeReplyV1": (204,),
        }.get(operation.id, (min(operation.answers),))
        if int(status) not in expected:
            unexpected.append((operation.id, status, (tmp_path / "answer").read_text()))
    assert unexpected == []


async def test_people_read_the_description_without_the_network(service, http):
    async with http.get(service.url + "/docs") as response:
        assert response.status == 200
        assert "default-src 'none'; script-src 'self'" in response.headers["Content-Security-Policy"]
        page = await response.text()
    for operation in OPERATIONS:
        assert f'id="{operation.id}"' in page
        assert operation.path in page
    assert re.findall(r'<script src="(?!\./assets/)', page) == []
    assert "//cdn" not in page


async def test_search_of_the_reference_finds_all_words(service, http):
    async with http.get(f"{service.url}/docs?q=cancel+JOB") as response:
        page = await response.text()
    assert re.findall(r'<li id="(\w+)">', page)[0] == "cancelJob"
    assert 'id="search"' not in page
    async with http.get(f"{service.url}/docs?q=%3Cb%3Enothing") as response:
        page = await response.text()
    assert "No operation has all of these words" in page
    assert "<b>nothing" not in page


async def test_operation_without_a_page_is_not_found(service, http):
    async with http.get(f"{service.url}/docs/nothing") as response:
        assert response.status == 404


async def test_operation_page_shows_a_key_variable_and_keeps_no_key(service, http):
    async with http.get(f"{service.url}/docs/createJob") as response:
        page = await response.text()
    assert "Authorization: Bearer $DOCSMITH_KEY" in page
    key = re.search(r'<input type="password"[^>]*>', page)[0]
    assert 'autocomplete="off"' in key
    assert "value=" not in key
    assert ' method="' not in re.search(r'<form class="try[^>]*>', page)[0]
