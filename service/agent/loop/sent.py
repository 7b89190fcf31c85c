"""A job's requests to its model, as their events record them."""

from collections.abc import Sequence
from functools import cache
from typing import assert_never

from service.agent.prompts import PROMPTS
from service.agent.tools.arguments import descriptions
from service.domain.jobs.decider import ModelReplied, ToolReturned, TranscriptStep
from service.domain.jobs.requests import RequestMessage, Requests, SentRequest
from service.domain.prompts import PromptSet
from service.ports.model import AssistantMessage, ModelMessage, ModelRequest, SystemMessage, ToolMessage, UserMessage


@cache
def prompts() -> PromptSet:
    """Return the agent's prompts and tools, to be kept in the log before a request names them."""
    return PROMPTS.kept("agent", *descriptions())


class Sent:
    """The requests of a job: those on record, read once, and then the one that comes next."""

    def __init__(self) -> None:
        self._requests = Requests({prompts().hash: prompts()})
        self._read = 0

    def record(self, request: ModelRequest, steps: Sequence[TranscriptStep]) -> SentRequest:
        """Return what to record of a request that follows these steps: those of the call before, and more."""
        for step in steps[self._read :]:
            match step:
                case ModelReplied(text=text, tool_calls=calls, memory=memory, prompts=hashed, sent=sent):
                    self._requests.add_reply(text, calls, memory, prompts=hashed, sent=sent)
                case ToolReturned(call_id=call_id, name=name, result=result, is_error=is_error):
                    self._requests.add_result(call_id, name, result, is_error=is_error)
                case _:
                    pass
        self._read = len(steps)
        return self._requests.sent(prompts(), list(map(_recorded, request.messages)), request.max_output_tokens)


def _recorded(message: ModelMessage) -> RequestMessage:
    match message:
        case SystemMessage(text=text):
            return RequestMessage("system", text)
        case UserMessage(text=text):
            return RequestMessage("user", text)
        case AssistantMessage(text=text, tool_calls=calls, memory=memory):
            return RequestMessage("assistant", text, calls, memory=memory)
        case ToolMessage(call_id=call_id, name=name, text=text, is_error=is_error):
            return RequestMessage("tool", text, call_id=call_id, name=name, is_error=is_error)
        case _:
            assert_never(message)
