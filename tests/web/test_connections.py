"""Clients that are slow, many, or no clients at all, over raw sockets."""

import asyncio
import gzip
import io
import json
import os
import zlib
from contextlib import suppress

import aiohttp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.connections import MAX_FIELD_BYTES, MAX_FIELDS, ConnectionLimits
from service.web.http.problems import MAX_BODY_BYTES
from tests.web.entrance import entrance

QUICK = AdmissionSettings(
    connections=ConnectionLimits(head_seconds=0.2, idle_seconds=0.4, write_seconds=0.3), body_seconds=0.2
)
TIMEOUT = 60
EXAMPLES = int(os.environ.get("GARBAGE_TEST_EXAMPLES", "8"))


async def sent(entry, data, *, then=b"", eof=False):
    """What comes back until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)
    async with asyncio.timeout(TIMEOUT):
        writer.write(data)
        if then:
            await writer.drain()
            writer.write(then)
        if eof:
            writer.write_eof()
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
    writer.close()
    return answer


async def open_connections(entry, number):
    """Until there are so many."""
    async with asyncio.timeout(TIMEOUT):
        while entry.admission.connection_limiter.open != number:  # noqa: ASYNC110  (it publishes no event)
            await asyncio.sleep(0.01)


def problem_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert headers["content-type"].startswith("application/problem+json")
    assert "aiohttp" not in headers.get("server", "").lower()
    assert "python" not in headers.get("server", "").lower()
    assert headers["x-content-type-options"] == "nosniff"
    problem = json.loads(body)
    assert problem["status"] == int(lines[0].split()[1])
    return problem


async def test_non_http_request_is_answered_with_a_problem(tmp_path):
    async with entrance(tmp_path) as entry:
        for garbage in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            b"GET\r\n\r\n",
            b"\x00" * 50 + b"\r\n\r\n",
        ):
            problem = problem_of(await sent(entry, garbage))
            assert problem["code"] == "invalid_request"
            assert problem["requestId"].startswith("req_")


async def test_too_long_a_head_is_reported(tmp_path):
    async with entrance(tmp_path) as entry:
        long = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (MAX_FIELD_BYTES + 10) + b"\r\n\r\n"
        assert problem_of(await sent(entry, long))["code"] == "head_too_large"
        line = b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        assert problem_of(await sent(entry, line))["code"] == "head_too_large"
        many = b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (MAX_FIELDS + 1) + b"\r\n"
        assert problem_of(await sent(entry, many))["status"] in (400, 431)


async def test_unknown_expectation_is_a_problem(tmp_path):
    async with entrance(tmp_path) as entry:
        ask = b"GET /docs/errors/internal HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n"
        assert problem_of(await sent(entry, ask))["code"] == "expectation_failed"


async def test_expectation_that_is_no_text_is_refused(tmp_path):
    async with entrance(tmp_path) as entry:
        ask = b"GET /docs/errors/internal HTTP/1.1\r\nHost: x\r\nExpect: \xff\xfe\r\nConnection: close\r\n\r\n"
        problem = problem_of(await sent(entry, ask))
    assert (problem["status"], problem["code"]) == (417, "expectation_failed")


async def test_a_head_that_drips_is_cut_off(tmp_path):
    async with entrance(tmp_path, QUICK) as entry:
        reader, writer = await asyncio.open_connection("127.0.0.1", entry.port)

        async def drip():
            for byte in b"GET /docs/errors/internal HTTP/1.1\r\nHost: " + b"x" * 10_000:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        async with asyncio.timeout(TIMEOUT):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.close()


async def test_a_second_head_on_one_connection_has_its_own_clock(tmp_path):
    ask = b"GET /docs/errors/internal HTTP/1.1\r\nHost: x\r\n\r\n"
    async with entrance(tmp_path, QUICK) as entry:
        answer = await sent(entry, ask, then=ask + b"GET /half")
        assert answer.count(b"HTTP/1.1 200") == 2


async def test_idle_connection_is_closed(tmp_path):
    async with entrance(tmp_path, QUICK) as entry:
        assert await sent(entry, b"") == b""


async def test_body_that_does_not_come_is_reported(tmp_path):
    async with entrance(tmp_path, QUICK) as entry:
        token = await entry.key()
        head = (
            f"POST /v2/agent/alpha/job HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"
        )
        assert problem_of(await sent(entry, head.encode()))["code"] == "body_too_slow"


async def test_a_client_that_reads_nothing_is_cut_off(tmp_path):
    async with entrance(tmp_path, QUICK) as entry:
        _, writer = await asyncio.open_connection("127.0.0.1", entry.port, limit=1)
        writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        await writer.drain()
        await open_connections(entry, 0)
        writer.transport.abort()


async def test_number_of_connections_is_limited(tmp_path):
    few = AdmissionSettings(connections=ConnectionLimits(in_all=5))
    async with entrance(tmp_path, few) as entry:
        opened = [await asyncio.open_connection("127.0.0.1", entry.port) for _ in range(5)]
        await open_connections(entry, 5)
        assert problem_of(await sent(entry, b""))["code"] == "too_many_connections"
        for _, writer in opened:
            writer.close()
        await open_connections(entry, 0)
        answer = await sent(entry, b"GET /docs/errors/internal HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")


async def test_every_answer_carries_the_security_headers(tmp_path):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        for path in ("/docs/errors/internal", "/nothing", "/v2/agent/alpha/job"):
            async with http.get(entry.url + path) as response:
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["X-Frame-Options"] == "DENY"
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert "Server" not in response.headers


async def test_a_deep_body_is_only_a_bad_one(tmp_path):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {await entry.key()}", "Content-Type": "application/json"}
        for deep in (b"[" * 2_000_000, b'{"tree": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", b'{"a":' * 500_000):
            async with http.post(f"{entry.url}/v2/agent/alpha/job", data=io.BytesIO(deep), headers=headers) as response:
                assert response.status == 400
        large = b'{"text": "' + b"x" * MAX_BODY_BYTES + b'"}'
        async with http.post(f"{entry.url}/v2/agent/alpha/job", data=io.BytesIO(large), headers=headers) as response:
            assert response.status == 413
            assert (await response.json())["code"] == "body_too_large"


async def test_connection_ends_with_a_body_that_cannot_be_read(tmp_path):
    async with entrance(tmp_path) as entry:
        head = f"Authorization: Bearer {await entry.key()}\r\nContent-Type: application/json\r\nHost: x\r\n"
        request = f"POST /v2/agent/alpha/job HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n"
        answer = await sent(entry, request.encode() + b"zzz\r\n{}\r\n")
        assert b" 400 " in answer.partition(b"\r\n")[0]  # and nothing more is read


async def test_compressed_body_is_read_or_refused(tmp_path):
    bodies = {(200, "gzip"): b"{}", (200, "deflate"): b"{}", (413, "gzip"): bytes(6_000_000), (415, "br"): b"{}"}
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {await entry.key()}", "Content-Type": "application/json"}
        for (status, coding), body in bodies.items():
            packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
            coded = {**headers, "Content-Encoding": coding}
            async with http.post(f"{entry.url}/v2/agent/alpha/job", data=packed, headers=coded) as response:
                assert (response.status, coding) == (status, coding), await response.text()


HEADS = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from([
        b"GET ", b"POST ", b"/", b"/v2/agent/alpha/job", b"//", b"/%00", b"?a=%ff", b" HTTP/1.1", b" HTTP/9.9", b"\r\n",
        b"\n", b"\r\n\r\n", b"Host: x", b"Content-Length: -1", b"Content-Length: 5", b"Content-Length: 999999999999999",
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Content-Encoding: gzip", b"Expect: tea",
        b"Upgrade: websocket", b"Connection: upgrade", b"Authorization: Bearer \xff\xfe", b"X-Request-Id: \x01",
        b"X-Forwarded-For: ,,,", b"zzz\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"\x00", b" ", b":",
    ]), max_size=14).map(b"".join),
)  # fmt: skip
BODIES = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=10), st.integers()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["text", "tree", "x"]), inner, max_size=3)
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(HEADS, min_size=5, max_size=15), st.lists(BODIES, min_size=5, max_size=15))
def test_garbage_is_never_our_fault(tmp_path_factory, heads, bodies):
    """No 5xx, no trace, and the entry stays open."""

    async def play():
        patient = replace(QUICK, body_seconds=60)  # those below are whole, however late
        async with (
            entrance(tmp_path_factory.mktemp("admission"), patient) as entry,
            aiohttp.ClientSession() as http,
        ):
            answers = await asyncio.gather(*(sent(entry, head, eof=True) for head in heads))
            for answer in answers:
                assert b" 50" not in answer[:15]
                assert b"Traceback" not in answer
            headers = {"Authorization": f"Bearer {await entry.key()}", "Content-Type": "application/json"}
            for body in bodies:
                async with http.post(f"{entry.url}/v2/agent/alpha/job", data=body, headers=headers) as response:
                    assert response.status in (200, 400), await response.text()

    asyncio.run(play())


async def test_head_is_the_same_when_the_connection_ends(tmp_path):
    async with entrance(tmp_path) as entry, aiohttp.ClientSession() as session:
        heads = []
        for headers in ({}, {"Connection": "close"}):
            async with session.get(f"{entry.url}/git/alpha", headers=headers | {"X-Request-Id": "one"}) as response:
                body = await response.read()
                heads.append({name.lower(): value for name, value in response.headers.items()})
        going_on, ending = heads
        assert going_on | {"date": ending["date"], "connection": "close"} == ending
        assert (going_on["content-length"], going_on["x-request-id"]) == (str(len(body)), "one")
