"""A job's requests to its model, from its events: one for each reply, also those that were paid and lost.

A request that its provider refused, or that the end of the process cut off, has no event, and so is in none.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from service.domain.jobs.events import JobEvent, ModelReplied, ReplyLost, ToolReturned
from service.domain.jobs.requests import NotRebuilt, RequestMessage, Requests
from service.domain.prompts import PromptSet


class Rebuilt(Struct, frozen=True):
    """A request as it was sent."""

    number: int
    """From 1."""
    answered_at: datetime
    model: str
    """Empty where the reply was lost."""
    lost: str
    """The code for which its reply cannot be used; empty for one that can."""
    prompts: str
    """The hash of the prompts and tools; empty from before it was recorded."""
    messages: tuple[RequestMessage, ...] | None
    """None where it was not recorded, or not all of it can be read any more."""
    output_tokens: int = 0
    """The limit for the reply; 0: not recorded."""


def rebuilt(events: Iterable[JobEvent], kept: Mapping[str, PromptSet]) -> Iterator[Rebuilt]:
    """Yield the requests of a job in order. ``kept``: the prompts that its events name, by their hash."""
    requests, number = Requests(kept), 0
    for event in events:
        match event:
            case ToolReturned(call_id=call_id, name=name, result=result, is_error=is_error):
                requests.add_result(call_id, name, result, is_error=is_error)
            case ModelReplied():
                number += 1
                messages = requests.add_reply(
                    event.text, event.tool_calls, event.memory, prompts=event.prompts, sent=event.sent
                )
                tokens = event.sent.output_tokens if event.sent is not None else 0
                yield Rebuilt(number, event.replied_at, event.model, "", event.prompts, messages, tokens)
            case ReplyLost(prompts=prompts, sent=sent):
                number += 1
                try:
                    asked = requests.messages(prompts, sent)
                except NotRebuilt:
                    asked = None
                tokens = sent.output_tokens if sent is not None else 0
                yield Rebuilt(number, event.lost_at, "", event.code, prompts, asked, tokens)
            case _:
                pass
