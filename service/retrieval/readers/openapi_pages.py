"""OpenAPI 3 and Swagger 2 descriptions, JSON or YAML: a section for each operation, webhook and schema.

Both are read by libyaml's composer, which reports the line of each key; JSON that is too large for it is read by a JSON
parser, and then all is on line 1. References (``$ref``) are followed within the file, each once on the way down, to a
small depth: schemas refer to themselves.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from service.domain.sites import Skipped
from service.markup.front_matter import check_bounds
from service.markup.slugs import slug
from service.ports.docs_source import PAGE_BYTES
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.readers.outline import Outline, TooLong

MAX_DESCRIPTION_BYTES = PAGE_BYTES["json"]
MAX_COMPOSED_BYTES = 2 << 20
MAX_OPERATIONS = 3_000
MAX_DEPTH = 4
"""Limit for properties within properties that are shown."""
MAX_PROPERTIES = 200
"""Limit for one operation or schema; and for the parameters of one operation."""
MAX_VISITS = 2_000
"""Schemas that are looked into for one operation or schema: alternatives within alternatives name each other."""
MAX_REFERENCE = 1_000
"""Characters."""
MAX_TEXT = 4_000
"""Characters of one description."""
NESTED, MAX_BRACKETS = 60, 400
"""Real depth; brackets counted in texts, too, which need not be paired."""
MAX_NODES = 1_000_000

SNIFFED = 4096

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_MARKER = re.compile(rb"""(?:^|[\s{,])["']?(?:openapi["']?\s*:\s*["']?3\.|swagger["']?\s*:\s*["']?2\.)""")

Table = Mapping[str, Any]
NO_ADDRESSES: Mapping[str, str] = {}


class Operation(Struct, frozen=True):
    """One entry of the reference."""

    key: str
    """``GET /users/{id}``; the name of a webhook or schema."""
    kind: str
    """``operation``, ``webhook`` or ``schema``."""
    title: str
    anchor: str
    text: str
    """Markdown."""
    line: int


class Description(Struct, frozen=True):
    title: str
    text: str
    operations: tuple[Operation, ...]
    lines: int

    def operation(self, key: str) -> Operation | None:
        """By ``METHOD /path``, whatever the case of the method, or by a webhook's or schema's name."""
        return next((one for one in self.operations if one.key.casefold() == key.casefold()), None)


_NAMED = re.compile(r"(?:(\S+\.(?:json|ya?ml))\s+)?((?:webhook\s+)?\S.*)", re.IGNORECASE)


def operation_named(words: str) -> tuple[str, str] | None:
    """The file, or "" for any, and the key of what a page's front matter names: ``/api.json GET /users``."""
    match = _NAMED.fullmatch(words.strip()[:1000])
    if match is None:
        return None
    key = re.sub(r"^webhook\s+", "", match[2].strip(), flags=re.IGNORECASE)
    return match[1] or "", " ".join(key.split())


def is_description(data: bytes) -> bool:
    """Return whether the data is a description, by its beginning."""
    return _MARKER.search(data[:SNIFFED]) is not None


def read_description(data: bytes, path: str) -> Description | Skipped:
    """Never raises for what is in the file."""
    if len(data) > MAX_DESCRIPTION_BYTES:
        return Skipped(path, f"It is larger than {MAX_DESCRIPTION_BYTES >> 20} MiB.")
    try:
        text = data.decode("utf-8-sig")
        document, lines = _load(text, is_json=path.lower().endswith(".json"))
        if not _describes(document):
            return Skipped(path, "It is not an OpenAPI description.")
        return _Reader(document, lines).description(text.count("\n") + 1)
    except (ValueError, yaml.YAMLError, UnicodeError, TypeError):
        return Skipped(path, "It is broken: not the JSON or YAML of an OpenAPI description.")
    except RecursionError:
        return Skipped(path, "It is nested too deeply.")


def read_document(data: bytes, path: str) -> Table | None:
    """Return a description as it is written; None for what is none, is broken or too large."""
    if len(data) > MAX_DESCRIPTION_BYTES:
        return None
    try:
        document, _ = _load(data.decode("utf-8-sig"), is_json=path.lower().endswith(".json"))
    except (ValueError, yaml.YAMLError, TypeError, RecursionError):
        return None
    return document if _describes(document) else None


def _describes(document: object) -> bool:
    return isinstance(document, dict) and ("openapi" in document or "swagger" in document)


def as_page(
    description: Description,
    path: str,
    *,
    without: frozenset[str] = frozenset(),
    addresses: Mapping[str, str] = NO_ADDRESSES,
) -> ParsedPage | Skipped:
    """Return the description as a page, but for the operations that pages of their own show. ``addresses``: those of
    pages that are made of operations, by case-folded key.
    """
    outline = Outline()
    outline.heading(1, description.title or path, "", 1)
    outline.prose(description.text, 1, 1)
    operations = [one for one in description.operations if one.key.casefold() not in without]
    try:
        for index, one in enumerate(operations):
            following = operations[index + 1].line - 1 if index + 1 < len(operations) else description.lines
            outline.heading(2, one.title, one.anchor, one.line)
            outline.prose(one.text, one.line, max(one.line, following))
    except TooLong:
        return Skipped(path, "It has too many parts.")
    page = outline.page(path, title=description.title, description="", front_matter={}, last_line=description.lines)
    own = {one.anchor: url for one in operations if (url := addresses.get(one.key.rstrip("/").casefold(), ""))}
    return replace(page, sections=tuple(replace(one, url=own.get(one.anchor, "")) for one in page.sections))


def _load(text: str, *, is_json: bool) -> tuple[Any, dict[tuple[str, ...], int]]:
    """The document, and the lines of the keys down to the third level."""
    if is_json:
        document = json.loads(text)
        if len(text) > MAX_COMPOSED_BYTES or _is_deep(document):
            return document, {}
    else:
        check_bounds(text, MAX_COMPOSED_BYTES, MAX_BRACKETS)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    lines: dict[tuple[str, ...], int] = {}
    return _built(node, (), lines, 0, [MAX_NODES]), lines


def _is_deep(document: object) -> bool:
    level = [document]
    for _ in range(NESTED):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


def _built(
    node: yaml.Node | None, path: tuple[str, ...], lines: dict[tuple[str, ...], int], depth: int, room: list[int]
) -> Any:
    """Plain values of nodes. Aliases share their nodes, so what they unfold to is counted."""
    room[0] -= 1
    if depth > NESTED or room[0] < 0:
        raise ValueError("too deep, or too many aliases")
    if isinstance(node, yaml.MappingNode):
        made = {}
        for key, value in node.value:
            name = str(key.value)
            if len(path) < 3:
                lines[*path, name] = key.start_mark.line + 1
            made[name] = _built(value, (*path, name), lines, depth + 1, room)
        return made
    if isinstance(node, yaml.SequenceNode):
        return [_built(value, (*path, "-"), lines, depth + 1, room) for value in node.value]
    return node.value if node is not None else None


class _Room(Struct):
    """The part of a limit that one operation or schema has left."""

    properties: int = MAX_PROPERTIES
    visits: int = MAX_VISITS


class _Reader:
    def __init__(self, document: Table, lines: Mapping[tuple[str, ...], int]) -> None:
        self._document, self._lines = document, lines

    def description(self, lines: int) -> Description:
        info = _table(self._document.get("info"))
        about = [_words(info.get("description"))]
        servers = [_words(_table(one).get("url")) for one in _list(self._document.get("servers"))[:10]]
        if any(servers):
            about.append("Servers: " + ", ".join(f"`{url}`" for url in servers if url))
        version = _words(info.get("version"))
        if version:
            about.append(f"Version {version[:100]}")
        operations: list[Operation] = []
        seen: dict[str, int] = {}
        for one in self._entries():
            anchor, number = one.anchor, seen.get(one.anchor, 1)
            while anchor in seen:
                number += 1
                anchor = f"{one.anchor}-{number}"
            seen[one.anchor] = number
            seen.setdefault(anchor, 1)
            operations.append(Operation(one.key, one.kind, one.title, anchor, one.text, one.line))
            if len(operations) >= MAX_OPERATIONS:
                break
        operations.sort(key=lambda one: one.line)
        return Description(
            " ".join(_words(info.get("title")).split())[:300],
            "\n\n".join(filter(None, about)),
            tuple(operations),
            lines,
        )

    def _entries(self) -> Iterator[Operation]:
        for part, kind in (("paths", "operation"), ("webhooks", "webhook")):
            for path, item in _table(self._document.get(part)).items():
                item = _table(self._followed(item))
                shared = _list(item.get("parameters"))
                for method in METHODS:
                    if isinstance(item.get(method), dict):
                        line = self._lines.get((part, path, method), self._lines.get((part, path), 1))
                        yield self._operation(kind, method, path, item[method], shared, line)
        components = _table(_table(self._document.get("components")).get("schemas"))
        places: tuple[tuple[tuple[str, ...], Table], ...] = (
            (("components", "schemas"), components),
            (("definitions",), _table(self._document.get("definitions"))),
        )
        for where, schemas in places:
            for name, schema in schemas.items():
                lines = self._properties(schema, "", 0, set(), _Room())
                text = "\n".join([_words(_table(schema).get("description")), *(["", *lines] if lines else [])]).strip()
                yield Operation(
                    name, "schema", name[:300], slug(f"schema {name}"), text, self._lines.get((*where, name), 1)
                )

    def _operation(
        self, kind: str, method: str, path: str, operation: Table, shared: list[Any], line: int
    ) -> Operation:
        key = f"{method.upper()} {path}" if kind == "operation" else path
        summary = " ".join(_words(operation.get("summary")).split())[:200]
        blocks = [f"`{key}`", _words(operation.get("description"))]
        if str(operation.get("deprecated", "")).lower() == "true":
            blocks.append("Deprecated.")
        parameters: dict[tuple[str, str], Table] = {}
        for one in [*shared, *_list(operation.get("parameters"))][:MAX_PROPERTIES]:
            parameter = _table(self._followed(one))
            parameters[_words(parameter.get("in")), _words(parameter.get("name"))] = parameter
        room = _Room()
        if parameters:
            blocks.append("Parameters:\n\n" + "\n".join(self._parameter(one) for one in parameters.values()))
        body = _table(self._followed(operation.get("requestBody")))
        for media, content in list(_table(body.get("content")).items())[:3]:
            lines = self._properties(_table(content).get("schema"), "", 0, set(), room)
            if lines:
                blocks.append(f"Request body (`{media}`):\n\n" + "\n".join(lines))
        for status, given in list(_table(operation.get("responses")).items())[:30]:
            response = _table(self._followed(given))
            text = [f"Response {status}: {_words(response.get('description'))}".rstrip(": ")]
            schemas = [_table(one).get("schema") for one in list(_table(response.get("content")).values())[:1]]
            for schema in [*schemas, response.get("schema")]:
                lines = self._properties(schema, "", 0, set(), room)
                if lines:
                    text += ["", *lines]
            blocks.append("\n".join(text))
        title = f"{summary} ({key})" if summary else key
        name = _words(operation.get("operationId")) or key
        return Operation(key, kind, title[:300], slug(name), "\n\n".join(filter(None, blocks)), line)

    def _parameter(self, parameter: Table) -> str:
        schema = _table(self._followed(parameter.get("schema"))) or parameter
        facts = [_words(parameter.get("in")), _type_of(schema)]
        if str(parameter.get("required", "")).lower() == "true":
            facts.append("required")
        about = _words(parameter.get("description"))
        return f"- `{_words(parameter.get('name'))}` ({', '.join(filter(None, facts))}) {_in_line(about)}".rstrip()

    def _properties(self, schema: Any, indent: str, depth: int, above: set[str], room: "_Room") -> list[str]:
        """One line each, those within others below them."""
        room.visits -= 1
        if room.visits < 0:
            return []
        reference = _table(schema).get("$ref")
        if isinstance(reference, str):
            if reference in above:
                return []
            above = above | {reference}
        followed = _table(self._followed(schema))
        lines: list[str] = []
        for part in ("allOf", "oneOf", "anyOf"):
            for one in _list(followed.get(part))[:20]:
                lines += self._properties(one, indent, depth + 1, above, room) if depth < MAX_DEPTH else []
        if "items" in followed and depth < MAX_DEPTH:
            lines += self._properties(followed["items"], indent, depth + 1, above, room)
        required = {one for one in _list(followed.get("required")) if isinstance(one, str)}
        for name, value in _table(followed.get("properties")).items():
            if room.properties <= 0:
                break
            room.properties -= 1
            inner = _table(self._followed(value))
            facts = [_type_of(inner), "required" if name in required else ""]
            about = _in_line(_words(_table(value).get("description") or inner.get("description")))
            shown = f" ({', '.join(filter(None, facts))})" if any(facts) else ""
            lines.append(f"{indent}- `{name}`{shown} {about}".rstrip())
            if depth + 1 < MAX_DEPTH:
                lines += self._properties(value, indent + "  ", depth + 1, above, room)
        return lines

    def _followed(self, value: Any) -> Any:
        for _ in range(10):
            reference = _table(value).get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/") or len(reference) > MAX_REFERENCE:
                return value
            value = self._document
            for part in reference[2:].split("/")[:20]:
                value = _table(value).get(part.replace("~1", "/").replace("~0", "~"))
        return None


def _table(value: Any) -> Table:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(value: Any) -> str:
    return str(value).strip()[:MAX_TEXT] if isinstance(value, str | int | float) else ""


def _in_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _type_of(schema: Table) -> str:
    kind = schema.get("type")
    shown = ", ".join(map(str, kind[:5])) if isinstance(kind, list) else _words(kind)
    values = [f"`{_words(one)}`" for one in _list(schema.get("enum"))[:20] if _words(one)]
    return (f"{shown}: " if shown and values else shown) + " | ".join(values)
