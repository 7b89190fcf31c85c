"""The requests to a job's model as text, for ``docsmith job show --prompts``."""

from collections.abc import Iterator, Sequence

import msgspec

from service.cli.output import without_controls
from service.views.jobs.job_requests import JobRequestView, SentMessageView, same_messages

NOT_RECORDED = "Its text is not on record: it was sent by an older version, or is erased or damaged."


def requests_text(requests: Sequence[JobRequestView]) -> str:
    """Return requests one after the other; of the first messages, those that the one before begins with are named."""
    if not requests:
        return "The job has made no request to its model yet."
    lines: list[str] = []
    before: JobRequestView | None = None
    for request in requests:
        lines += _lines(request, before)
        before = request if request.is_rebuilt else None
    return without_controls("\n".join(lines)).rstrip()


def _lines(request: JobRequestView, before: JobRequestView | None) -> Iterator[str]:
    by = f"reply lost: {request.lost}" if request.lost else f"replied by {request.model}"
    yield f"=== request {request.number} of {request.count}, {by}, at {request.at}"
    if not request.is_rebuilt:
        yield f"{NOT_RECORDED}\n"
        return
    yield f"prompts {request.prompts}, at most {request.max_output_tokens} tokens of reply"
    if request.lines_left_out:
        yield f"{request.lines_left_out} lines of context repositories that are not public are left out"
    if before is not None and before.tools == request.tools:
        yield f"--- {len(request.tools)} tools, as in request {before.number}"
    else:
        yield f"--- {len(request.tools)} tools"
        for tool in request.tools:
            yield f"{tool.name}: {tool.description}\n  {msgspec.json.encode(tool.parameters).decode()}"
    same = same_messages(request, before) if before is not None else 0
    if before is not None and same:
        yield f"--- messages 1 to {same}, as in request {before.number}"
    for number, message in enumerate(request.messages[same:], same + 1):
        yield from _message(number, message)
    yield ""


def _message(number: int, message: SentMessageView) -> Iterator[str]:
    of = f", result of {message.call_id}{' (error)' if message.is_error else ''}" if message.call_id else ""
    yield f"--- message {number}, {message.role}{of}"
    if message.text:
        yield message.text
    for call in message.calls:
        yield f"call {call.id}: {call.name} {call.arguments}"
    if message.memory_bytes:
        yield f"[{message.memory_bytes} bytes of the provider's own]"
