"""Messages that no client means: valid ones with parts changed, left out, repeated and broken.

By hand, against a running server: ``python -m tests.mcp.fuzzing URL COUNT``.
"""

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import aiohttp

from tests.mcp.client import META, headers_of, legacy, modern

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, 2**64, 10**30, "", " ", "a" * 3_000, "\x00", "\u202e", "ü", "../..", [], {}, [[]],
    {"a": {}}, "docs://open/", "docs://open/%ff%00", "docs://", "%", "-1", "0", "9" * 20, "\N{SUPERSCRIPT TWO}",
)  # fmt: skip
CALLS = (
    ("tools/call", {"name": "search", "arguments": {"query": "delay"}}),
    ("tools/call", {"name": "fetch", "arguments": {"id": "/retry#delay"}}),
    ("tools/call", {"name": "submit_feedback", "arguments": {"threadId": "t", "messageId": "m", "rating": "up"}}),
    ("tools/call", {"name": "ask", "arguments": {"question": " ", "threadId": "t"}}),
    ("resources/read", {"uri": "docs://open/retry"}),
    ("resources/list", {"cursor": "1"}),
    ("tools/list", {}),
    ("server/discover", {}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
    ("notifications/cancelled", {"requestId": 1}),
    ("prompts/get", {"name": "a"}),
)
"""Each costs no model."""


def messages(seed: int, count: int) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Yield bodies with their headers, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        method, params = chance.choice(CALLS)
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


async def statuses(url: str, seed: int, count: int, **headers: str) -> Counter[int]:
    """Return how often each status was answered."""
    found: Counter[int] = Counter()
    waiting = messages(seed, count)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as http:

        async def send() -> None:
            for body, more in waiting:
                sent = {"Content-Type": "application/json", **headers, **more}
                async with http.post(url, data=body, headers=sent) as response:
                    await response.read()
                    found[response.status] += 1
                    if response.status >= 500:
                        raise AssertionError(f"{response.status} for {body!r} with {more}")

        async with asyncio.TaskGroup() as senders:
            for _ in range(8):
                senders.create_task(send())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    parser.add_argument("--key", default="")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    key = {"Authorization": f"Bearer {given.key}"} if given.key else {}
    print(asyncio.run(statuses(given.url, given.seed, given.count, **key)))  # noqa: T201
