"""Raw HTTP requests that no client should send, and a client that sends them and reads what is answered."""

import asyncio
import base64
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tests.service_process import Service

QUICK = {
    "DOCSMITH_SERVER__HEAD_SECONDS": "1",
    "DOCSMITH_SERVER__BODY_SECONDS": "1",
    "DOCSMITH_SERVER__IDLE_SECONDS": "2",
    "DOCSMITH_SERVER__WRITE_SECONDS": "5",
}
"""Settings with which what never arrives is not waited for long."""
ANSWER_SECONDS = 120
"""A bound, for a machine that has much else to do."""
MAX_ANSWER_BYTES = 1 << 20
DEEP = 20_000

Random = random.Random
Fields = list[tuple[bytes, bytes]]


class Raw:
    """A request by its parts, before it is put together."""

    def __init__(self, method: str, target: str, fields: Fields, body: bytes = b"") -> None:
        self.method, self.target, self.version = method.encode(), target.encode(), b"HTTP/1.1"
        self.fields, self.body, self.end = fields, body, b"\r\n"

    def bytes(self) -> bytes:
        lines = [b" ".join((self.method, self.target, self.version)), *(b": ".join(field) for field in self.fields)]
        return self.end.join([*lines, b"", b""]) + self.body


def requests_of(service: Service, seed: int) -> Iterator[bytes]:
    """Requests without end, the same ones for the same seed."""
    rng = Random(seed)
    while True:
        raw = rng.choice(BASES)(service, rng)
        for _ in range(rng.choice((1, 1, 2, 3))):
            rng.choice(MUTATIONS)(raw, rng)
        whole = raw.bytes()
        for _ in range(rng.choice((0, 0, 0, 1, 5))):
            whole = rng.choice(SPOILERS)(whole, rng)
        yield whole


def _fields(service: Service, key: str) -> Fields:
    return [
        (b"Host", b"127.0.0.1"),
        (b"Connection", b"close"),
        (b"Authorization", f"Bearer {key}".encode()),
    ]


def _get(path: str, *, admin: bool = True) -> Callable[[Service, Random], Raw]:
    def made(service: Service, _: Random) -> Raw:
        key = service.admin_key if admin else service.assistant_key
        return Raw("GET", path.format(project=service.project_id, domain=service.domain), _fields(service, key))

    return made


def _post(path: str, body: bytes, *, admin: bool = False, kind: bytes = b"application/json") -> Any:
    def made(service: Service, _: Random) -> Raw:
        raw = _get(path, admin=admin)(service, _)
        raw.method, raw.body = b"POST", body
        raw.fields += [(b"Content-Type", kind), (b"Content-Length", str(len(body)).encode())]
        return raw

    return made


def _git(path: str, body: bytes | None = None) -> Any:
    def made(service: Service, _: Random) -> Raw:
        target = f"/hosted/{service.project_id}.git/{path}"
        shown = base64.b64encode(f"docsmith:{service.admin_key}".encode())
        fields = [(b"Host", b"x"), (b"Connection", b"close"), (b"Authorization", b"Basic " + shown)]
        if body is None:
            return Raw("GET", target, fields)
        kind = f"application/x-{path}-request".encode()
        return Raw("POST", target, [*fields, (b"Content-Type", kind), (b"Content-Length", b"%d" % len(body))], body)

    return made


CHAT = b'{"fp":"anonymous","messages":[{"role":"user","parts":[{"type":"text","text":"How?"}]}]}'
HEAD = b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/x\x00 report-status"
BASES = (
    *map(
        _get,
        (
            "/healthz", "/readyz", "/readyz/requests", "/openapi.json", "/docs", "/docs/errors/not_found", "/metrics",
            "/nothing", "/manual", "/manual/start",
            "/v2/agent/{project}/jobs?limit=2", "/v2/agent/{project}/job/x", "/v2/agent/{project}/job/x/events",
            "/v1/agent/{project}/jobs?skip=1", "/v1/analytics/{project}/assistant?format=csv",
            "/v1/analytics/{project}/feedback?dateFrom=2026-01-01", "/hosted/{project}/pulls/1",
        ),
    ),
    _get("/discovery/v2/assistant/{domain}/message/chat/stream", admin=False),
    _post("/v2/agent/{project}/job", b'{"prompt":"Make it sing"}', admin=True),
    _post("/v2/agent/{project}/job/x/message", b'{"prompt":"Make it sing"}', admin=True),
    _post("/v1/agent/{project}/job", b'{"messages":[{"role":"user","content":"Sing"}]}', admin=True),
    _post("/discovery/v2/assistant/{domain}/message", CHAT),
    _post("/discovery/v1/assistant/{domain}/message", CHAT),
    _post("/discovery/v1/search/{domain}", b'{"query":"retry"}'),
    _post("/discovery/v1/page/{domain}", b'{"path":"install.md"}'),
    _post("/discovery/v1/feedback/{domain}", b'{"threadId":"x","messageId":"y","rating":"up"}'),
    _post("/hooks/{project}", b'{"ref":"refs/heads/main"}'),
    _git("info/refs?service=git-upload-pack"),
    _git("info/refs?service=git-receive-pack"),
    _git("git-upload-pack", b"0032want " + b"1" * 40 + b"\n00000009done\n"),
    _git("git-receive-pack", b"%04x" % (len(HEAD) + 4) + HEAD + b"0000PACK\x00\x00\x00\x02\x00\x00\x00\x01"),
)  # fmt: skip

ODD = (
    b"", b" ", b"\x00", b"\x7f", b"\xff\xfe", b"\xc3\xa4", b"a" * 9_000, b"a" * 70_000, b"-1", b"1e9", b"0x10", b"+5",
    b"99999999999999999999999", b"nonsense", b'"', b"*", b"../..", b"%00", b"%zz", b"\r", b"\t", b"null", b"{", b"[",
    b"a,b,,c;q=1;;=", b"bytes=0-1,5-,-7", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"'; DROP TABLE events; --", b"${jndi:x}",
)  # fmt: skip
NAMES = (
    b"Host", b"Content-Length", b"Transfer-Encoding", b"Content-Encoding", b"Content-Type", b"Authorization", b"Accept",
    b"Accept-Encoding", b"Range", b"If-None-Match", b"If-Modified-Since", b"Idempotency-Key", b"Last-Event-ID",
    b"Origin", b"X-Forwarded-For", b"Forwarded", b"X-Request-Id", b"X-Thread-Key", b"X-Thread-Id", b"Cookie", b"Expect",
    b"Upgrade", b"Connection", b"TE", b"Trailer", b"Git-Protocol", b"User-Agent", b"X-Hub-Signature-256",
    b"Access-Control-Request-Method", b"Sec-WebSocket-Key", b"", b" ", b"A b", b"\x00", b"\xc3\xa4", b"X" * 9_000,
)  # fmt: skip
VALUES = (
    *ODD, b"chunked", b"gzip, chunked", b"chunked, chunked", b"identity", b"gzip", b"deflate", b"br", b"zstd",
    b"100-continue", b"101-nonsense", b"websocket", b"h2c", b"close, keep-alive", b"application/json; charset=utf-16",
    b"multipart/form-data", b"Bearer", b"Bearer \xff", b"Basic !!!", b"Digest x", b"for=[::1]:99999;proto=\"",
    b"http://[", b"null", b"version=2", b"0", b"1", b"5", b"1000000000",
)  # fmt: skip
BODIES = (
    b"", b"\x00", b"{", b"}", b"[" * DEEP, b'{"a":' * DEEP, b'"' + b"\\" * 99, b"NaN", b"1e999999",
    b'{"prompt":"\\ud800"}',
    b'\xef\xbb\xbf{"prompt":"x"}', b'{"prompt":"x"}{', b'{"prompt":"x","prompt":"y"}', b'{"prompt":"\x00"}',
    b"\xff" * 64,
    b'{"query":' + b"9" * 5_000 + b"}", b'{"prompt":"' + b"\\u0000" * 5_000 + b'"}',
    b'{"messages":[' + b"{}," * 5_000 + b"{}]}",
    CHAT[:-1], CHAT.replace(b'"user"', b"null"), CHAT.replace(b'"How?"', b"{}"), CHAT.replace(b"[{", b"{", 1),
    zlib.compress(CHAT), b"\x1f\x8b\x08\x00" + b"\x00" * 40, b"0000" * 2_000, b"ffff", b"0005", b"zzzz", b"PACK" * 100,
    b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\nhello\r\n", b"ffffffffffffffff\r\n", b"-5\r\n",
    b"5;" + b"x" * 9_000 + b"\r\nhello\r\n",
    b"0\r\nTrailer\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
)  # fmt: skip
METHODS = (
    b"get", b"", b"G\x00T", b"BREW", b"CONNECT", b"TRACE", b"PRI", b"OPTIONS", b"HEAD", b"DELETE", b"M" * 9_000,
    b"GET\t",
    b"\xc3\xa4", b"GET POST",
)  # fmt: skip
TARGETS = (
    b"", b"*", b"//", b"/..//../", b"http://example.com/healthz", b"http://[::1", b"example.com:443", b"/%", b"/%ff%fe",
    b"/\x00", b"/ /", b"/\xff", b"?", b"/healthz#x", b"/healthz?" + b"x=1&" * 4_000, b"/" + b"a/" * 4_000,
    b"/a" * 5_000,
    b"\\", b"/v2/agent/%2e%2e/jobs", b"/hosted/%00.git/info/refs?service=git-upload-pack", b"/hosted/..git/info/refs",
)  # fmt: skip
VERSIONS = (
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/9.9",
    b"http/1.1",
    b"HTTP/1.1 x",
    b"",
    b"HTTP/1",
    b"\x00",
    b"ICY",
)


def _method(raw: Raw, rng: Random) -> None:
    raw.method = rng.choice(METHODS)


def _target(raw: Raw, rng: Random) -> None:
    raw.target = rng.choice(TARGETS) if rng.random() < 0.5 else raw.target + rng.choice(ODD)


def _version(raw: Raw, rng: Random) -> None:
    raw.version = rng.choice(VERSIONS)


def _field(raw: Raw, rng: Random) -> None:
    raw.fields.insert(rng.randint(0, len(raw.fields)), (rng.choice(NAMES), rng.choice(VALUES)))


def _value(raw: Raw, rng: Random) -> None:
    at = rng.randrange(len(raw.fields)) if raw.fields else 0
    raw.fields[at : at + 1] = [(raw.fields[at][0] if raw.fields else b"Host", rng.choice(VALUES))]


def _no_field(raw: Raw, rng: Random) -> None:
    if raw.fields:
        del raw.fields[rng.randrange(len(raw.fields))]


def _many_fields(raw: Raw, rng: Random) -> None:
    raw.fields += [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.choice((5, 50, 300)))]


def _same_field(raw: Raw, rng: Random) -> None:
    if raw.fields:
        raw.fields.append(rng.choice(raw.fields))


def _body(raw: Raw, rng: Random) -> None:
    raw.body = rng.choice(BODIES)
    if rng.random() < 0.7:
        raw.fields = [field for field in raw.fields if field[0] != b"Content-Length"]
        raw.fields.append((b"Content-Length", b"%d" % len(raw.body)))


def _query(raw: Raw, rng: Random) -> None:
    name = rng.choice((b"limit", b"cursor", b"wait", b"dateFrom", b"format", b"service", b"threadKey", b"skip"))
    raw.target += rng.choice((b"?", b"&")) + name + b"=" + rng.choice(ODD)


def _line_ends(raw: Raw, rng: Random) -> None:
    raw.end = rng.choice((b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n ", b"\x00\r\n"))


MUTATIONS = (
    _method, _target, _version, _field, _field, _value, _value, _no_field, _many_fields, _same_field, _body, _body,
    _query, _line_ends,
)  # fmt: skip


def _flip(whole: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(whole)) if whole else 0
    return whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :]


def _drop(whole: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(whole)) if whole else 0
    return whole[:at] + whole[at + rng.choice((1, 2, 10)) :]


def _insert(whole: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(whole))
    return whole[:at] + rng.choice(ODD) + whole[at:]


def _cut(whole: bytes, rng: Random) -> bytes:
    return whole[: rng.randint(0, len(whole))]


def _twice(whole: bytes, _: Random) -> bytes:
    return whole + whole


def _before(whole: bytes, rng: Random) -> bytes:
    return (
        rng.choice((b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00", b" ")) + whole
    )


SPOILERS = (_flip, _flip, _drop, _insert, _cut, _twice, _before)


async def answers_to(port: int, sent: bytes) -> list[int]:
    """Send, read all that is answered, and return the statuses; empty when the connection was closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            with suppress(ConnectionError):  # it may be closed while we still send
                writer.write(sent)
                await writer.drain()
            with suppress(ConnectionError):
                while len(got) < MAX_ANSWER_BYTES and (piece := await reader.read(1 << 16)):
                    got += piece
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return [int(status) for status in re.findall(rb"(?m)^HTTP/1\.[01] (\d{3}) ", got)]


async def send_malformed(
    service: Service, *, number: int, seed: int, at_once: int = 16
) -> tuple[Counter[str], list[bytes]]:
    """Send so many requests; return how often each status came, and the requests that got a 5xx other than 503."""
    port = int(service.each[0].url.rpartition(":")[2])  # a proxy between would wait for the rest of what is cut off
    counts: Counter[str] = Counter()
    wrong: list[bytes] = []
    requests = requests_of(service, seed)
    left = number

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            sent = next(requests)
            try:
                statuses = await answers_to(port, sent)
            except TimeoutError:
                counts["no end"] += 1
                wrong.append(sent)
                continue
            counts.update(map(str, statuses) if statuses else ["closed"])
            if any(status >= 500 and status != 503 for status in statuses):
                wrong.append(sent)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return counts, wrong
