"""Attacks by connections, heads and bodies."""

import asyncio
import gzip
import hmac
import json
import random
import zlib

from scripts.attacks.attack import (
    Answers,
    Attack,
    again_and_again,
    at_once,
    attack,
    connection,
    head_of,
    read_status,
    send,
    session,
    until_answered,
)
from scripts.attacks.ground import Target
from service.domain.access.keys import BASE62, make_token

JSON = {"Content-Type": "application/json"}


async def _dribble(target: Target, answers: Answers, sent: bytes, seconds: float = 1.0) -> None:
    async with connection(target) as (reader, writer):
        reading = asyncio.create_task(read_status(reader, answers))
        try:
            for place in range(len(sent)):
                writer.write(sent[place : place + 1])
                await asyncio.wait([reading], timeout=seconds)
                if reading.done():
                    return
            await reading
        finally:
            reading.cancel()


@attack("heads that come a byte a second (slowloris)", "408", "cut")
async def slow_heads(target: Target, answers: Answers) -> None:
    sent = head_of(target, "GET", "/healthz", {"X-Long": "y" * 1_000})
    await at_once(target.many(400), lambda _: _dribble(target, answers, sent))


@attack("bodies of which one byte comes a second", "408", "cut")
async def slow_bodies(target: Target, answers: Answers) -> None:
    path = f"/discovery/v1/search/{target.a.domain}"
    sent = head_of(target, "POST", path, {**target.a.assistant, **JSON, "Content-Length": "5000000"})

    async def one(_: int) -> None:
        async with connection(target) as (reader, writer):
            writer.write(sent)
            await until_answered(reader, writer, answers, b" ")

    await at_once(target.many(200), one)


@attack("bodies that never come", "408", "cut")
async def stalled_bodies(target: Target, answers: Answers) -> None:
    async def one(place: int) -> None:
        paths = (
            f"/discovery/v2/assistant/{target.a.domain}/message", f"/hooks/{target.a.project_id}",
            f"/v2/agent/{target.a.project_id}/job",
        )  # fmt: skip
        key = target.a.admin if place % 3 == 2 else target.a.assistant
        async with connection(target) as (reader, writer):
            writer.write(head_of(target, "POST", paths[place % 3], {**key, **JSON, "Content-Length": "5000000"}) + b"{")
            await read_status(reader, answers)

    await at_once(target.many(200), one)


@attack("a hundred fields of 16 KB each, again and again", "431", "400", "cut")
async def header_floods(target: Target, answers: Answers) -> None:
    sent = head_of(target, "GET", "/healthz", {f"X-{n}": "y" * 16_000 for n in range(100)})

    async def one(_: int) -> None:
        async with connection(target) as (reader, writer):
            writer.write(sent)
            await read_status(reader, answers)

    await again_and_again(target.many(20), one)


@attack("connections that send nothing", "408", "cut")
async def idle_connections(target: Target, answers: Answers) -> None:
    async def one(_: int) -> None:
        async with connection(target) as (reader, _):
            await read_status(reader, answers)

    await at_once(target.many(3_000), one)


@attack("thousands of requests on one connection, whose answers are not read", "200", "cut")
async def pipelines_not_read(target: Target, answers: Answers) -> None:
    sent = head_of(target, "GET", "/openapi.json", {}) * 2_000

    async def one(_: int) -> None:
        async with connection(target) as (_, writer):
            writer.write(sent)
            await writer.drain()
            answers["cut"] += 1

    await again_and_again(target.many(20), one)


@attack("bodies of a million brackets", "400", "cut")
async def deep_json(target: Target, answers: Answers) -> None:
    bodies = (b"[" * 1_000_000, b'{"a":' * 800_000, b'{"query":' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}")
    async with session() as http:

        async def one(place: int) -> None:
            url = target.assistant("v1/search/{}")
            await send(http, answers, "POST", url, data=bodies[place % 3], headers={**target.a.assistant, **JSON})

        await again_and_again(target.many(8), one)


@attack("bodies of 5 MB: many messages, many fields, one long number, one long text", "400", "200", "cut")
async def wide_json(target: Target, answers: Answers) -> None:
    bodies = (
        b'{"fp":"a","messages":[' + b"{}," * 1_500_000 + b"{}]}",
        b'{"fp":"a","messages":[' + b'{"role":"assistant","parts":[]},' * 150_000 + b'{"role":"user","content":"x"}]}',
        b"{" + b",".join(b'"f%d":1' % n for n in range(400_000)) + b"}",
        b'{"fp":"a","messages":' + b"9" * 4_000_000 + b"}",
        b'{"fp":"a","messages":["' + b"\\u0000" * 800_000 + b'"]}',
    )
    async with session() as http:

        async def one(place: int) -> None:
            body = bodies[place % len(bodies)]
            await send(http, answers, "POST", target.assistant(), data=body, headers={**target.a.assistant, **JSON})

        await again_and_again(target.many(8), one)


@attack("bodies that unpack to gigabytes, or do not unpack", "400", "413", "415", "cut")
async def compressed_bodies(target: Target, answers: Answers) -> None:
    bomb = zlib.compress(bytes(100_000_000), 9)
    packed = gzip.compress(bytes(100_000_000), 9)
    bodies = (("deflate", bomb), ("gzip", packed), ("gzip", b"not gzip"), ("br", b"\xff" * 1_000), ("zstd", b"(\xb5/"))
    async with session() as http:

        async def one(place: int) -> None:
            encoding, body = bodies[place % len(bodies)]
            headers = {**target.a.assistant, **JSON, "Content-Encoding": encoding}
            await send(http, answers, "POST", target.assistant("v1/search/{}"), data=body, headers=headers)

        await again_and_again(target.many(10), one)


@attack(
    "ranges by the thousand, and other odd fields, of every public page",
    "200",
    "206",
    "400",
    "401",
    "416",
    "431",
    "cut",
)
async def ranges(target: Target, answers: Answers) -> None:
    headers = {
        "Range": "bytes=" + ",".join(f"{n}-" for n in range(2_000)), "If-None-Match": ",".join(['"x"'] * 1_500),
        "Accept": ",".join(["a/b;q=0.1"] * 1_200), "Accept-Encoding": ",".join(["gzip;q=0"] * 1_000),
        "Cookie": ";".join(["a=b"] * 3_000),
    }  # fmt: skip
    async with session() as http:

        async def one(place: int) -> None:
            pages = ("/docs", "/docs/listKeys", f"/docs?q=job+{place}", "/docs/errors/not_found")
            path = (*pages, "/openapi.json", "/readyz")[place % 6]
            await send(http, answers, "GET", target.url + path, headers=headers)

        await again_and_again(target.many(20), one)


@attack("keys that have the form of one and are unknown", "401", "cut")
async def unknown_keys(target: Target, answers: Answers) -> None:
    async with session() as http:

        async def one(_: int) -> None:
            token = make_token("assistant", "".join(random.choices(BASE62, k=30)))
            headers = {"Authorization": f"Bearer {token}", **JSON}
            await send(http, answers, "POST", target.assistant(), data=b"{}", headers=headers)

        await again_and_again(target.many(40), one)


@attack("preflights without end", "200", "204", "cut")
async def preflights(target: Target, answers: Answers) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    async with session() as http:
        await again_and_again(
            target.many(40), lambda _: send(http, answers, "OPTIONS", target.assistant(), headers=headers)
        )


@attack(
    "notices of a code host of 5 MB, with wrong signatures and with right ones",
    "404",
    "400",
    "202",
    "204",
    "413",
    "cut",
)
async def hooks(target: Target, answers: Answers) -> None:
    body = json.dumps(
        {"ref": "refs/heads/main", "commits": [{"added": ["x" * 100] * 40} for _ in range(1_000)]}
    ).encode()
    right = hmac.digest(target.a.hook_secret.encode(), body, "sha256").hex()
    async with session() as http:

        async def one(place: int) -> None:
            signature = right if place % 2 else "0" * 64
            headers = {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": "push", **JSON}
            headers["X-GitHub-Delivery"] = f"siege-{place}"
            await send(http, answers, "POST", f"{target.url}/hooks/{target.a.project_id}", data=body, headers=headers)

        await again_and_again(target.many(10), one)


ATTACKS: tuple[Attack, ...] = (
    slow_heads, slow_bodies, stalled_bodies, header_floods, idle_connections, pipelines_not_read, deep_json, wide_json,
    compressed_bodies, ranges, unknown_keys, preflights, hooks,
)  # fmt: skip
