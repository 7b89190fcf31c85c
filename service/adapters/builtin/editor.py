"""The embedded model of the agent: no network, no key, no learning. It carries out instructions of a few forms
(``editing.forms``), through the same tools as any other model, and says so plainly when it is asked for something else.

Several instructions are parted by new lines, semicolons, full stops, "and then", or "and" before the next one's verb.
Text may be in quotes of any kind or backticks; long text in a fenced block after a colon. A path may leave out its
suffix and the folders above.

It keeps nothing between calls. An editing session is a generator that yields steps and is sent their results; every
call runs it again from the start over the results in the messages, up to the first step that has none yet.

It reads no sentence but those of people: what the agent says has a purpose, and what the tools found is in values.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from service.domain.model import ToolCall, Usage
from service.ports.model import (
    FREE,
    ModelChunk,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    Price,
)

if TYPE_CHECKING:
    from service.adapters.builtin.editing.steps import Step

NAME = "builtin/editor"


class BuiltinEditor:
    """``Model`` over ``Session``. Costs nothing, and fails only where its caller does not offer the tools."""

    @property
    def name(self) -> str:
        return NAME

    async def window_tokens(self) -> int | None:
        return None

    async def price(self) -> Price | None:
        return FREE

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        step, number = await asyncio.to_thread(_next_step, request.messages)  # it reads pages, all of them again
        for piece in re.findall(r"\S+\s*", step.text):
            yield ModelText(piece)
        calls = tuple(
            ToolCall(f"edit-{at}", tool, json.dumps(arguments, ensure_ascii=False))
            for at, (tool, arguments) in enumerate(step.calls, number)
        )
        yield ModelEnd("tool_calls" if calls else "stop", calls, Usage(cost_usd=0.0), NAME)


def _next_step(messages: Sequence[ModelMessage]) -> "tuple[Step, int]":
    """Return the next step and the number of its first call. Runs on a thread, as do the imports: a service that has no
    job for it starts without their expressions, which take 100 ms to compile.
    """
    from service.adapters.builtin.editing.conversation import next_step

    return next_step(messages)
