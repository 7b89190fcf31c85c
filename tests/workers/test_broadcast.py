"""Live events: each listener hears everything, in order, whenever it came."""

import asyncio
import random
import tracemalloc
from contextlib import aclosing

import pytest

from service.web.http.live import with_keep_alives
from service.workers.replies.broadcast import MAX_PACKED, Broadcast, Topic


async def test_listeners_hear_everything_whenever_they_come():
    broadcast: Broadcast[int] = Broadcast()
    topic = broadcast.open("reply")
    early = asyncio.create_task(heard(topic))
    for number in range(3):
        topic.publish(number)
    late = asyncio.create_task(heard(broadcast.open("reply")))
    for number in range(3, 6):
        topic.publish(number)
    broadcast.close("reply")
    assert await early == await late == [0, 1, 2, 3, 4, 5]
    assert broadcast.find("reply") is None


async def test_slow_listener_delays_no_one():
    broadcast: Broadcast[int] = Broadcast()
    topic = broadcast.open("reply")
    slow = topic.listen()
    topic.publish(0)
    assert await anext(slow) == 0
    quick = asyncio.create_task(heard(topic))
    for number in range(1, 10_000):
        topic.publish(number)
    broadcast.close("reply")
    assert await quick == list(range(10_000))
    assert [number async for number in slow] == list(range(1, 10_000))


async def test_late_listeners_get_what_was_packed():
    topic: Topic[str] = Topic()
    early = topic.listen()
    topic.publish("first")
    assert await anext(early) == "first"
    topic.publish("second")
    topic.pack()
    topic.publish("third")
    slow = await anext(early), await anext(early)
    topic.pack()
    topic.pack()
    topic.publish("fourth")
    late = asyncio.create_task(heard(topic))
    topic.close()
    assert slow == ("second", "third")
    assert [event async for event in early] == ["fourth"]
    assert await late == ["first", "second", "third", "fourth"]


async def test_only_the_first_events_are_packed():
    topic: Topic[str] = Topic()
    events = [f"word {number}" for number in range(MAX_PACKED + 2)]
    for event in events:
        topic.publish(event)
    topic.pack()
    topic.publish("last")
    topic.pack()
    topic.close()
    found = await heard(topic)
    assert found == [*events, "last"]
    assert found[0] is not events[0]
    assert found[MAX_PACKED] is events[MAX_PACKED], "packed once more"


async def test_parts_packed_at_different_times_come_in_order():
    topic: Topic[str] = Topic()
    events = [f"{number} {'long text ' * 50}" for number in range(30)]
    for number, event in enumerate(events):
        topic.publish(event)
        if number % 7 == 0:
            topic.pack()
    topic.close()
    for place in (0, 1, 2, 9, 29, 30):
        async with aclosing(topic.batches(after=place)) as batches:
            assert [event async for some in batches for event in some] == events[place:]


async def test_long_text_of_several_topics_is_packed_once():
    hit = random.Random(1).randbytes(50_000).hex()
    topics: list[Topic[tuple[str, int]]] = [Topic() for _ in range(20)]
    for number, topic in enumerate(topics):
        topic.publish((hit, number))
    tracemalloc.start()
    for topic in topics:
        topic.pack()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 200_000  # of 2 MB, packed 1 MB
    assert [topic.published() for topic in topics] == [[(hit, number)] for number in range(20)]


async def test_current_listener_gets_an_event_within_its_publish_call():
    """Every event once and in order, whatever of them is dealt with at once, and by whom."""
    topic: Topic[int] = Topic()
    at_once: list[int] = []

    def takes_odd_numbers(number: int) -> bool:
        if number % 2:
            at_once.append(number)
        return number % 2 == 1

    batches: list[list[int]] = []

    async def listen():
        batches.extend([list(events) async for events in topic.batches(takes_odd_numbers)])

    listening = asyncio.create_task(listen())
    slow = asyncio.create_task(heard(topic))
    topic.publish(1)
    await asyncio.sleep(0)
    for number in (3, 5, 6, 7):
        topic.publish(number)
    assert at_once == [3, 5]
    await asyncio.sleep(0)
    topic.publish(9)
    topic.close()
    await asyncio.gather(listening, slow)
    assert at_once == [3, 5, 9]
    assert batches == [[1], [6, 7]]
    assert slow.result() == [1, 3, 5, 6, 7, 9]


async def test_listener_that_has_gone_gets_nothing():
    topic: Topic[int] = Topic()
    told: list[int] = []

    def takes(number: int) -> bool:
        told.append(number)
        return True

    async def listen():
        async for _ in topic.batches(takes):
            pass

    gone, stays = asyncio.create_task(listen()), asyncio.create_task(heard(topic))
    await asyncio.sleep(0)
    topic.publish(1)
    gone.cancel()
    await asyncio.wait([gone])
    topic.publish(2)
    topic.close()
    assert told == [1]
    assert await stays == [1, 2]


async def test_closing_a_topic_that_was_never_opened_does_nothing():
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


async def test_answer_that_breaks_in_a_silence_says_why():
    """The next event is being waited for; the events end all the same."""
    ended = asyncio.Event()

    async def events():
        try:
            await asyncio.Event().wait()
            yield 0
        finally:
            ended.set()

    async def answer():
        async with aclosing(with_keep_alives(events(), seconds=0.01)) as told:
            async for _ in told:
                raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await answer()
    assert ended.is_set()


async def test_a_server_that_goes_down_ends_long_answers():
    closing = asyncio.Event()

    async def nothing():
        await asyncio.Event().wait()
        yield 0

    told = with_keep_alives(nothing(), closing)
    waiting = asyncio.create_task(anext(told, "ended"))
    closing.set()
    assert await waiting == "ended"
