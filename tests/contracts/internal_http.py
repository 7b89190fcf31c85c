"""What every InternalHttp does; ``prepared`` gives one, an instance that answers as asked, and one that is away."""

import pytest

from service.ports.shared.internal_http import InstanceUnreachable, InternalRequest
from tests.fakes.internal_http import Answered


async def parts_of(*parts):
    for part in parts:
        yield part


class InternalHttpContract:
    async def test_a_request_arrives_as_it_was_sent(self, prepared):
        http, peer, _, asked = await prepared([])
        request = InternalRequest("POST", "/internal/a%2Fb?c=d%20e&f", {"X-Some": " one "}, "ä\0".encode())
        async with http.send(peer, request) as answer:
            assert answer.status == 200
        (arrived,) = asked
        assert (arrived.to, arrived.method, arrived.target) == (peer.name, "POST", "/internal/a%2Fb?c=d%20e&f")
        assert arrived.body == "ä\0".encode()
        assert arrived.headers["x-some"].strip() == "one"

    @pytest.mark.parametrize("size", [0, 1, 700_000])
    async def test_a_body_may_be_sent_while_it_is_made(self, prepared, size):
        http, peer, _, asked = await prepared([])
        body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        request = InternalRequest("PUT", "/internal/a", body=parts_of(b"", body[:7], body[7:]))
        async with http.send(peer, request) as answer:
            assert answer.status == 200
        assert asked[0].body == body

    async def test_an_answer_comes_with_head_and_body(self, prepared):
        answers = [Answered(200, {"X-Some": "one"}, (b"a", b"bc")), Answered(302, {"Location": "/x"}), Answered(404)]
        http, peer, _, _ = await prepared(answers)
        async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
            assert (answer.status, answer.headers["X-Some"]) == (200, "one")
            assert b"".join([part async for part in answer.parts()]) == b"abc"
        for status in (302, 404):
            async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
                assert (answer.status, await answer.read(0)) == (status, b"")

    async def test_an_answer_may_have_a_long_header(self, prepared):
        http, peer, _, _ = await prepared([Answered(302, {"Location": "/" + "x" * 30_000})])
        async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
            assert (answer.status, len(answer.headers["Location"])) == (302, 30_001)

    async def test_an_instance_that_is_away_is_unreachable(self, prepared):
        http, _, away, _ = await prepared([])
        with pytest.raises(InstanceUnreachable):
            async with http.send(away, InternalRequest("GET", "/internal/a")):
                pass

    async def test_an_answer_that_is_cut_off_is_noticed(self, prepared):
        http, peer, _, _ = await prepared([Answered(parts=(b"abc",), is_cut=True)])
        async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
            with pytest.raises(InstanceUnreachable):
                await answer.read(100)

    async def test_too_large_an_answer_is_not_read(self, prepared):
        http, peer, _, _ = await prepared([Answered(parts=(b"abc", b"de")), Answered(parts=(b"abc", b"de"))])
        async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
            assert await answer.read(5) == b"abcde"
        async with http.send(peer, InternalRequest("GET", "/internal/a")) as answer:
            with pytest.raises(InstanceUnreachable):
                await answer.read(4)
