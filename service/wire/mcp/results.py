"""The messages that a server of the Model Context Protocol answers with.

Lists have the fields of the modern era in both: legacy clients ignore those that they do not know. The base of all
results is of the era, since some take a result with more than its own fields for a broken one (``ping``).
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from service.wire.mcp.requests import VERSIONS, ProtocolError, RequestId

CacheScope = Literal["public", "private"]
"""Whether a cache may give a result to other callers."""
LIST_TTL_MS = 3_600_000
EVENT_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of an answer in several messages."""
KEEP_ALIVE = b": \n\n"


class Implementation(Struct, frozen=True, omit_defaults=True):
    """A program that speaks the protocol."""

    name: str
    version: str
    title: str = ""


class Annotations(Struct, frozen=True, rename="camel"):
    """Hints for the client about a tool."""

    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolDescription(Struct, frozen=True, rename="camel"):
    """A tool as a model sees it."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: Annotations


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of a tool's result."""

    text: str


class ResourceDescription(Struct, frozen=True, rename="camel"):
    """A resource in a list."""

    uri: str
    name: str
    title: str
    mime_type: str = "text/markdown"


class ResourceTemplate(Struct, frozen=True, rename="camel"):
    """The form of the addresses of resources."""

    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str = "text/markdown"


class ResourceText(Struct, frozen=True, rename="camel"):
    """The text of a resource."""

    uri: str
    text: str
    mime_type: str = "text/markdown"


class ResultMeta(Struct, frozen=True):
    server: Implementation = field(name="io.modelcontextprotocol/serverInfo")


class Capabilities(Struct, frozen=True, omit_defaults=True):
    """The parts of the protocol that a server has. No list changes while a client looks at it."""

    tools: dict[str, bool] | UnsetType = UNSET
    resources: dict[str, bool] | UnsetType = UNSET
    prompts: dict[str, bool] | UnsetType = UNSET


class Result(Struct, frozen=True, rename="camel", kw_only=True):
    """The base of all results."""

    result_type: Literal["complete"] | UnsetType = "complete"
    meta: ResultMeta | UnsetType = field(default=UNSET, name="_meta")


class CacheableResult(Result, frozen=True, rename="camel", kw_only=True):
    ttl_ms: int = LIST_TTL_MS
    cache_scope: CacheScope = "private"


class InitializeResult(Result, frozen=True, rename="camel", kw_only=True):
    """The answer that begins a legacy client's connection."""

    protocol_version: str
    capabilities: Capabilities
    server_info: Implementation
    instructions: str


class DiscoverResult(CacheableResult, frozen=True, rename="camel", kw_only=True):
    supported_versions: tuple[str, ...] = VERSIONS
    capabilities: Capabilities
    server_info: Implementation
    instructions: str


class ToolList(CacheableResult, frozen=True, rename="camel", kw_only=True):
    tools: Raw


class PromptList(CacheableResult, frozen=True, rename="camel", kw_only=True):
    prompts: tuple[()] = ()


class ResourceList(CacheableResult, frozen=True, rename="camel", kw_only=True):
    resources: list[ResourceDescription]
    next_cursor: str | UnsetType = UNSET


class ResourceTemplateList(CacheableResult, frozen=True, rename="camel", kw_only=True):
    resource_templates: list[ResourceTemplate]


class ResourceContents(CacheableResult, frozen=True, rename="camel", kw_only=True):
    contents: list[ResourceText]


class ToolResult(Result, frozen=True, rename="camel", kw_only=True):
    content: list[Text]
    structured_content: Raw | UnsetType = UNSET
    is_error: bool = False


class _Answer(Struct, frozen=True):
    id: RequestId
    result: Any
    jsonrpc: Literal["2.0"] = "2.0"


class _Fault(Struct, frozen=True):
    code: int
    message: str
    data: Any = UNSET


class _Failure(Struct, frozen=True):
    error: _Fault
    id: RequestId | UnsetType = UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class _Progress(Struct, frozen=True, rename="camel"):
    progress_token: RequestId
    progress: int
    message: str | UnsetType = UNSET


class _Notification(Struct, frozen=True):
    method: str
    params: _Progress
    jsonrpc: Literal["2.0"] = "2.0"


def encode_result(id_: RequestId, result: Result) -> bytes:
    return msgspec.json.encode(_Answer(id_, result))


def encode_error(error: ProtocolError) -> bytes:
    return msgspec.json.encode(_Failure(_Fault(error.code, str(error), error.data), error.id))


def encode_progress(token: RequestId, progress: int, message: str = "") -> bytes:
    """Return a notification. ``progress``: a number that grows with each."""
    params = _Progress(token, progress, message or UNSET)
    return msgspec.json.encode(_Notification("notifications/progress", params))


def tool_result(view: Struct) -> ToolResult:
    """Return a view as the result of a tool: structured, and as one text that holds the same JSON."""
    encoded = msgspec.json.encode(view)
    return ToolResult(content=[Text(encoded.decode())], structured_content=Raw(encoded))


def tool_failure(message: str) -> ToolResult:
    """Return what a tool could not do, in words that a model can act on."""
    return ToolResult(content=[Text(message)], is_error=True)


def server_sent(message: bytes) -> bytes:
    """Return a message as an event of a stream."""
    return b"event: message\ndata: " + message + b"\n\n"
