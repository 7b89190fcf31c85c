"""A model that says what it was told to say, and keeps what it was asked."""

from collections.abc import AsyncIterator

from service.domain.errors import ServiceError
from service.domain.model import ToolCall, Usage
from service.ports.model import ModelChunk, ModelEnd, ModelRequest, ModelText


class ScriptedModel:
    """``replies``: one for each call, as texts, tool calls, and an error to raise at that point."""

    name = "scripted/model"
    window: int | None = None

    async def window_tokens(self) -> int | None:
        return self.window

    def __init__(self, *replies: list[str | ToolCall | ServiceError], cut_off: bool = False) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.open_calls = 0
        self._cut_off = cut_off

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        self.open_calls += 1
        calls: list[ToolCall] = []
        try:
            for said in self.replies.pop(0):
                match said:
                    case str():
                        yield ModelText(said)
                    case ToolCall():
                        calls.append(said)
                    case ServiceError():
                        raise said
            if not self._cut_off:
                yield ModelEnd("tool_calls" if calls else "stop", tuple(calls), Usage(10, 5, 0.5), "scripted/model-1")
        finally:
            self.open_calls -= 1
