"""The API's own description: whole, valid, and shown to people."""

import importlib
import json
import pkgutil
import re

import msgspec
import pytest
from aiohttp import web
from openapi_spec_validator import OpenAPIV31SpecValidator

import service.web
from service.web.description import NOT_OF_THE_API, OPERATIONS, description
from service.web.errors import EXPLAINED
from service.web.openapi import common_errors


async def test_the_description_is_valid_and_says_what_programs_need(service, http):
    async with http.get(service.url + "/openapi.json") as response:
        assert response.status == 200
        document = await response.json()
        tag = response.headers["ETag"]
    OpenAPIV31SpecValidator(document).validate()
    assert document == json.loads(json.dumps(description()))
    async with http.get(service.url + "/openapi.json", headers={"If-None-Match": tag}) as response:
        assert response.status == 304
    named = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(named) == len(set(named))


async def test_every_operation_of_the_description_is_served(service, http):
    for operation in OPERATIONS:
        path = operation.path.format(projectId="p", id="i", domain="d", chatId="c", threadId="t")
        async with http.request(operation.method, service.url + path, json={}) as response:
            expected = 401 if operation.key else 200
            assert response.status == expected, (operation.method, path, await response.text())


def test_every_error_of_the_description_has_a_page():
    codes = {code for operation in OPERATIONS for codes in common_errors(operation).values() for code in codes}
    assert codes <= set(EXPLAINED)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_examples_of_bodies_are_accepted_by_their_type(operation):
    for example in operation.body_examples.values():
        msgspec.json.decode(json.dumps(example), type=operation.body)
    for answer in operation.answers.values():
        if answer.type is not None and answer.example is not None:
            msgspec.json.decode(json.dumps(answer.example), type=answer.type)


def test_every_route_is_described_or_is_no_part_of_the_api():
    served = set()
    for module in pkgutil.iter_modules(service.web.__path__, "service.web."):
        routes = getattr(importlib.import_module(module.name), "routes", None)
        if isinstance(routes, web.RouteTableDef):
            served |= {(route.method, re.sub(r":[^}]*}", "}", route.path)) for route in routes}
    described = {(operation.method, operation.path) for operation in OPERATIONS}
    assert described <= served
    rest = {path for _, path in served - described}
    assert {path for path in rest if not path.startswith(NOT_OF_THE_API)} == set()


async def test_people_read_the_description_without_the_network(service, http):
    async with http.get(service.url + "/docs") as response:
        assert response.status == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        page = await response.text()
    for operation in OPERATIONS:
        assert f'id="{operation.id}"' in page
        assert operation.path in page
    assert "<script" not in page
    assert "//cdn" not in page
