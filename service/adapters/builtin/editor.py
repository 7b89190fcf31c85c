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
from collections.abc import AsyncIterator, Iterable, Sequence

from service.adapters.builtin.editing.session import Session
from service.adapters.builtin.editing.steps import Step, Turn
from service.adapters.builtin.editing.tool_results import is_known
from service.domain.model import ToolCall, Usage
from service.ports.model import (
    FREE,
    AssistantMessage,
    ModelChunk,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
    Price,
    ToolMessage,
    UserMessage,
)

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


def _next_step(messages: Sequence[ModelMessage]) -> tuple[Step, int]:
    """The first step that the messages do not answer, and the number of its first call in the conversation."""
    session = Session().run()
    own = _own(messages)
    step, number = (
        next(session),
        1
        + sum(
            len(message.tool_calls)
            for message in messages[: len(messages) - len(own)]
            if isinstance(message, AssistantMessage)
        ),
    )
    for turn in _turns(own):
        number += len(step.calls)
        is_own = [result.name for result in turn.results] == [tool for tool, _ in step.calls]
        if not is_own or not all(map(is_known, turn.results)):
            return Step("Another model began this conversation; the builtin agent cannot go on with it."), number
        step = session.send(turn)
    return step, number


def _own(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Return the messages without earlier exchanges: those before the last reply without calls, if a person wrote after
    it, and those before a further round, which starts again unless it answers a question.
    """
    for at in range(len(messages) - 1, -1, -1):
        match messages[at]:
            case UserMessage(purpose="new-round") if not _is_question(messages[at - 1]):
                return messages[at + 1 :]
            case AssistantMessage(tool_calls=()) if any(map(_instructs, messages[at + 1 :])):
                return messages[at + 1 :]
            case _:
                pass
    return messages


def _is_question(message: ModelMessage) -> bool:
    return isinstance(message, ToolMessage) and message.name == "ask"


def _instructs(message: ModelMessage) -> bool:
    return isinstance(message, UserMessage) and message.purpose == "request"


def _turns(messages: Sequence[ModelMessage]) -> Iterable[Turn]:
    """Yield the request, then for each reply with calls its results and the messages before the next reply."""
    asked: list[str] = []
    results: list[ToolMessage] = []
    checked = merged = False
    for message in messages:
        match message:
            case UserMessage(text=text, words=words) if _instructs(message):
                asked.append(words or text)
            case UserMessage(purpose=purpose):
                checked = checked or purpose == "checks"
                merged = merged or purpose == "merge"
            case ToolMessage():
                results.append(message)
            case AssistantMessage(tool_calls=calls) if calls:
                yield Turn(tuple(results), tuple(asked), checked, merged)
                asked, results, checked, merged = [], [], False, False
            case _:
                pass
    yield Turn(tuple(results), tuple(asked), checked, merged)
