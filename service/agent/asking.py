"""One call of the model for a job: what it is asked, and its reply, whole or not at all."""

from collections.abc import AsyncGenerator, Callable
from datetime import datetime

from msgspec.structs import replace

from service.agent import conversation
from service.agent.tools import descriptions
from service.domain.errors import ServiceError, Unavailable
from service.domain.jobs import RecordModelReply, Running
from service.domain.model import ToolCall
from service.ports.model import Model, ModelEnd, ModelRequest, ModelText

MAX_REPLY_CHARACTERS = 1_000_000


async def ask(
    state: Running,
    *,
    model: Model,
    repository: str,
    reply_tokens: int,
    now: Callable[[], datetime],
    on_text: Callable[[str], None] | None,
) -> RecordModelReply:
    """The model's next reply, to be recorded.

    Raises:
        ServiceError: the model refuses (``model_refused``).
        Unavailable, Forbidden, Invalid: as the port raises them.
    """
    request = ModelRequest(
        conversation.messages(state.request, state.work, repository), descriptions(), max_output_tokens=reply_tokens
    )
    text, end = await _reply(model, request, on_text)
    if end.reason == "refused" and not end.tool_calls:
        raise ServiceError("The model refuses to do this.", code="model_refused")
    return RecordModelReply(
        end.model, text, _named_apart(end.tool_calls), end.usage, now(), cut_off=end.reason == "length"
    )


async def _reply(model: Model, request: ModelRequest, on_text: Callable[[str], None] | None) -> tuple[str, ModelEnd]:
    text: list[str] = []
    room = MAX_REPLY_CHARACTERS
    end: ModelEnd | None = None
    chunks = model.reply(request)
    try:
        async for chunk in chunks:
            if isinstance(chunk, ModelEnd):
                end = chunk
                break
            assert isinstance(chunk, ModelText)
            room -= len(chunk.text)
            if room < 0:
                raise Unavailable("The model's reply has no end.", code="model_reply_too_long")
            text.append(chunk.text)
            if on_text is not None:
                on_text(chunk.text)
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    if end is None:
        raise Unavailable("The model's reply broke off.", code="model_reply_broke_off")
    return "".join(text), end


def _named_apart(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Some providers leave ids out or use one twice in a reply; results could not be told apart."""
    seen: set[str] = set()
    apart = []
    for number, call in enumerate(calls, 1):
        unique = call if call.id and call.id not in seen else replace(call, id=f"{call.id or 'call'}-{number}")
        seen.add(unique.id)
        apart.append(unique)
    return tuple(apart)
