"""Messages that no client means: valid ones with parts changed, left out, repeated and broken.

``scripts/fuzz --mcp 20000`` sends that number to each server of a service.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import aiohttp

from tests.mcp.client import META, headers_of, legacy, modern

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, 2**64, 10**30, "", " ", "a" * 3_000, "\x00", "\u202e", "ü", "../..", [], {}, [[]],
    {"a": {}}, "docs://open/", "docs://open/%ff%00", "docs://", "%", "-1", "0", "9" * 20, "\N{SUPERSCRIPT TWO}",
)  # fmt: skip
Calls = Sequence[tuple[str, dict[str, Any]]]
BOTH: Calls = (
    ("tools/list", {}),
    ("server/discover", {}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
    ("notifications/cancelled", {"requestId": 1}),
    ("prompts/get", {"name": "a"}),
)
CALLS: Calls = (
    ("tools/call", {"name": "search", "arguments": {"query": "delay"}}),
    ("tools/call", {"name": "fetch", "arguments": {"id": "/retry#delay"}}),
    ("tools/call", {"name": "submit_feedback", "arguments": {"threadId": "t", "messageId": "m", "rating": "up"}}),
    ("tools/call", {"name": "ask", "arguments": {"question": " ", "threadId": "t"}}),
    ("resources/read", {"uri": "docs://open/retry"}),
    ("resources/list", {"cursor": "1"}),
    *BOTH,
)
"""To a site's server. Each costs no model."""
ADMIN_CALLS: Calls = (
    ("tools/call", {"name": "create_job", "arguments": {"project": "nowhere", "prompt": "x", "idempotencyKey": "k"}}),
    ("tools/call", {"name": "job_status", "arguments": {"jobId": "nothing", "waitSeconds": 1}}),
    ("tools/call", {"name": "message_job", "arguments": {"jobId": "nothing", "prompt": "x"}}),
    ("tools/call", {"name": "list_unanswered", "arguments": {"days": 3, "limit": 2, "cursor": "0"}}),
    ("tools/call", {"name": "show_thread", "arguments": {"threadId": "nothing", "limit": 2, "cursor": "1"}}),
    ("resources/read", {"uri": "docs://open/retry"}),
    *BOTH,
)
"""To the server for an organization's own agents. Hardly one of them makes a job."""


def messages(seed: int, count: int, calls: Calls) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Yield bodies with their headers, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        method, params = chance.choice(calls)
        is_modern = chance.random() < 0.5
        message = modern(method, params, progressToken=1) if is_modern else legacy(method, params)
        message = json.loads(json.dumps(message))  # its parts are its own
        headers = headers_of(message) if is_modern else {}
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            _change(message, chance)
        for name in list(headers):
            if chance.random() < 0.05:
                headers[name] = chance.choice(["", "x", "=?base64?%?=", "=?base64?/w==?=", f"{META}x"])
        body = json.dumps(message).encode()
        if chance.random() < 0.2:
            body = _broken(body, chance)
        yield body, headers


def _change(value: Any, chance: random.Random) -> None:
    """Change one place of a message, at any depth."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = chance.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and chance.random() < 0.7:
            value = value[key]
            continue
        kind = chance.random()
        if kind < 0.2:
            del value[key]
        elif kind < 0.3 and isinstance(value, dict):
            value[str(chance.choice(ODD))[:20]] = deepcopy(value[key])
        else:
            value[key] = deepcopy(chance.choice(ODD))
        return


def _broken(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    kind = chance.randrange(6)
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + bytes(chance.choices(range(256), k=3)) + body[at:]
    if kind == 2:
        return body + body
    if kind == 3:
        return b"[" * chance.randrange(5_000) + body
    if kind == 4:
        return body[:at] + chance.choice([rb"\ud800", rb"\u0000", rb"\x", b"\xff\xfe", b"NaN", b"1e999"]) + body[at:]
    return b"\xef\xbb\xbf" + body


async def send_all(
    url: str, seed: int, count: int, calls: Calls = CALLS, **headers: str
) -> tuple[Counter[int], list[str]]:
    """Return how often each status was answered, and the messages that were answered with an error of the server."""
    found: Counter[int] = Counter()
    wrong: list[str] = []
    waiting = messages(seed, count, calls)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as http:

        async def send() -> None:
            for body, more in waiting:
                sent = {"Content-Type": "application/json", **headers, **more}
                async with http.post(url, data=body, headers=sent) as response:
                    await response.read()
                    found[response.status] += 1
                    if response.status >= 500:
                        wrong.append(f"{response.status} for {body!r} with {more}")

        async with asyncio.TaskGroup() as senders:
            for _ in range(8):
                senders.create_task(send())
    return found, wrong
