"""The API's own description (OpenAPI 3.1.1), made from the structs that decode requests and encode answers. Pure.

An ``Operation`` says of one route what a caller needs to know; ``document`` puts them together. The schemas come from
the types themselves, so they cannot drift from what is read and written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from service.web.problems import ProblemDetails

SchemaOf = Any
"""A type that msgspec can describe."""

KeyName = Literal["admin", "assistant"]

SECURITY = {
    "admin": {
        "type": "http",
        "scheme": "bearer",
        "description": "An admin key, `docsmith_…`. It belongs to an organization, and never in a browser.",
    },
    "assistant": {
        "type": "http",
        "scheme": "bearer",
        "description": "An assistant key, `docsmith_dsc_…`. It belongs to one or more sites, and may be in a page.",
    },
}

ERROR_TEXTS = {
    400: "The request cannot be read, or does not fit.",
    401: "There is no key, or none in force.",
    403: "The key may not do this.",
    404: "There is no such thing, or it is somebody else's: these are answered alike.",
    405: "The address does not take that method; `Allow` says which it takes.",
    409: "It does not fit the present state.",
    413: "The body is too large.",
    415: "The body is not JSON by its content type.",
    422: "It was understood and cannot be done.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    500: "Something went wrong on our side.",
    503: "It cannot be done right now; try again.",
}

REQUEST_ID_HEADER = "The request's id: the caller's own, if it sent a sane one."


class Parameter(Struct, frozen=True):
    name: str
    description: str
    type: SchemaOf = str
    where: Literal["path", "query", "header"] = "query"
    required: bool = False
    example: Any = None


class Answer(Struct, frozen=True):
    """One answer that is no error."""

    description: str
    type: SchemaOf = None
    """Of its JSON body; None when it has no body, or one that is not JSON."""
    media_type: str = "application/json"
    headers: Mapping[str, str] = {}
    """Name to description."""
    example: Any = None


class Operation(Struct, frozen=True):
    method: Literal["GET", "POST"]
    path: str
    id: str
    """A name for the functions of generated clients."""
    tag: str
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    key: KeyName | None = None
    body: SchemaOf = None
    body_examples: Mapping[str, Any] = {}
    parameters: Sequence[Parameter] = ()
    errors: Mapping[int, Sequence[str]] = {}
    """Status to codes, besides those that ``common_errors`` adds."""
    deprecated: bool = False
    limited: bool = False
    """Counted by the limits."""


class Tag(Struct, frozen=True):
    name: str
    description: str


def common_errors(operation: Operation) -> dict[int, tuple[str, ...]]:
    """What any such operation may answer: for its key, its body, its limits, and for our own failures."""
    errors: dict[int, tuple[str, ...]] = {500: ("internal",), 503: ("unavailable",)}
    if operation.key is not None:
        errors[401] = ("unauthorized", "key_expired")
        errors[403] = ("wrong_key_kind", "forbidden")
    if operation.body is not None:
        errors[400] = ("invalid_request", "invalid_json")
        errors[413] = ("body_too_large",)
        errors[415] = ("unsupported_media_type",)
    elif any(parameter.where != "path" for parameter in operation.parameters):
        errors[400] = ("invalid_request",)
    if "{projectId}" in operation.path:
        errors[404] = ("project_not_found",)
    elif "{domain}" in operation.path:
        errors[404] = ("domain_not_found",)
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
    server: str = "/",
) -> dict[str, Any]:
    """The whole description. A struct has one schema, whoever uses it; two structs of one name get longer names."""
    types = _types_of(operations)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of)
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
        "components": {"securitySchemes": SECURITY, "schemas": dict(sorted(components.items()))},
    }


def _types_of(operations: Sequence[Operation]) -> list[SchemaOf]:
    found: dict[int, SchemaOf] = {id(ProblemDetails): ProblemDetails}
    for operation in operations:
        kinds = [answer.type for answer in operation.answers.values()]
        for kind in (operation.body, *kinds, *(parameter.type for parameter in operation.parameters)):
            if kind is not None:
                found[id(kind)] = kind
    return list(found.values())


def _operation(operation: Operation, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": operation.id, "tags": [operation.tag], "summary": operation.summary}
    if operation.description:
        made["description"] = operation.description
    made["security"] = [{operation.key: []}] if operation.key else []
    if operation.deprecated:
        made["deprecated"] = True
    if operation.parameters:
        made["parameters"] = [_parameter(parameter, schema_of) for parameter in operation.parameters]
    if operation.body is not None:
        content: dict[str, Any] = {"schema": schema_of[id(operation.body)]}
        if operation.body_examples:
            content["examples"] = {name: {"value": value} for name, value in operation.body_examples.items()}
        made["requestBody"] = {"required": True, "content": {"application/json": content}}
    made["responses"] = {
        **{str(status): _answer(answer, operation, schema_of) for status, answer in operation.answers.items()},
        **{
            str(status): _error(status, codes, schema_of[id(ProblemDetails)])
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


def _answer(answer: Answer, operation: Operation, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    headers = {"X-Request-Id": REQUEST_ID_HEADER, **answer.headers}
    if operation.deprecated:
        headers["Deprecation"] = "Since when this is deprecated (RFC 9745)."
        headers["Link"] = 'What takes over, as `rel="successor-version"`.'
    if operation.limited:
        headers["RateLimit-Policy"] = "The limits that count this request."
        headers["RateLimit"] = "What is left of the limit that is closest to its end."
    made: dict[str, Any] = {
        "description": answer.description,
        "headers": {
            name: {"description": text, "schema": {"type": "string"}} for name, text in sorted(headers.items())
        },
    }
    if answer.type is not None or answer.media_type != "application/json":
        schema = {"type": "string"} if answer.type is None else schema_of[id(answer.type)]
        content: dict[str, Any] = {"schema": schema}
        if answer.example is not None:
            content["example"] = answer.example
        made["content"] = {answer.media_type: content}
    return made


def _error(status: int, codes: Sequence[str], schema: Any) -> dict[str, Any]:
    headers = {"X-Request-Id": {"description": REQUEST_ID_HEADER, "schema": {"type": "string"}}}
    if status == 401:
        headers["WWW-Authenticate"] = {"description": "`Bearer`.", "schema": {"type": "string"}}
    if status in (429, 503):
        headers["Retry-After"] = {"description": "Seconds to wait.", "schema": {"type": "string"}}
    names = ", ".join(f"[`{code}`](/docs/errors/{code})" for code in codes)
    return {
        "description": f"{ERROR_TEXTS[status]} `code` is one of: {names}."
        if len(codes) > 1
        else f"{ERROR_TEXTS[status]} `code` is {names}.",
        "headers": headers,
        "content": {"application/problem+json": {"schema": schema}},
    }
