"""A model that says what it is told to, and keeps what it was asked."""

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal

from msgspec import Struct

from service.domain.errors import ServiceError
from service.domain.model import ToolCall, Usage
from service.ports.model import ModelChunk, ModelEnd, ModelRequest, ModelText, ModelWaiting, Price


class Says(Struct, frozen=True):
    """One reply. ``breaks_off`` is raised after its text, as when a provider goes away in the middle."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reason: Literal["stop", "tool_calls", "length", "refused"] | None = None
    usage: Usage = Usage(10, 5, 0.001)
    breaks_off: ServiceError | None = None
    waits: float = 0.0


def call(tool: str, call_id: str = "", /, **arguments: Any) -> ToolCall:
    return ToolCall(call_id or f"call-{tool}", tool, json.dumps(arguments))


def calls(*tools: ToolCall, text: str = "") -> Says:
    return Says(text, tools)


class FakeModel:
    """Replies by its script, first to last; an error in it is raised before the first chunk."""

    def __init__(
        self,
        script: Iterable[Says | ServiceError] = (),
        *,
        name: str = "fake/model",
        window_tokens: int | None = None,
        price: Price | None = None,
    ) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self.closed = 0  # replies that ended, however they did
        self._name = name
        self._window_tokens, self._price = window_tokens, price

    @property
    def name(self) -> str:
        return self._name

    async def window_tokens(self) -> int | None:
        return self._window_tokens

    async def price(self) -> Price | None:
        return self._price

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        if not self.script:
            raise AssertionError("the model is asked more often than its script has replies")
        said = self.script.pop(0)
        if isinstance(said, ServiceError):
            raise said
        try:
            if said.waits and request.reports_waits:
                yield ModelWaiting(said.waits)
            for number, piece in enumerate(re.findall(r"\s*\S+\s*|\s+", said.text)):
                if not number or request.on_text is None or not request.on_text(piece):
                    yield ModelText(piece)
            if said.breaks_off is not None:
                raise said.breaks_off
            reason = said.reason or ("tool_calls" if said.calls else "stop")
            yield ModelEnd(reason, said.calls, said.usage, self._name)
        finally:
            self.closed += 1
