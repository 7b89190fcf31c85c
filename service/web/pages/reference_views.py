"""The API's description as people read it: operations with their fields, a command for each, and what to try."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote_plus

from msgspec import Struct

MAX_DEPTH = 4
"""Levels of nested fields that the page shows."""

VARIABLES: Mapping[str, tuple[str, str]] = {
    "projectId": ("PROJECT", "a project's id: docsmith project list"),
    "domain": ("DOMAIN", "the name of its site"),
    "id": ("JOB", "a job's id, from the answer to its request"),
    "threadId": ("THREAD", "a thread's id, from an answer's X-Thread-Id"),
    "messageId": ("MESSAGE", "a reply's id, from the start of its stream"),
    "number": ("NUMBER", "the number of a citation in an answer"),
    "keyId": ("KEY", "a key's id, from the list of keys"),
    "webhookId": ("WEBHOOK", "a webhook's id, from the list of webhooks"),
    "deliveryId": ("DELIVERY", "a delivery's id, from the webhook's list of deliveries"),
    "chatId": ("CHAT", "the id that a chat's requests carry"),
    "personId": ("PERSON", "a person's id, from the list of people"),
    "gapId": ("GAP", "a gap's id, from the list of gaps"),
    "path": ("PAGE", "a page's path, from a search result"),
}
"""Placeholders of the page's commands, by their names in the address or the body: variable and meaning."""
_ARCHIVE = ("application/octet-stream", "docs.zip")
FILES = {"uploadProject": _ARCHIVE, "uploadVersion": _ARCHIVE}
"""Operations whose body is a file: its type, and a name for it. They are not tried from their page."""
KEY = "DOCSMITH_KEY"
"""The variable of the key in the page's commands."""
KEY_KINDS = {
    "admin": "docsmith key create --kind admin",
    "assistant": "docsmith key create --kind assistant --domain SITE",
}


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
    aliases: tuple[str, ...]
    parameters: tuple[FieldLine, ...]
    body: tuple[FieldLine, ...]
    curl: str
    """Empty for requests that the service sends itself."""
    sent: str
    """An example of a request that the service sends."""
    answers: tuple[AnswerLine, ...]
    section: str
    inputs: tuple[FieldLine, ...]
    """Parameters that a person may fill in to try it; the kind of each is where it stands: ``path`` or ``query``."""
    example: str
    """The JSON of a body, to begin with; empty where there is none."""
    may_be_tried: bool
    """It is answered by this service, and takes JSON or nothing."""

    @property
    def searched(self) -> str:
        """Return the words that it is found by."""
        names = (line.name for line in (*self.parameters, *self.body))
        return " ".join((self.summary, self.id, self.path, self.text, *names)).casefold()


class Section(Struct, frozen=True):
    name: str
    text: str
    operations: tuple[OperationView, ...]


def sections(document: dict[str, Any], address: str) -> list[Section]:
    """Return the document as the page shows it: by tag, in the document's order."""
    described = [
        (path, method, operation, _curl(method, path, operation, address))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    described += [
        (name, method, operation, "")
        for name, methods in document["webhooks"].items()
        for method, operation in methods.items()
    ]
    return [
        Section(
            tag["name"],
            tag["description"],
            tuple(
                _operation(method, path, operation, document["components"], curl)
                for path, method, operation, curl in described
                if tag["name"] in operation["tags"]
            ),
        )
        for tag in document["tags"]
    ]


def _operation(
    method: str, path: str, operation: dict[str, Any], components: dict[str, Any], curl: str
) -> OperationView:
    content, schemas = _body(operation), components["schemas"]
    return OperationView(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        text=operation.get("description", ""),
        key=next((name for names in operation["security"] for name in names), ""),
        is_deprecated=operation.get("deprecated", False),
        aliases=tuple(operation.get("x-aliases", ())),
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
        curl=curl,
        sent=_shown(content["example"]) if "example" in content else "",
        answers=tuple(_answer(status, answer, components) for status, answer in operation["responses"].items()),
        section=operation["tags"][0],
        inputs=tuple(
            FieldLine(one["name"], one["in"], one["required"], one["description"])
            for one in operation.get("parameters", ())
            if one["in"] in ("path", "query")
        ),
        example=next((_shown(one["value"]) for one in content.get("examples", {}).values()), ""),
        may_be_tried=bool(curl) and operation["operationId"] not in FILES,
    )


def _body(operation: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content


def _answer(status: str, answer: dict[str, Any], components: dict[str, Any]) -> AnswerLine:
    contents: dict[str, dict[str, Any]] = answer.get("content", {})
    first = next(iter(contents.values()), {})
    is_error = "application/problem+json" in contents
    schema = first.get("schema", {})
    streamed: dict[str, Any] = next(
        (one for one in schema.get("properties", {}).get("data", {}).get("anyOf", ()) if len(one) > 1), {}
    )
    return AnswerLine(
        status=status,
        text=answer["description"],
        media_type=" or ".join(contents),
        fields=() if is_error else tuple(fields(streamed.get("contentSchema", schema), components["schemas"])),
        headers=()
        if is_error
        else tuple(
            FieldLine(name, "header", False, components["headers"][name]["description"])
            for name in answer.get("headers", ())
        ),
        example=_shown(first.get("x-stream-example", first.get("example", ""))),
        is_error=is_error,
    )


def _shown(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def fields(schema: dict[str, Any], schemas: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[FieldLine]:
    """Yield the fields of an object, those within them too, by their paths: ``messages[].role``."""
    schema = _resolved(schema, schemas)
    if schema.get("type") == "array":
        yield from fields(schema["items"], schemas, f"{prefix}[]", depth)
        return
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        text = field.get("description", _resolved(field, schemas).get("description", ""))
        yield FieldLine(path, kind_of(field, schemas), name in required, text)
        if depth < MAX_DEPTH:
            for option in field.get("anyOf", (field,)):
                yield from fields(option, schemas, path, depth + 1)


def kind_of(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return a schema in few words: ``string, 1 … 200 characters, or null``."""
    schema = _resolved(schema, schemas)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(option, schemas) for option in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    kind: str | list[str] = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind_of({**schema, "type": each}, schemas) for each in kind)
    if "const" in schema:
        return json.dumps(schema["const"])
    if kind == "array":
        return f"list{_range(schema, 'minItems', 'maxItems', '')} of {kind_of(schema.get('items', {}), schemas)}"
    if "format" in schema:
        return f"{kind}, {schema['format']}"
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


def _curl(method: str, path: str, operation: dict[str, Any], address: str) -> str:
    """Return a command that works in a POSIX shell once its variables, those of ``VARIABLES``, are set."""
    for name, (variable, _) in VARIABLES.items():
        path = path.replace(f"{{{name}}}", f"${variable}")
    query = "&".join(
        f"{one['name']}={quote_plus(str(one['example']))}"
        for one in operation.get("parameters", ())
        if one["in"] == "query" and one["required"]
    )
    lines = [f'curl -sSN "{address}{path}{f"?{query}" if query else ""}"']
    examples = _body(operation).get("examples", {})
    if method == "post" and not examples:
        lines[0] += " -X POST"
    for names in operation["security"]:
        lines += [f'  -H "Authorization: Bearer ${KEY}"' for _ in names]
    if file := FILES.get(operation["operationId"]):
        lines[0] = lines[0].removesuffix(" -X POST")
        lines += [f"  -H 'Content-Type: {file[0]}'", f"  --data-binary @{file[1]}"]
    for example in examples.values():
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{_json_with_variables(example['value'])}'"]
        break
    return " \\\n".join(lines)


def _json_with_variables(example: dict[str, Any]) -> str:
    """Return JSON to be put between single quotes, which are left where a variable's value belongs."""
    variables = {f"${variable}": f"'\"${variable}\"'" for variable, _ in VARIABLES.values()}
    filled = {name: f"${VARIABLES[name][0]}" if name in VARIABLES else value for name, value in example.items()}
    text = json.dumps(filled, ensure_ascii=False).replace("'", "'\\''")
    for name, expanded in variables.items():
        text = text.replace(f'"{name}"', f'"{expanded}"')
    return text
