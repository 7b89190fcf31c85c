"""A request to a job's model as it was sent, as version 2 of the API shows it to the job's organization."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from service.domain.jobs.rebuilding import Rebuilt
from service.domain.jobs.requests import RequestMessage
from service.domain.prompts import KeptTool
from service.domain.texts.times import timestamp
from service.views.fields import Timestamp, described


class SentToolView(Struct, frozen=True, rename="camel"):
    """A tool as the model was offered it."""

    name: Annotated[str, described("Its name.")]
    description: Annotated[str, described("What it is for.")]
    parameters: Annotated[dict[str, Any], described("The JSON Schema of its arguments.")]


class SentCallView(Struct, frozen=True, rename="camel"):
    """A call that the model made in an earlier reply."""

    id: Annotated[str, described("The id that its result names.")]
    name: Annotated[str, described("The tool.")]
    arguments: Annotated[str, described("The arguments: JSON, as the model wrote it.")]


class SentMessageView(Struct, frozen=True, rename="camel"):
    """A message of a request."""

    role: Annotated[Literal["system", "user", "assistant", "tool"], described("Who says it.")]
    text: Annotated[str, described("Its words; may be empty where it makes calls.")]
    calls: Annotated[tuple[SentCallView, ...], described("The calls that it makes; of the assistant's alone.")]
    call_id: Annotated[str | None, described("The call that it is the result of; null where it is none.")]
    is_error: Annotated[bool, described("Whether that call failed.")]
    memory_bytes: Annotated[
        int, described("Bytes that the provider had added to the reply and got back with it; no one else reads them.")
    ]


class JobRequestView(Struct, frozen=True, rename="camel"):
    """A request to a job's model, rebuilt from the job's events."""

    number: Annotated[int, described("Its number, from 1; 0 where the job has made none.")]
    count: Annotated[int, described("How many requests the job has made that had a reply.")]
    at: Annotated[Timestamp | None, described("When its reply was complete; null where there is no request.")]
    model: Annotated[str, described("The model that replied; empty where the reply was lost.")]
    lost: Annotated[str, described("The code for which its reply could not be used; empty for one that could.")]
    prompts: Annotated[str, described("The hash of the prompts and tools; empty from before it was recorded.")]
    is_rebuilt: Annotated[
        bool,
        described("Whether tools and messages are those that were sent; false where they are not on record."),
    ]
    max_output_tokens: Annotated[int, described("The limit for the reply; 0 where it was not recorded.")]
    lines_left_out: Annotated[
        int, described("Lines of context repositories that are not public, which are left out of the messages.")
    ]
    tools: Annotated[tuple[SentToolView, ...], described("The tools that the model was offered.")]
    messages: Annotated[tuple[SentMessageView, ...], described("All messages in order, the system prompt first.")]


NO_REQUEST = JobRequestView(0, 0, None, "", "", "", False, 0, 0, (), ())


def request_view(
    request: Rebuilt, count: int, tools: Sequence[KeptTool], messages: Sequence[RequestMessage], left_out: int
) -> JobRequestView:
    """``messages``: as its readers may see them; ``left_out``: how many lines are left out of them."""
    return JobRequestView(
        request.number,
        count,
        timestamp(request.answered_at),
        request.model,
        request.lost,
        request.prompts,
        request.messages is not None,
        request.output_tokens,
        left_out,
        tuple(
            SentToolView(tool.name, tool.description, msgspec.json.decode(tool.parameters, type=dict[str, Any]))
            for tool in tools
        ),
        tuple(map(_message, messages)),
    )


def _message(message: RequestMessage) -> SentMessageView:
    return SentMessageView(
        message.role,
        message.text,
        tuple(SentCallView(call.id, call.name, call.arguments) for call in message.calls),
        message.call_id or None,
        message.is_error,
        message.memory.bytes if message.memory is not None else 0,
    )


def same_messages(request: JobRequestView, before: JobRequestView) -> int:
    """Return with how many messages of the request before a request begins."""
    pairs = enumerate(zip(request.messages, before.messages, strict=False))
    shorter = min(len(request.messages), len(before.messages))
    return next((at for at, (one, other) in pairs if one != other), shorter)
