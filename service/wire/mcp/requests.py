"""The messages that clients of the Model Context Protocol send over HTTP, in both eras of the protocol.

Facts (modelcontextprotocol.io, "Streamable HTTP" and "Versioning" of 2026-07-28; "Transports" of 2025-11-25):

- Modern requests (2026-07-28) stand alone: ``params._meta`` carries the version and the client's capabilities, and the
  headers ``MCP-Protocol-Version``, ``Mcp-Method`` and ``Mcp-Name`` repeat the body. A missing ``_meta`` is an invalid
  parameter (-32602), and this is checked before the headers are compared (-32020).
- Legacy clients begin with ``initialize`` and then name the agreed version in the header alone. No session is needed
  for that: each of their requests is understood by itself, too.
- A message without an id is a notification; there is no answer to it.
- A server of 2025-03-26 must take batches, which ended with 2025-06-18. The header that names the version is younger
  than they are. ``initialize`` is in no batch.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

MODERN_VERSIONS = ("2026-07-28",)
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSIONS = (*MODERN_VERSIONS, *LEGACY_VERSIONS)
BATCH_VERSIONS = (None, "2025-03-26", "2024-11-05")
"""Values of the version's header, None for no header, with which a body may be a batch."""
MAX_BATCH = 20
"""Messages of a batch: they are answered one after the other, in one response."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
LEGACY_RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
NAMED_BY: dict[str, Literal["name", "uri"]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose requests repeat a parameter in ``Mcp-Name``, and which."""
HEADERS = (VERSION_HEADER, METHOD_HEADER, NAME_HEADER)
MAX_SHOWN = 100
"""Characters of a client's value that an error repeats."""

MAX_ID_CHARACTERS = 1_000
"""The limit for an id or a token: each notification of a stream repeats the token."""

RequestId = Annotated[str, Meta(max_length=MAX_ID_CHARACTERS)] | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A number has at most 64 bits: instances send it to one another."""
EMPTY = Raw(b"{}")


class ProtocolError(Exception):
    """A message that is answered with an error of JSON-RPC."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int = 200,
        id: RequestId | UnsetType = UNSET,  # noqa: A002  (the protocol's own word)
        data: Any = UNSET,
    ) -> None:
        """``status``: of HTTP."""
        super().__init__(message)
        self.code, self.status, self.id, self.data = code, status, id, data


class RequestMeta(Struct):
    """The part of ``_meta`` that a server reads."""

    version: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    capabilities: Raw | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientCapabilities")
    """Not decoded: none is used, and it may be large."""
    progress_token: RequestId | None = field(default=None, name="progressToken")


class Params(Struct):
    """The parameters of all methods that are answered; each reads its own."""

    meta: RequestMeta = field(default_factory=RequestMeta, name="_meta")
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    arguments: Raw = EMPTY
    cursor: str | None = None
    protocol_version: str = field(default="", name="protocolVersion")
    request_id: RequestId | None = field(default=None, name="requestId")


class Request(Struct, frozen=True):
    """A message that fits the protocol."""

    method: str
    params: Params
    id: RequestId | None
    """None for a notification."""
    is_modern: bool

    @property
    def cancels(self) -> RequestId | None:
        """Return the id of the request that this notification cancels; None in the modern era, where a client closes
        the request's connection instead.
        """
        is_cancel = self.method == "notifications/cancelled" and not self.is_modern
        return self.params.request_id if is_cancel else None

    def error(self, code: int, message: str, *, data: Any = UNSET) -> ProtocolError:
        """Return an error to answer with; legacy clients take other statuses than 200 for a broken connection."""
        status = 404 if code == METHOD_NOT_FOUND and self.is_modern else 200
        return ProtocolError(code, message, status=status, id=UNSET if self.id is None else self.id, data=data)


class _Envelope(Struct):
    jsonrpc: Literal["2.0"]
    method: str
    id: RequestId | UnsetType = UNSET
    params: Raw = EMPTY


class _Identified(Struct):
    id: RequestId | UnsetType = UNSET


def read_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """Return the message of a body. ``headers``: those of HTTP, under any spelling.

    Raises:
        ProtocolError: it does not fit the protocol, or its headers differ from it.
    """
    envelope = _envelope(body)
    id_ = envelope.id
    try:
        params = msgspec.json.decode(envelope.params, type=Params | None) or Params()
    except msgspec.ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {error}", status=400, id=id_) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The body is not valid JSON.", status=400, id=id_) from None
    named = params.meta.version
    header = headers.get(VERSION_HEADER)
    is_modern = (named is not UNSET and named not in LEGACY_VERSIONS) or header in MODERN_VERSIONS
    request = Request(envelope.method, params, None if id_ is UNSET else id_, is_modern)
    try:
        if is_modern:
            _check_modern(request, headers)
        elif header is not None and header not in LEGACY_VERSIONS and request.method != "initialize":
            raise _unsupported(header)
    except ProtocolError as error:
        error.id = id_
        raise
    return request


def read_batch(body: bytes, headers: Mapping[str, str]) -> list[Raw] | None:
    """Return the messages of a batch; None for a single message. ``headers``: as for ``read_request``.

    Raises:
        ProtocolError: it is empty, or longer than MAX_BATCH.
    """
    if headers.get(VERSION_HEADER) not in BATCH_VERSIONS or not body.lstrip().startswith(b"["):
        return None
    try:
        messages = msgspec.json.decode(body, type=list[Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The body is not valid JSON.", status=400) from None
    if not 0 < len(messages) <= MAX_BATCH:
        said = f"Invalid request: a batch has 1 to {MAX_BATCH} messages, not {len(messages)}."
        raise ProtocolError(INVALID_REQUEST, said, status=400)
    return messages


def negotiated(version: str) -> str:
    """Return the version to offer to a legacy client that asks for one."""
    return version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[0]


def _envelope(body: bytes) -> _Envelope:
    try:
        return msgspec.json.decode(body, type=_Envelope)
    except msgspec.ValidationError as error:
        said = f"Invalid request: {error}. Send one JSON-RPC 2.0 message."
        raise ProtocolError(INVALID_REQUEST, said, status=400, id=_id_in(body)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "The body is not valid JSON.", status=400) from None


def _id_in(body: bytes) -> RequestId | UnsetType:
    try:
        return msgspec.json.decode(body, type=_Identified).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSET


def _check_modern(request: Request, headers: Mapping[str, str]) -> None:
    meta = request.params.meta
    if request.id is None:
        return  # which headers a notification has, the revision leaves open
    has_capabilities = meta.capabilities is not UNSET and bytes(meta.capabilities).startswith(b"{")
    for is_there, name in ((meta.version is not UNSET, "protocolVersion"), (has_capabilities, "clientCapabilities")):
        if not is_there:
            said = f"Invalid params: _meta has no io.modelcontextprotocol/{name}."
            raise ProtocolError(INVALID_PARAMS, said, status=400)
    assert isinstance(meta.version, str)
    _require_header(headers, VERSION_HEADER, meta.version)
    if meta.version not in MODERN_VERSIONS:
        raise _unsupported(meta.version)
    _require_header(headers, METHOD_HEADER, request.method)
    if parameter := NAMED_BY.get(request.method):
        value = getattr(request.params, parameter)
        if value is not UNSET:  # else it is an invalid parameter
            _require_header(headers, NAME_HEADER, value)


def _require_header(headers: Mapping[str, str], name: str, value: str) -> None:
    """Raise ProtocolError unless a header repeats the body's value."""
    given = headers.get(name)
    if given is None:
        raise ProtocolError(HEADER_MISMATCH, f"Header mismatch: {name} is missing.", status=400)
    shown = _decoded(given) if name == NAME_HEADER else given
    if shown != value:
        said = f"Header mismatch: {name} is '{given[:MAX_SHOWN]}', and the body has '{value[:MAX_SHOWN]}'."
        raise ProtocolError(HEADER_MISMATCH, said, status=400)


def _decoded(value: str) -> str | None:
    """Return the text of a header's value, which is in Base64 where it is no plain ASCII; None for invalid Base64."""
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value if value.isascii() else None
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _unsupported(version: str) -> ProtocolError:
    data = {"supported": VERSIONS, "requested": version[:MAX_SHOWN]}
    return ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", status=400, data=data)
