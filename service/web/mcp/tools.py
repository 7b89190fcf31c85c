"""The shape of a tool: a function of our own, as a model sees it and as a client calls it.

A tool takes one closed struct and returns one view; both are described to the model by their schemas. What it raises as
a ServiceError is its result, marked as an error, so that the model can read it and act on it.

Facts: n8n's client sends ``sessionId``, ``action``, ``chatInput`` and ``toolCallId`` beside the arguments of each call
(n8n-io/n8n#21500). Clients of Gemini refuse a schema with ``anyOf`` and ``null``, and others fill in each optional
argument that their model leaves out with ``null``. So a schema names no ``null``, and a call may have it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web
from msgspec import Raw, Struct

from service.web.mcp.progress import Progress
from service.wire.mcp.requests import MAX_SHOWN
from service.wire.mcp.results import Annotations, ToolDescription

S = TypeVar("S")
"""The type of a server's scope: what a caller was let in to, such as a project."""
A = TypeVar("A", bound=Struct)
V = TypeVar("V", bound=Struct)


class Call(Generic[S]):
    """A call of a tool: its request, what the caller was let in to, and the way to report progress."""

    __slots__ = ("progress", "request", "scope")

    def __init__(self, request: web.Request, scope: S, progress: Progress) -> None:
        self.request, self.scope, self.progress = request, scope, progress


_ADDED_BY_CLIENTS = frozenset({"action", "chatInput", "sessionId", "toolCallId"})


class BadArguments(Exception):
    """The arguments of a call do not fit. Its message is for the model."""


class Tool(Generic[S]):
    """A tool of a server."""

    def __init__(
        self,
        description: ToolDescription,
        arguments: type[Struct],
        run: Callable[[Call[S], Any], Awaitable[Struct]],
        *,
        reads: bool,
    ) -> None:
        self.description, self._decoder, self._run = description, msgspec.json.Decoder(arguments), run
        fields = msgspec.structs.fields(arguments)
        self._names = frozenset(field.encode_name for field in fields)
        self._required = frozenset(field.encode_name for field in fields if field.required)
        self._reads = reads

    def _meant(self, arguments: Raw) -> bytes | Raw:
        """Return the arguments without those that say nothing: optional ones that are null, and unknown names. Of a
        tool that writes, only the unknown names that clients add: another one may be a wish that is misspelt.
        """
        try:
            given = msgspec.json.decode(arguments, type=dict[str, Raw])
        except msgspec.ValidationError:
            return arguments
        kept = {
            name: value
            for name, value in given.items()
            if (name in self._names or not (self._reads or name in _ADDED_BY_CLIENTS))
            and (name in self._required or bytes(value) != b"null")
        }
        return arguments if len(kept) == len(given) else msgspec.json.encode(kept)

    async def call(self, call: Call[S], arguments: Raw) -> Struct:
        """Return the tool's view. Raise BadArguments, and what the tool raises."""
        try:
            decoded = self._decoder.decode(self._meant(arguments))
        except msgspec.ValidationError as error:
            raise BadArguments(f"Invalid arguments: {error}. See the tool's input schema.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadArguments("Invalid arguments: they are not valid JSON.") from None
        return await self._run(call, decoded)


class Tools(Generic[S]):
    """The tools of a server, in their order."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool[S]] = {}
        self._described: Raw | None = None

    def tool(
        self, name: str, title: str, *, reads: bool, repeatable: bool = False
    ) -> Callable[[Callable[[Call[S], A], Awaitable[V]]], Callable[[Call[S], A], Awaitable[V]]]:
        """Register a function under a name. Its docstring is what the model reads; the types of its second parameter
        and its result are the schemas.

        ``reads``: it changes nothing. ``repeatable``: the same call twice changes no more than one.
        """

        def register(run: Callable[[Call[S], A], Awaitable[V]]) -> Callable[[Call[S], A], Awaitable[V]]:
            hints = run.__annotations__
            description = ToolDescription(
                name,
                title,
                " ".join((run.__doc__ or "").split()),
                _without_null(closed_schema(hints["arguments"])),
                closed_schema(hints["return"]),
                _annotations(reads=reads, repeatable=repeatable),
            )
            self._tools[name] = Tool(description, hints["arguments"], run, reads=reads)
            self._described = None
            return run

        return register

    def include(self, others: "Tools[S]") -> None:
        """Add the tools of another module."""
        self._tools.update(others._tools)
        self._described = None

    @property
    def described(self) -> Raw:
        """Return the descriptions of all tools as JSON."""
        if self._described is None:
            self._described = Raw(msgspec.json.encode([tool.description for tool in self._tools.values()]))
        return self._described

    def find(self, name: str) -> Tool[S] | None:
        return self._tools.get(name)

    def unknown(self, name: str) -> str:
        """Return the error's words for a name that no tool has."""
        return f"Unknown tool: {name[:MAX_SHOWN]}. The tools are {', '.join(self._tools)}."


def _annotations(*, reads: bool, repeatable: bool) -> Annotations:
    if reads:
        return Annotations(read_only_hint=True, open_world_hint=False)
    return Annotations(destructive_hint=False, idempotent_hint=repeatable, open_world_hint=False)


def closed_schema(kind: type[Struct]) -> dict[str, Any]:
    """Return a struct's JSON Schema in one piece: some clients follow no ``$ref``."""
    _, definitions = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(node: Any, *, is_properties: bool = False) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                beside = {key: value for key, value in node.items() if key != "$ref"}  # the field's own description
                return inline(definitions[node["$ref"]]) | beside
            return {
                key: inline(value, is_properties=key == "properties" and not is_properties)
                for key, value in node.items()
                if is_properties or key != "title"
            }
        return [inline(item) for item in node] if isinstance(node, list) else node

    schema: dict[str, Any] = inline(definitions[kind.__name__])
    schema.pop("description", None)
    return schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments without the null that optional ones may be."""

    def plain(field: dict[str, Any]) -> dict[str, Any]:
        choices = field.get("anyOf", [])
        if _NULL not in choices:
            return field
        others = [choice for choice in choices if choice != _NULL]
        beside = {key: value for key, value in field.items() if key != "anyOf" and (key, value) != ("default", None)}
        return {**others[0], **beside} if len(others) == 1 else {"anyOf": others, **beside}

    return {**schema, "properties": {name: plain(field) for name, field in schema["properties"].items()}}


_NULL = {"type": "null"}
