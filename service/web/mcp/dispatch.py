"""One message of a client, from its bytes to its answer: the same for every server of ours.

No session: each message stands alone, in both eras of the protocol, so any process of the same store may answer it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import structlog
from aiohttp import web
from msgspec import UNSET
from msgspec.structs import replace

from eventstore import OutcomeUnknown, StoreUnavailable, WrongExpectedVersion
from service import __version__
from service.domain.errors import BodyTooLarge, Invalid, NotFound, ServiceError, UnsupportedMediaType
from service.web.api.assistant.threads import asker_of
from service.web.http.problems import OUTCOME_UNKNOWN_SENTENCE, UNAVAILABLE_SENTENCE, read_bytes
from service.web.mcp.cancellation import RUNNING_CALLS, Cancelled
from service.web.mcp.progress import Progress
from service.web.mcp.tools import BadArguments, Call, Tools
from service.wire.mcp.requests import (
    HEADERS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY_RESOURCE_NOT_FOUND,
    METHOD_NOT_FOUND,
    ProtocolError,
    Request,
    negotiated,
    read_batch,
    read_request,
)
from service.wire.mcp.results import (
    CacheScope,
    Capabilities,
    DiscoverResult,
    Implementation,
    InitializeResult,
    PromptList,
    ResourceContents,
    ResourceList,
    ResourceTemplate,
    ResourceTemplateList,
    Result,
    ResultMeta,
    ToolList,
    ToolResult,
    encode_error,
    encode_result,
    tool_failure,
    tool_result,
)

log = structlog.get_logger()

MAX_BODY_BYTES = 512 * 1024
"""More than a question of the greatest length has, with each of its characters escaped."""

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class Resources(Protocol[S_contra]):
    """The resources of a server."""

    def templates(self, scope: S_contra, /) -> list[ResourceTemplate]:
        """Return the forms of their addresses."""

    async def listed(self, request: web.Request, scope: S_contra, cursor: str | None, /) -> ResourceList:
        """Return a part of the list. Raise Invalid for an unknown cursor."""

    async def read(self, request: web.Request, scope: S_contra, uri: str, /) -> ResourceContents:
        """Return a resource. Raise NotFound."""


async def _anyone(_request: web.Request, _scope: object) -> bool:
    return True


class Server(Generic[S]):
    """Tools and resources for a caller who was let in to a scope."""

    def __init__(
        self,
        title: str,
        instructions: str,
        tools: Tools[S],
        resources: Resources[S] | None = None,
        may_cancel: Callable[[web.Request, S], Awaitable[bool]] = _anyone,
    ) -> None:
        """``instructions``: how a model uses this server well. ``title``: its name for people. ``may_cancel``: whether
        a caller may cancel calls by a message; it may raise OverLimit.
        """
        self.tools, self.resources, self.instructions = tools, resources, instructions
        self.may_cancel = may_cancel
        self.implementation = Implementation("docsmith", __version__, title)
        self.meta = ResultMeta(self.implementation)
        self.capabilities = Capabilities({}, UNSET if resources is None else {}, {})


class _Exchange(Generic[S]):
    """A message on its way to its answer."""

    def __init__(
        self,
        request: web.Request,
        server: Server[S],
        scope: S,
        message: Request,
        cache_scope: CacheScope,
        *,
        is_in_batch: bool,
    ) -> None:
        self.request, self.server, self.scope, self.message = request, server, scope, message
        self.cache_scope = cache_scope
        self.is_in_batch = is_in_batch
        self.progress = Progress(request, None if is_in_batch else message.params.meta.progress_token)


async def answer(
    request: web.Request, server: Server[S], scope: S, *, cache_scope: CacheScope = "private"
) -> web.StreamResponse:
    """Answer the message of a request that was let in to a scope.

    ``cache_scope``: ``public`` where every caller gets the same lists and resources.

    Raises BodyTooLarge, UnsupportedMediaType, OverLimit, and what the reading of a body raises.
    """
    body, headers = await _body(request), _protocol_headers(request)

    async def begin(one: bytes, *, is_in_batch: bool = False) -> _Exchange[S] | None:
        """Return the exchange of a message; None for a notification, which is handled."""
        message = read_request(one, headers)
        if message.id is not None:
            return _Exchange(request, server, scope, message, cache_scope, is_in_batch=is_in_batch)
        if message.cancels is not None and await server.may_cancel(request, scope):
            await request.app[RUNNING_CALLS].cancel(_caller(request), message.cancels)
        return None

    answers: list[bytes] = []
    try:
        batch = read_batch(body, headers)
        if batch is None and (exchange := await begin(body)) is not None:
            return await exchange.progress.finish(await _result(exchange))
    except ProtocolError as error:
        return web.Response(status=error.status, body=encode_error(error), content_type="application/json")
    for one in batch or ():
        try:
            if (exchange := await begin(bytes(one), is_in_batch=True)) is not None:
                answers.append(await _result(exchange))
        except ProtocolError as error:
            answers.append(encode_error(error))
    if not answers:
        return web.Response(status=202)
    return web.Response(body=b"[%s]" % b",".join(answers), content_type="application/json")


async def _body(request: web.Request) -> bytes:
    if request.content_type != "application/json":
        raise UnsupportedMediaType("Send the body as Content-Type: application/json.")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    body = await read_bytes(request)
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge(MAX_BODY_BYTES)
    return body


def _protocol_headers(request: web.Request) -> dict[str, str]:
    """Return the protocol's headers. One that was sent twice is both values, and so differs from the body: a proxy may
    have looked at the other one.
    """
    return {name: ", ".join(values) for name in HEADERS if (values := request.headers.getall(name, ()))}


async def _result(exchange: _Exchange[S]) -> bytes:
    """Return the answer to a request. Raise ProtocolError."""
    message = exchange.message
    assert message.id is not None
    run = (_MODERN if message.is_modern else _LEGACY).get(message.method)
    if run is None or (message.method.startswith("resources/") and exchange.server.resources is None):
        raise message.error(METHOD_NOT_FOUND, f"Method not found: {message.method[:100]}.")
    result = await run(exchange)
    about = {"meta": exchange.server.meta} if message.is_modern else {"result_type": UNSET}
    return encode_result(message.id, replace(result, **about))


async def _initialize(exchange: _Exchange[S]) -> Result:
    server = exchange.server
    if exchange.is_in_batch:
        raise exchange.message.error(INVALID_REQUEST, "Invalid request: send initialize alone, not in a batch.")
    return InitializeResult(
        protocol_version=negotiated(exchange.message.params.protocol_version),
        capabilities=server.capabilities,
        server_info=server.implementation,
        instructions=server.instructions,
    )


async def _discover(exchange: _Exchange[S]) -> Result:
    server = exchange.server
    return DiscoverResult(
        capabilities=server.capabilities,
        server_info=server.implementation,
        instructions=server.instructions,
        cache_scope=exchange.cache_scope,
    )


async def _ping(_: _Exchange[S]) -> Result:
    return Result()


async def _list_tools(exchange: _Exchange[S]) -> Result:
    return ToolList(tools=exchange.server.tools.described, cache_scope=exchange.cache_scope)


async def _list_prompts(exchange: _Exchange[S]) -> Result:
    return PromptList(cache_scope=exchange.cache_scope)


async def _get_prompt(exchange: _Exchange[S]) -> Result:
    raise exchange.message.error(INVALID_PARAMS, "Unknown prompt: this server has none.")


async def _call_tool(exchange: _Exchange[S]) -> Result:
    """Call a tool. What it refuses is its result, for the model to read; only an unknown name is the client's error."""
    params, tools = exchange.message.params, exchange.server.tools
    name = params.name
    if not isinstance(name, str):
        raise exchange.message.error(INVALID_PARAMS, "Invalid params: name is required.")
    tool = tools.find(name)
    if tool is None:
        raise exchange.message.error(INVALID_PARAMS, tools.unknown(name))
    work = tool.call(Call(exchange.request, exchange.scope, exchange.progress), params.arguments)
    if not exchange.message.is_modern and exchange.message.id is not None:
        work = exchange.request.app[RUNNING_CALLS].run(_caller(exchange.request), exchange.message.id, work)
    try:
        return tool_result(await work)
    except (BadArguments, Cancelled, ServiceError) as error:
        return tool_failure(str(error))
    except (StoreUnavailable, WrongExpectedVersion, TimeoutError) as error:
        return _tool_unavailable(name, error)


def _caller(request: web.Request) -> str:
    return f"{request.path} {asker_of(request)}"


def _tool_unavailable(name: str, error: Exception) -> ToolResult:
    log.warning("store unavailable", tool=name, kind=type(error).__name__)
    return tool_failure(OUTCOME_UNKNOWN_SENTENCE if isinstance(error, OutcomeUnknown) else UNAVAILABLE_SENTENCE)


async def _list_templates(exchange: _Exchange[S]) -> Result:
    assert exchange.server.resources is not None
    templates = exchange.server.resources.templates(exchange.scope)
    return ResourceTemplateList(resource_templates=templates, cache_scope=exchange.cache_scope)


async def _list_resources(exchange: _Exchange[S]) -> Result:
    resources, cursor = exchange.server.resources, exchange.message.params.cursor
    assert resources is not None
    try:
        listed = await resources.listed(exchange.request, exchange.scope, cursor)
    except Invalid as error:
        raise exchange.message.error(INVALID_PARAMS, str(error)) from None
    return replace(listed, cache_scope=exchange.cache_scope)


async def _read_resource(exchange: _Exchange[S]) -> Result:
    resources, uri = exchange.server.resources, exchange.message.params.uri
    assert resources is not None
    if not isinstance(uri, str):
        raise exchange.message.error(INVALID_PARAMS, "Invalid params: uri is required.")
    try:
        contents = await resources.read(exchange.request, exchange.scope, uri)
    except NotFound as error:
        code = INVALID_PARAMS if exchange.message.is_modern else LEGACY_RESOURCE_NOT_FOUND
        raise exchange.message.error(code, str(error), data={"uri": uri}) from None
    return replace(contents, cache_scope=exchange.cache_scope)


_Methods = dict[str, Callable[[_Exchange[Any]], Awaitable[Result]]]
_SHARED: _Methods = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}
_MODERN: _Methods = {**_SHARED, "server/discover": _discover}
_LEGACY: _Methods = {**_SHARED, "initialize": _initialize, "ping": _ping}
