"""Live events: each listener hears everything, in order, whenever it came."""

import asyncio

from service.web.live import with_keep_alives
from service.workers.broadcast import Broadcast


async def test_listeners_hear_everything_whenever_they_come():
    broadcast: Broadcast[int] = Broadcast()
    topic = broadcast.open("reply")
    early = asyncio.create_task(heard(topic))
    for number in range(3):
        topic.tell(number)
    late = asyncio.create_task(heard(broadcast.open("reply")))
    for number in range(3, 6):
        topic.tell(number)
    broadcast.close("reply")
    assert await early == await late == [0, 1, 2, 3, 4, 5]
    assert broadcast.find("reply") is None


async def test_a_slow_listener_holds_nobody_up():
    broadcast: Broadcast[int] = Broadcast()
    topic = broadcast.open("reply")
    slow = topic.listen()
    topic.tell(0)
    assert await anext(slow) == 0
    quick = asyncio.create_task(heard(topic))
    for number in range(1, 10_000):
        topic.tell(number)
    broadcast.close("reply")
    assert await quick == list(range(10_000))
    assert [number async for number in slow] == list(range(1, 10_000))


async def test_closing_a_topic_that_nobody_opened_is_nothing():
    Broadcast().close("nothing")


async def heard(topic):
    return [event async for event in topic.listen()]


async def test_silence_is_filled_with_keep_alives():
    news: asyncio.Queue[int] = asyncio.Queue()

    async def events():
        while (event := await news.get()) >= 0:
            yield event

    told = with_keep_alives(events(), seconds=0.01)
    assert await anext(told) is None
    news.put_nowait(7)
    assert 7 in [await anext(told), await anext(told)]
    news.put_nowait(-1)
    assert [event async for event in told if event is not None] == []


async def test_a_server_that_goes_down_ends_long_answers():
    closing = asyncio.Event()

    async def nothing():
        await asyncio.Event().wait()
        yield 0

    told = with_keep_alives(nothing(), closing)
    waiting = asyncio.create_task(anext(told, "ended"))
    closing.set()
    assert await waiting == "ended"
