"""The codec: which messages are read, and which error each other one has."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from service.wire.mcp.requests import VERSIONS, ProtocolError, read_request
from service.wire.mcp.results import encode_error
from tests.mcp.client import META, headers_of, legacy, modern


def read(message, headers=None):
    return read_request(json.dumps(message).encode(), headers or {})


def refused(message, headers=None):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    with pytest.raises(ProtocolError) as caught:
        read_request(body, headers or {})
    return caught.value.status, caught.value.code, json.loads(encode_error(caught.value)).get("id")


def test_modern_request_is_read():
    message = modern("tools/call", {"name": "search", "arguments": {"query": "a"}}, id_="x", progressToken=7)
    request = read(message, headers_of(message))
    assert (request.id, request.method, request.is_modern) == ("x", "tools/call", True)
    assert (request.params.name, request.params.meta.progress_token) == ("search", 7)
    assert json.loads(bytes(request.params.arguments)) == {"query": "a"}


@pytest.mark.parametrize("version", [None, "2025-11-25", "2025-06-18", "2025-03-26"])
def test_legacy_request_is_read(version):
    request = read(legacy("tools/list"), {"MCP-Protocol-Version": version} if version else {})
    assert (request.method, request.is_modern) == ("tools/list", False)


def test_missing_metadata_comes_before_headers():
    version = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "another"}
    assert refused(legacy("tools/list"), version) == (400, -32602, 1)
    message = modern("tools/list")
    del message["params"]["_meta"][f"{META}clientCapabilities"]
    assert refused(message, version) == (400, -32602, 1)


@pytest.mark.parametrize("capabilities", [None, [], 1, "{}"])
def test_capabilities_are_an_object(capabilities):
    message = modern("tools/list", **{f"{META}clientCapabilities": capabilities})
    assert refused(message, headers_of(message)) == (400, -32602, 1)


def test_large_capabilities_are_not_decoded():
    message = modern("tools/list", **{f"{META}clientCapabilities": {"extensions": [[]] * 100_000}})
    assert isinstance(read(message, headers_of(message)).params.meta.capabilities, Raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "Tools/Call"},
        {"Mcp-Name": None},
        {"Mcp-Name": "fetch"},
        {"Mcp-Name": "=?base64?!!!?="},
    ],
)
def test_header_that_differs_from_the_body_is_refused(changes):
    message = modern("tools/call", {"name": "search"})
    headers = {name: value for name, value in {**headers_of(message), **changes}.items() if value is not None}
    assert refused(message, headers) == (400, -32020, 1)


def test_header_in_base64_is_read():
    message = modern("resources/read", {"uri": "docs://a/ü"})
    headers = {**headers_of(message), "Mcp-Name": "=?base64?ZG9jczovL2Evw7w=?="}
    assert read(message, headers).params.uri == "docs://a/ü"


def test_unknown_version_names_the_supported_ones():
    message = modern("tools/list")
    message["params"]["_meta"][f"{META}protocolVersion"] = "1900-01-01"
    headers = {**headers_of(message), "MCP-Protocol-Version": "1900-01-01"}
    with pytest.raises(ProtocolError) as caught:
        read(message, headers)
    assert (caught.value.status, caught.value.code) == (400, -32022)
    assert caught.value.data == {"supported": VERSIONS, "requested": "1900-01-01"}
    assert refused(legacy("tools/list"), {"MCP-Protocol-Version": "1900-01-01"}) == (400, -32022, 1)


@pytest.mark.parametrize(
    ("body", "code", "id_"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":' + b"[" * 99_999, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":-9223372036854775809,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % 10**30, -32602, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"a" * 1_001), -32600, None),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":"%s"}}}' % (b"a" * 1_001),
            -32602,
            1,
        ),
    ],
)
def test_message_that_does_not_fit_is_refused(body, code, id_):
    assert refused(body) == (400, code, id_)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result"]), JSON | st.just("2.0")),
    st.dictionaries(st.sampled_from(["MCP-Protocol-Version", "Mcp-Method"]), st.sampled_from([*VERSIONS, "x"])),
)
def test_any_message_is_read_or_refused(message, headers):
    with suppress(ProtocolError):
        assert read(message, headers).method == message["method"]
