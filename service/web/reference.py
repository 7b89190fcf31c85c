"""The API's description as a document for programs, and as a page for people that works without the network."""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from service.web.description import description
from service.web.pages import html_page

routes = web.RouteTableDef()

MAX_DEPTH = 4
"""Of fields within fields that the page shows."""


class FieldLine(Struct, frozen=True):
    """One row of the page's tables: a field, parameter or header."""

    name: str
    kind: str
    is_required: bool
    text: str


class AnswerLine(Struct, frozen=True):
    status: str
    text: str
    media_type: str
    fields: tuple[FieldLine, ...]
    headers: tuple[FieldLine, ...]
    example: str
    is_error: bool


class OperationView(Struct, frozen=True):
    id: str
    method: str
    path: str
    summary: str
    text: str
    key: str
    is_deprecated: bool
    parameters: tuple[FieldLine, ...]
    body: tuple[FieldLine, ...]
    curl: str
    answers: tuple[AnswerLine, ...]


class Section(Struct, frozen=True):
    name: str
    text: str
    operations: tuple[OperationView, ...]


@routes.get("/openapi.json")
async def show_document(request: web.Request) -> web.Response:
    body, tag = _document()
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)


@routes.get("/docs")
async def show_reference(request: web.Request) -> web.Response:
    text = description()["info"]["description"]
    address = f"{request.scheme}://{request.host}"
    return html_page(request, "reference.html", title="API", text=text, sections=sections(description(), address))


@cache
def _document() -> tuple[bytes, str]:
    body = msgspec.json.encode(description())
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def sections(document: dict[str, Any], address: str) -> list[Section]:
    """The document as the page shows it: by tag, in the document's order."""
    schemas = document["components"]["schemas"]
    return [
        Section(
            tag["name"],
            tag["description"],
            tuple(
                _operation(method, path, operation, schemas, address)
                for path, methods in document["paths"].items()
                for method, operation in methods.items()
                if tag["name"] in operation["tags"]
            ),
        )
        for tag in document["tags"]
    ]


def _operation(
    method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any], address: str
) -> OperationView:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return OperationView(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        text=operation.get("description", ""),
        key=next((name for names in operation["security"] for name in names), ""),
        is_deprecated=operation.get("deprecated", False),
        parameters=tuple(
            FieldLine(
                one["name"],
                f"{one['in']}, {kind_of(one['schema'], schemas)}",
                one["required"],
                one["description"],
            )
            for one in operation.get("parameters", ())
        ),
        body=tuple(fields(content.get("schema", {}), schemas)),
        curl=_curl(method, path, operation, content, address),
        answers=tuple(_answer(status, answer, schemas) for status, answer in operation["responses"].items()),
    )


def _answer(status: str, answer: dict[str, Any], schemas: dict[str, Any]) -> AnswerLine:
    contents: dict[str, dict[str, Any]] = answer.get("content", {})
    media_type = next(iter(contents), "")
    content = contents.get(media_type, {})
    is_error = media_type == "application/problem+json"
    example = content.get("example", "")
    return AnswerLine(
        status=status,
        text=answer["description"],
        media_type=media_type,
        fields=() if is_error else tuple(fields(content.get("schema", {}), schemas)),
        headers=()
        if is_error
        else tuple(
            FieldLine(name, "header", False, header["description"]) for name, header in answer["headers"].items()
        ),
        example=example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False),
        is_error=is_error,
    )


def fields(schema: dict[str, Any], schemas: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[FieldLine]:
    """The fields of an object, those within them too, by their paths: ``messages[].role``."""
    schema = _resolved(schema, schemas)
    if schema.get("type") == "array":
        yield from fields(schema["items"], schemas, f"{prefix}[]", depth)
        return
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield FieldLine(path, kind_of(field, schemas), name in required, field.get("description", ""))
        if depth < MAX_DEPTH:
            for option in field.get("anyOf", (field,)):
                yield from fields(option, schemas, path, depth + 1)


def kind_of(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A schema in few words: ``string, 1 … 200 characters, or null``."""
    schema = _resolved(schema, schemas)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(option, schemas) for option in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list{_range(schema, 'minItems', 'maxItems', '')} of {kind_of(schema.get('items', {}), schemas)}"
    if kind == "string":
        return kind + _range(schema, "minLength", "maxLength", " characters")
    return kind + _range(schema, "minimum", "maximum", "")


def _range(schema: dict[str, Any], low: str, high: str, unit: str) -> str:
    match schema.get(low), schema.get(high):
        case None | 0, None:
            return ""
        case None | 0, most:
            return f", up to {most:,}{unit}"
        case least, None:
            return f", from {least:,}{unit}"
        case least, most:
            return f", {least:,} … {most:,}{unit}"
    return ""


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema


def _curl(method: str, path: str, operation: dict[str, Any], content: dict[str, Any], address: str) -> str:
    """A command that works once its variables are set."""
    names = {"{projectId}": "$PROJECT", "{domain}": "$DOMAIN", "{id}": "$JOB"}
    for name, variable in names.items():
        path = path.replace(name, variable)
    lines: list[str] = [f"curl -sSN {address}{path}"]
    if method == "post" and not content:
        lines[0] += " -X POST"
    for names_of in operation["security"]:
        lines += [f'  -H "Authorization: Bearer ${name.upper()}_KEY"' for name in names_of]
    for example in content.get("examples", {}).values():
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{json.dumps(example['value'], ensure_ascii=False)}'"]
        break
    return " \\\n".join(lines)
