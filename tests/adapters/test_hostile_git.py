"""What a git server sends in place of a repository becomes an error that says so, and a job can go on."""

import hashlib
import struct
import zlib

import pytest
from aiohttp import web

from service.adapters.git.dulwich_docs import DulwichDocs
from service.domain.errors import Unavailable
from service.ports.docs_source import Source

BLOB, TREE, COMMIT, REF_DELTA = 3, 2, 1, 7
KINDS = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
ABSENT = b"a" * 40
CAPABILITIES = b"side-band-64k shallow symref=HEAD:refs/heads/main"


def line(text):
    return b"%04x" % (len(text) + 4) + text


def name_of(kind, content):
    return hashlib.sha1(KINDS[kind] + b" %d\0" % len(content) + content).hexdigest().encode()


def entry(kind, content, base=b""):
    """Return one of a pack, of less than 2,048 bytes."""
    head = bytes([kind << 4 | len(content) & 15 | 0x80, len(content) >> 4])
    return head + base + zlib.compress(content)


def pack(*entries, count=None):
    packed = b"PACK" + struct.pack(">II", 2, len(entries) if count is None else count) + b"".join(entries)
    return packed + hashlib.sha1(packed).digest()


def sent(packed):
    return b"0000" + line(b"NAK\n") + line(b"\1" + packed) + b"0000"


HELLO = entry(BLOB, b"hello")
BASE = bytes.fromhex(name_of(BLOB, b"hello").decode())
ANSWERS = {
    "another object": sent(pack(HELLO)),
    "more objects than there are": sent(pack(HELLO, count=4_000_000_000)),
    "an object of another length": sent(pack(b"\xb3\x00" + zlib.compress(b"hello"))),
    "a delta of nothing": sent(pack(entry(REF_DELTA, b"\5\5\x90\5", b"\x11" * 20))),
    "a delta that lies": sent(pack(HELLO, entry(REF_DELTA, b"\5\x7f\x90\5", BASE))),
}


@pytest.fixture
async def hostile(aiohttp_server):
    """Return a function that starts a server with these answers, and returns the source that it is."""

    async def start(answer, commit=ABSENT, **headers):
        async def refs(_):
            first = line(commit + b" refs/heads/main\0" + CAPABILITIES + b"\n")
            body = line(b"# service=git-upload-pack\n") + b"0000" + first + b"0000"
            return web.Response(body=body, content_type="application/x-git-upload-pack-advertisement")

        async def packed(_):
            return web.Response(body=answer, content_type="application/x-git-upload-pack-result", headers=headers)

        app = web.Application()
        app.router.add_get("/code.git/info/refs", refs)
        app.router.add_post("/code.git/git-upload-pack", packed)
        server = await aiohttp_server(app)
        return Source("p1", str(server.make_url("/code.git")), "main", "", "github", context="code")

    return start


@pytest.fixture
def docs(tmp_path):
    return DulwichDocs(tmp_path, env={}, allow_private=True)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_damaged_pack_of_a_server_is_called_that(hostile, docs, answer):
    with pytest.raises(Unavailable, match=r"sent a damaged pack|did not send what main names"):
        await docs.fetch(await hostile(answer))


async def test_damaged_compression_of_an_answer_is_reported(hostile, docs):
    source = await hostile(b"no gzip", **{"Content-Encoding": "gzip"})
    with pytest.raises(Unavailable, match="did not answer as a git server does"):
        await docs.fetch(source)
