"""The API's own description (OpenAPI 3.1.1), made from the structs that decode requests and encode answers. Pure.

An ``Operation`` says of one route what a caller needs to know; ``document`` puts them together. The schemas come from
the types themselves, so they cannot drift from what is read and written.

OpenAPI 3.1 has no word for streams: of ``text/event-stream`` the schema is that of one event, whose ``data`` is JSON
by ``contentSchema`` (what 3.2 calls ``itemSchema``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from service.web.api.description.operations import Answer, Notice, Operation, Parameter, SchemaOf, Tag
from service.web.http.access.scopes import scope_of_route
from service.web.http.problems import TITLES, ProblemDetails
from service.web.pages.manual import explained_errors

SECURITY = {
    "admin": {
        "type": "http",
        "scheme": "bearer",
        "description": "An admin key, `docsmith_…`. It belongs to an organization, and never in a browser.",
    },
    "assistant": {
        "type": "http",
        "scheme": "bearer",
        "description": "An assistant key, `docsmith_dsc_…`. It belongs to one or more sites, and may be in a page."
        " A public site needs none.",
    },
}

ERROR_TEXTS = {
    400: "The request cannot be read, or does not fit.",
    401: "The key is missing, or not valid.",
    403: "The key may not do this.",
    404: "Not found, or not visible to this key: these are answered alike.",
    405: "The address does not support that method; `Allow` lists those that it supports.",
    408: "The body did not arrive in time.",
    409: "It does not fit the present state.",
    413: "The body is too large.",
    415: "The body is not JSON by its content type.",
    422: "It was understood and cannot be done.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    431: "The request line or a header is too long.",
    500: "Something went wrong on our side.",
    503: "It cannot be done right now; try again.",
}


class Header(Struct, frozen=True):
    """A field of an answer's head."""

    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    is_always_sent: bool = True
    """With the answers that name it."""


HEADERS: Mapping[str, Header] = {
    "X-Request-Id": Header("The request's id: the caller's own, if it sent a sane one."),
    "WWW-Authenticate": Header("How to show a key.", {"enum": ["Bearer", 'Bearer error="invalid_token"']}),
    "Retry-After": Header(
        "Seconds to wait.", {"type": "integer", "minimum": 1, "examples": [30]}, is_always_sent=False
    ),
    "RateLimit-Policy": Header(
        "The limit that is closest to its end, with its quota `q` and its window `w` in seconds; left out where no"
        " limit applies.",
        {"type": "string", "examples": ['"project";q=100;w=3600']},
        is_always_sent=False,
    ),
    "RateLimit": Header(
        "The rest of the quota, `r`, and the seconds until there is more, `t`.",
        {"type": "string", "examples": ['"project";r=99;t=3600']},
        is_always_sent=False,
    ),
    "Deprecation": Header(
        "Since when this is deprecated (RFC 9745): `@` and the seconds since 1970.",
        {"type": "string", "pattern": "^@[0-9]+$", "examples": ["@1795219200"]},
    ),
    "Sunset": Header(
        "From when on it may be gone (RFC 8594), where the settings say so.",
        {"type": "string", "examples": ["Tue, 01 Jun 2027 00:00:00 GMT"]},
        is_always_sent=False,
    ),
    "Link": Header(
        'The address of the successor, as `rel="successor-version"`.',
        {"type": "string", "pattern": 'rel="successor-version"$'},
    ),
    "Location": Header("The job's address.", {"type": "string", "format": "uri-reference"}),
    "ETag": Header(
        "The entity tag of this answer: send it back as `If-None-Match`.",
        {"type": "string", "pattern": '^(W/)?"[!#-~]*"$', "examples": ['W/"0f3a"']},
    ),
    "X-Thread-Id": Header("The thread's id: send it back as `threadId`, and the conversation goes on."),
    "X-Thread-Key": Header(
        "Only for a new thread, and only here: a secret that proves who owns the thread.", is_always_sent=False
    ),
    "X-Message-Id": Header("The reply's id, which feedback names; the same as at the start of its stream."),
    "X-Session-Id": Header("The job's id."),
    "X-Branch-Name": Header("The branch that it works on."),
    "X-Model": Header("The model that does the work; for the builtin one also how to configure another."),
    "x-vercel-ai-ui-message-stream": Header("The version of the stream's protocol.", {"const": "v1"}),
    "x-vercel-ai-data-stream": Header("The version of the stream's protocol.", {"const": "v1"}),
    "Content-Disposition": Header("A file name, for CSV and JSON lines.", is_always_sent=False),
}


def common_errors(operation: Operation) -> dict[int, tuple[str, ...]]:
    """Return the errors that any such operation may answer: for its key, its body, its limits, and for our own
    failures.
    """
    errors: dict[int, tuple[str, ...]] = {431: ("head_too_large",), 500: ("internal",)}
    errors[503] = ("unavailable", "outcome_unknown", "too_many_connections")
    if operation.key is not None:
        errors[401] = ("unauthorized", "key_expired")
        errors[403] = ("wrong_key_kind", "forbidden", "address_not_allowed", "origin_not_allowed")
        if operation.key == "admin":
            errors[403] += ("scope_not_allowed",)
    if operation.body is not None:
        errors[400] = ("invalid_request", "invalid_json")
        errors[408] = ("body_too_slow",)
        errors[413] = ("body_too_large",)
        errors[415] = ("unsupported_media_type",)
    elif operation.parameters:
        errors[400] = ("invalid_request",)
    if "{projectId}" in operation.path:
        errors[404] = ("project_not_found", "not_found")
    elif "{domain}" in operation.path:
        errors[404] = ("domain_not_found", "not_found")
    if operation.limited:
        errors[429] = ("rate_limited",)
    for status, codes in operation.errors.items():
        errors[status] = tuple(dict.fromkeys((*errors.get(status, ()), *codes)))
    return dict(sorted(errors.items()))


def document(
    operations: Sequence[Operation],
    *,
    version: str,
    title: str,
    description: str,
    tags: Sequence[Tag] = (),
    notices: Sequence[Notice] = (),
    server: str = "/",
) -> dict[str, Any]:
    """Return the whole description. A struct has one schema, wherever it is used; two structs of one name get longer
    names.
    """
    types = _types_of(operations, notices)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = {id(kind): _tidied(schema) for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, operations, schema_of)
    errors = {
        code: status for operation in operations for status, codes in common_errors(operation).items() for code in codes
    }
    return {
        "openapi": "3.1.1",
        "info": {
            "title": title,
            "version": version,
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server}],
        "tags": [{"name": tag.name, "description": tag.description} for tag in tags],
        "paths": paths,
        "webhooks": {notice.name: {"post": _notice(notice, schema_of)} for notice in notices},
        "components": {
            "securitySchemes": SECURITY,
            "schemas": {name: _tidied(schema) for name, schema in sorted(components.items())},
            "headers": {name: _header(header) for name, header in sorted(HEADERS.items())},
            "examples": {code: _example(code, status) for code, status in sorted(errors.items())},
        },
    }


def _types_of(operations: Sequence[Operation], notices: Sequence[Notice]) -> list[SchemaOf]:
    found: dict[int, SchemaOf] = {id(ProblemDetails): ProblemDetails}
    found |= {id(notice.body): notice.body for notice in notices}
    for operation in operations:
        kinds = [answer.type for answer in operation.answers.values()]
        for kind in (
            operation.body,
            *kinds,
            *(parameter.type for parameter in operation.all_parameters),
        ):
            if kind is not None:
                found[id(kind)] = kind
    return list(found.values())


def _tidied(schema: Any) -> Any:
    """As JSON Schema says it best: whole numbers as integers, and no null as what is meant when a field is left out."""
    if isinstance(schema, list | tuple):
        return [_tidied(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _tidied(value) for name, value in schema.items()}
    if made.get("type") == "number" and made.get("multipleOf") == 1:
        del made["multipleOf"]
        made["type"] = "integer"
    if made.keys() == {"enum"} and len(made["enum"]) == 1:
        made["description"] = f"Always `{made['enum'][0]}`."
    if "default" in made and made["default"] is None and "anyOf" in made:
        del made["default"]
    return made


def _operation(operation: Operation, operations: Sequence[Operation], schema_of: Mapping[int, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": operation.id, "tags": [operation.tag], "summary": operation.summary}
    if operation.description:
        made["description"] = operation.description
    roles = [scope_of_route(operation.method, operation.path)] if operation.key == "admin" else []
    made["security"] = [{operation.key: roles}] if operation.key else []
    if operation.key == "assistant":
        made["security"].append({})  # for public sites; last, since importers take the first
    if operation.is_deprecated:
        made["deprecated"] = True
    if operation.aliases:
        made["x-aliases"] = list(operation.aliases)
    if parameters := operation.all_parameters:
        made["parameters"] = [_parameter(parameter, schema_of) for parameter in parameters]
    if operation.body is not None:
        content: dict[str, Any] = {"schema": schema_of[id(operation.body)]}
        if operation.body_examples:
            content["examples"] = {name: {"value": value} for name, value in operation.body_examples.items()}
        made["requestBody"] = {
            "required": not operation.is_body_optional,
            "content": {"application/json": content},
        }
    if operation.file:
        content = {"schema": {"type": "string", "format": "binary"}, "examples": {"file": {"value": "PK…"}}}
        made["requestBody"] = {"required": True, "content": {operation.file: content}}
    made["responses"] = {
        **{
            str(status): _answer(answer, operation, operations, schema_of)
            for status, answer in operation.answers.items()
        },
        **{
            str(status): _error(status, codes, operation, schema_of[id(ProblemDetails)])
            for status, codes in common_errors(operation).items()
            if status not in operation.answers
        },
    }
    return made


def _parameter(parameter: Parameter, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.description,
        "required": parameter.required or parameter.where == "path",
        "schema": schema_of[id(parameter.type)],
    }
    if parameter.example is not None:
        made["example"] = parameter.example
    return made


def _answer(
    answer: Answer, operation: Operation, operations: Sequence[Operation], schema_of: Mapping[int, Any]
) -> dict[str, Any]:
    headers = ["X-Request-Id", *answer.headers]
    if operation.is_deprecated:
        headers += ["Deprecation", "Sunset", "Link"]
    if operation.limited:
        headers += ["RateLimit-Policy", "RateLimit"]
    made: dict[str, Any] = {"description": answer.description, "headers": _headers(headers)}
    if answer.media_type == "text/event-stream":
        event = _event(schema_of[id(answer.type)])
        made["content"] = {answer.media_type: {"schema": event, "x-stream-example": answer.example}}
    elif answer.type is not None or answer.media_type != "application/json":
        schema = {"type": "string"} if answer.type is None else schema_of[id(answer.type)]
        made["content"] = {answer.media_type: {"schema": schema, "example": answer.example}}
        for kind, example in answer.also.items():
            made["content"][kind] = {"schema": {"type": "string"}, "example": example}
    if answer.leads_to:
        made["links"] = {name: _link(name, where, operations) for name, where in answer.leads_to.items()}
    return made


def _event(data: Any) -> dict[str, Any]:
    """One server-sent event."""
    return {
        "type": "object",
        "required": ["data"],
        "properties": {
            "id": {"type": "string", "description": "The event's position, where it can be gone on from."},
            "event": {"type": "string", "description": "The type, where the stream names types."},
            "data": {
                "type": "string",
                "description": "JSON, as the content schema says; where the protocol ends with it, `[DONE]`.",
                "anyOf": [
                    {"const": "[DONE]"},
                    {"contentMediaType": "application/json", "contentSchema": data},
                ],
            },
        },
    }


def _link(name: str, where: str, operations: Sequence[Operation]) -> dict[str, Any]:
    target = next(operation for operation in operations if operation.id == name)
    parameters = {one.name: f"$request.path.{one.name}" for one in target.path_parameters}
    return {"operationId": name, "parameters": {**parameters, "id": where}, "description": target.summary + "."}


def _headers(names: Sequence[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}


def _header(header: Header) -> dict[str, Any]:
    made: dict[str, Any] = {"description": header.description}
    if header.is_always_sent:
        made["required"] = True
    return {**made, "schema": dict(header.schema)}


def _error(status: int, codes: Sequence[str], operation: Operation, schema: Any) -> dict[str, Any]:
    headers = ["X-Request-Id"]
    if operation.is_deprecated:
        headers += ["Deprecation", "Sunset", "Link"]
    if status == 401:
        headers.append("WWW-Authenticate")
    if status == 429:
        headers += ["RateLimit-Policy", "RateLimit"]
    if status in (429, 503):
        headers.append("Retry-After")
    names = ", ".join(f"[`{code}`](/docs/errors/{code})" for code in codes)
    return {
        "description": f"{ERROR_TEXTS[status]} `code` is one of: {names}."
        if len(codes) > 1
        else f"{ERROR_TEXTS[status]} `code` is {names}.",
        "headers": _headers(headers),
        "content": {
            "application/problem+json": {
                "schema": schema,
                "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
            }
        },
        "x-codes": list(codes),
    }


def _example(code: str, status: int) -> dict[str, Any]:
    explained = explained_errors()[code]
    sentence = explained.title + "."
    value = ProblemDetails(
        type=f"/docs/errors/{code}",
        title=TITLES[status],
        status=status,
        detail=sentence,
        code=code,
        error=sentence,
        request_id="req_5f1c0a97d2e84b36a1c0de42",
    )
    return {"summary": explained.title, "value": msgspec.to_builtins(value)}


def _notice(notice: Notice, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    return {
        "operationId": "told" + "".join(part.title() for part in notice.name.split(".")),
        "tags": ["Webhooks"],
        "summary": notice.summary,
        "description": notice.description,
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
            for name, text in notice.headers.items()
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema_of[id(notice.body)], "example": notice.example}},
        },
        "responses": {status: {"description": text} for status, text in notice.answers.items()},
    }
