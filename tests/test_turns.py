"""Work that many want at the same moment: one piece in each turn of the event loop."""

import asyncio

from service.runtime.turns import call_in_turn


async def test_other_work_runs_between_turns():
    order: list[str] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(name: str) -> None:
        order.append(name)
        loop.call_soon(order.append, f"after {name}")

    def fail() -> None:
        loop.call_soon(order.append, "after failure")
        raise RuntimeError("This is reported, and the next piece is called.")

    loop.set_exception_handler(lambda _loop, context: order.append(type(context["exception"]).__name__))
    call_in_turn(lambda: work("first"))
    call_in_turn(fail)
    call_in_turn(lambda: work("second"))
    call_in_turn(lambda: loop.call_soon(done.set))
    assert order == []
    await done.wait()
    assert order == ["first", "after first", "RuntimeError", "after failure", "second", "after second"]
