"""Silence of a provider: only what a read waits for counts."""

import asyncio

import pytest

from service.adapters.models.exchange import Silence


class Content:
    """A stream of which only the end by an error matters."""

    def __init__(self):
        self.ended = asyncio.Event()

    def set_exception(self, error):
        assert isinstance(error, TimeoutError)
        self.ended.set()


@pytest.fixture
async def content():
    return Content()


async def test_a_read_that_waits_too_long_is_ended(content):
    silence = Silence(content)
    silence.begin(60)
    silence.end()
    silence.begin(0.01)  # sooner than the clock that is set
    async with asyncio.timeout(60):
        await content.ended.wait()


async def test_time_between_two_reads_is_not_the_providers(content):
    silence, passed = Silence(content), asyncio.Event()
    silence.begin(0.01)
    silence.end()
    asyncio.get_running_loop().call_later(0.03, passed.set)
    await passed.wait()
    assert not content.ended.is_set()
    silence.begin(0.01)
    async with asyncio.timeout(60):
        await content.ended.wait()


async def test_read_that_got_something_may_wait_in_full_again(content):
    silence, passed = Silence(content), asyncio.Event()
    silence.begin(0.02)
    silence.end()
    silence.begin(60)
    asyncio.get_running_loop().call_later(0.05, passed.set)
    await passed.wait()
    assert not content.ended.is_set()
    silence.close()
