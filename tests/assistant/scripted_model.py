"""A model that says what it was told to say, and keeps what it was asked."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from service.domain.errors import ServiceError
from service.domain.model import ToolCall, Usage
from service.ports.model import ModelChunk, ModelEnd, ModelRequest, ModelText, ModelWaiting

EndReason = Literal["stop", "length", "refused"]


class ScriptedModel:
    """``replies``: one for each call, as texts, tool calls, waits, and an error to raise at that point. ``reason``: of
    the end of each that calls no tool.
    """

    name = "scripted/model"
    window: int | None = None

    async def window_tokens(self) -> int | None:
        return self.window

    def __init__(
        self,
        *replies: Sequence[str | ToolCall | ModelWaiting | ServiceError],
        cut_off: bool = False,
        reason: EndReason = "stop",
    ) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.open_calls = 0
        self._cut_off, self._reason = cut_off, reason

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        self.open_calls += 1
        calls: list[ToolCall] = []
        try:
            for said in self.replies.pop(0):
                match said:
                    case str():
                        yield ModelText(said)
                    case ModelWaiting():
                        assert request.reports_waits
                        yield said
                    case ToolCall():
                        calls.append(said)
                    case ServiceError():
                        raise said
            if not self._cut_off:
                yield ModelEnd(
                    "tool_calls" if calls else self._reason, tuple(calls), Usage(10, 5, 0.5), "scripted/model-1"
                )
        finally:
            self.open_calls -= 1
