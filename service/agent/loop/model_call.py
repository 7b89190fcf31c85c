"""One call of the model for a job: what it is asked, and its reply, whole or not at all."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from service.agent.loop import conversation, window
from service.agent.loop.job_context import JobContext
from service.agent.tools.arguments import descriptions
from service.domain.errors import Invalid, ServiceError, Unavailable, depending_on
from service.domain.jobs.decider import ModelReplied, RecordModelReply, Running
from service.ports.context_budget import ContextBudget, context_budget, reply_within
from service.ports.model import (
    CONTEXT_WINDOW_EXCEEDED,
    Model,
    ModelEnd,
    ModelRequest,
    ModelText,
    open_reply,
    with_unique_ids,
)

MAX_REPLY_CHARACTERS = 1_000_000
MAX_ASKED_AGAIN = 2
"""How often a reply that breaks off in its middle is asked for again. Nothing of it was recorded or carried out, but
what the provider had written of it may have to be paid for."""
ASKED_AGAIN = "\n\n[The reply broke off; the model is asked again.]\n\n"


async def request_reply(state: Running, context: JobContext, repository: str) -> RecordModelReply:
    """The model's next reply, to be recorded.

    A prompt that the provider finds too long is asked once more, shortened harder. That is recorded with the reply, so
    that later prompts are as short from the start.

    Raises:
        ServiceError: the model refuses (``model_refused``).
        Invalid: the prompt is too long however it is shortened (``context_window_exceeded``).
        Unavailable, Forbidden, Invalid: as the port raises them.
    """
    replies = [step for step in state.work.transcript if isinstance(step, ModelReplied)]
    shrink_level = max((reply.shrink_level for reply in replies), default=0)
    with depending_on("model"):
        window_tokens = await context.model.window_tokens()
    sizes: list[int] = []

    async def reply(budget: ContextBudget) -> AsyncGenerator[tuple[str, ModelEnd], None]:
        request = await asyncio.to_thread(_request, state, context, repository, budget)
        size = window.size(request.messages)
        if not sizes or size < sizes[-1]:
            sizes.append(size)
            yield await _whole_reply(context, request)

    budget = context_budget(window_tokens, context.budgets.reply_tokens, shrink_level)
    halvings = 0 if window_tokens is None else 1
    try:
        async with aclosing(reply_within(budget, reply, halvings=halvings)) as found:
            (text, end), budget = await anext(found)
    except Invalid as error:
        if error.code != CONTEXT_WINDOW_EXCEEDED or window_tokens is None:
            raise
        raise Invalid(_TOO_LONG.format(reason=error), code=CONTEXT_WINDOW_EXCEEDED) from None
    if end.reason == "refused" and not end.tool_calls:
        raise ServiceError("The model refuses to do this.", code="model_refused")
    return RecordModelReply(
        end.model,
        text,
        with_unique_ids(end.tool_calls, (call.id for each in replies for call in each.tool_calls)),
        end.usage,
        context.now(),
        cut_off=end.reason in ("length", "unknown"),
        shrink_level=budget.shrink_level,
        messages_seen=state.work.messages,
    )


_TOO_LONG = (
    "The job's conversation does not fit the model ({reason}), although what can be left out of it was. Give shorter "
    "instructions, or a model with a larger window; if the provider's window is smaller than is known here, set the "
    "model's context_tokens."
)


def _request(state: Running, context: JobContext, repository: str, budget: ContextBudget) -> ModelRequest:
    told = conversation.messages(state.request, state.work, repository, window.prompt_bytes(budget))
    confirm = context.recorder.confirm
    return ModelRequest(told, descriptions(), max_output_tokens=budget.reply_tokens, before_retry=confirm)


async def _whole_reply(context: JobContext, request: ModelRequest) -> tuple[str, ModelEnd]:
    """A reply to its end. Before its first chunk the port tries again itself; after that we do, a few times."""
    for left in range(MAX_ASKED_AGAIN, -1, -1):
        text: list[str] = []
        await context.recorder.confirm()  # each time: this process may have been paused in a reply
        try:
            with depending_on("model"):
                end = await _reply(context.model, request, text, context.on_text)
        except Unavailable as error:
            if not text or not left or error.code == _TOO_LONG_A_REPLY:
                raise
            if context.on_text is not None:
                context.on_text(ASKED_AGAIN)
        else:
            return "".join(text), end
    raise AssertionError


_TOO_LONG_A_REPLY = "model_reply_too_long"


async def _reply(
    model: Model, request: ModelRequest, text: list[str], on_text: Callable[[str], None] | None
) -> ModelEnd:
    room = MAX_REPLY_CHARACTERS
    async with open_reply(model, request) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, ModelEnd):
                return chunk
            assert isinstance(chunk, ModelText)
            room -= len(chunk.text)
            if room < 0:
                raise Unavailable("The model's reply has no end.", code=_TOO_LONG_A_REPLY)
            text.append(chunk.text)
            if on_text is not None:
                on_text(chunk.text)
    raise Unavailable("The model's reply broke off.", code="model_reply_broke_off")
