"""Reply events to the data stream of AI SDK 4 (the v1 assistant endpoint). No I/O.

One line each, ``code:json``; LF; no blank line needed. Facts, measured with 4.1.15 and 4.3.19:

- The documented minimum is 4.1.15, which fails on ``h:`` (a source) and newer codes: sources come from the result of
  the search step alone. A line with no known code, an SSE comment included, ends the reply with an error.
- ``d:`` and ``e:`` need a string ``finishReason``, ``f:`` a ``messageId``; further keys are dropped by the client, so a
  raw reader finds ``type`` and ``threadId`` on ``d:``. The same object as ``2:`` reaches ``useChat().data``, and as
  ``8:`` the message's annotations, which ``onFinish`` gets and the client sends back with its next message.
- With a tool call and text in one step, ``maxSteps > 1`` asks again after every answer: each has its own step.
- ``3:`` throws in the client; the text so far stays.
- The parser waits until a network chunk ends with a newline: lines are whole.
- The SDK's own servers send this as text/plain.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from service.domain.model import Usage
from service.domain.threads.checks import ReplyChecks
from service.domain.threads.recorded_reply import FinishReason
from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    ReplyWaiting,
    SearchFinished,
    SearchStarted,
    SentencesChecked,
    TextDelta,
)
from service.wire.checks import checks_of
from service.wire.jsontext import json_line
from service.wire.search_output import SEARCH, search_output
from service.wire.waiting import waiting

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Type": "text/plain; charset=utf-8",
        "x-vercel-ai-data-stream": "v1",
        "Cache-Control": "no-cache, no-transform",
        "X-Accel-Buffering": "no",
    }
)
DESCRIPTION = """\
Each line is a code, a colon and JSON; empty lines keep the connection alive.

| Code | Meaning |
| --- | --- |
| `f` | a step begins: `messageId` |
| `9` | a tool is called: `toolCallId`, `toolName`, `args` |
| `a` | the result of a tool call: `toolCallId`, `result` |
| `0` | more of the text, as a JSON string |
| `2` | a list of data: events of a job, and at the end `type` `finish` with the thread's or the job's id |
| `8` | the same at the end of a reply, for the message; before, `type` `waiting` while the model's provider is busy |
| `8` | for a body with `features` `checks`, at the end: `type` `docsmith-check`, and each verdict as `data` |
| `e` | the step ends: `finishReason`, `usage`, `isContinued` |
| `d` | the end: `finishReason`, `usage`, and `type` `finish` with the thread's or the job's id |
| `3` | an error, as a JSON string; nothing follows |"""
"""For the API's description, with ``EXAMPLE``."""
EXAMPLE = """\
f:{"messageId":"msg_4da30a87"}
0:"Run "
e:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
d:{"type":"finish","threadId":"kq3vN0tq","finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0}}
"""

KEEP_ALIVE = b"\n"
"""An empty line; every version skips it."""

NO_USAGE = Usage()
_FINISH_REASONS: Mapping[FinishReason, str] = MappingProxyType(
    {"stop": "stop", "length": "length", "content_filter": "content-filter", "error": "error", "other": "other"}
)
"""As AI SDK 4 names them."""


def line(code: str, value: object) -> bytes:
    return code.encode() + b":" + json_line(value) + b"\n"


def step_start(message_id: str) -> bytes:
    return line("f", {"messageId": message_id})


def step_end(reason: str, usage: Usage = NO_USAGE) -> bytes:
    return line("e", {"finishReason": reason, "usage": usage_of(usage), "isContinued": False})


def usage_of(usage: Usage) -> dict[str, int]:
    return {"promptTokens": usage.input_tokens, "completionTokens": usage.output_tokens}


class DataStreamEncoder:
    """Encodes one reply for one reader. Feed it the reply's events in order, each once."""

    def __init__(self, *, has_checks: bool = False) -> None:
        """``has_checks``: send the verdicts on sentences, once, at the end."""
        self._has_checks, self._checks = has_checks, ReplyChecks()
        self._thread_id = ""
        self._reply_id = ""
        self._step_is_open = False
        self._calls: list[str] = []

    def encode(self, event: ReplyEvent) -> list[bytes]:
        match event:
            case ReplyOpened(thread_id=thread_id, reply_id=reply_id):
                self._thread_id, self._reply_id = thread_id, reply_id
                return []
            case SearchStarted(call_id=call_id, query=query):
                return self._search_started(call_id, query)
            case SearchFinished():
                return self._search_finished(event)
            case TextDelta(text=""):
                return []
            case TextDelta(text=text):
                lines = self._end_step("tool-calls") if self._calls else []
                return [*lines, *self._begin_step(), line("0", text)]
            case ReplyWaiting(seconds=seconds):
                return [line("8", [waiting(seconds)])]
            case SentencesChecked(checks=checks):
                self._checks = checks  # annotations are appended, never replaced
                return []
            case ReplyDone(usage=usage, finish_reason=finish_reason):
                reason = _FINISH_REASONS[finish_reason]
                finish: dict[str, str | bool] = {"type": "finish", "threadId": self._thread_id}
                if event.uncited:
                    finish["uncited"] = True
                if event.failure:
                    finish["failure"] = event.failure
                lines = self._end_step("tool-calls") if self._calls else []
                lines += self._begin_step()
                lines += [line("2", [finish]), line("8", [finish])]
                if self._has_checks and self._checks.checked:
                    lines.append(line("8", [{"type": "docsmith-check", "data": checks_of(self._checks)}]))
                lines += self._end_step(reason, usage)
                return [*lines, line("d", {**finish, "finishReason": reason, "usage": usage_of(usage)})]
            case ReplyBroken(message=message):
                return [line("3", message)]
            case _:
                assert_never(event)

    def _search_started(self, call_id: str, query: str) -> list[bytes]:
        lines = self._end_step("stop") if not self._calls else []
        lines += self._begin_step()
        self._calls.append(call_id)
        return [*lines, line("9", {"toolCallId": call_id, "toolName": SEARCH, "args": {"query": query}})]

    def _search_finished(self, found: SearchFinished) -> list[bytes]:
        lines: list[bytes] = []
        if found.call_id not in self._calls:  # the reader came when the search was over
            lines += self._search_started(found.call_id, found.query)
        lines.append(line("a", {"toolCallId": found.call_id, "result": search_output(found.hits)}))
        self._calls.remove(found.call_id)
        return lines if self._calls else [*lines, *self._end_step("tool-calls")]

    def _begin_step(self) -> list[bytes]:
        if self._step_is_open:
            return []
        self._step_is_open = True
        return [step_start(self._reply_id)]

    def _end_step(self, reason: str, usage: Usage = NO_USAGE) -> list[bytes]:
        if not self._step_is_open:
            return []
        self._step_is_open = False
        self._calls.clear()
        return [step_end(reason, usage)]
