"""One call of the model for a job: what it is asked, and its reply, whole or not at all."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from service.agent.loop import conversation, window
from service.agent.loop.budgets import BudgetExhausted
from service.agent.loop.job_context import JobContext
from service.agent.loop.plain_reply import plain_reply
from service.agent.loop.rounds import SoFar
from service.agent.loop.sent import prompts
from service.agent.tools.arguments import descriptions
from service.domain.errors import Invalid, ServiceError, Unavailable, depending_on
from service.domain.jobs.decider import ModelReplied, RecordLostReply, RecordModelReply, Running
from service.domain.jobs.requests import SentRequest
from service.domain.model import Usage
from service.ports.context_budget import ContextBudget, context_budget, reply_within
from service.ports.model import (
    CONTEXT_WINDOW_EXCEEDED,
    MODEL_REPLY_BROKEN,
    MODEL_SENT_NOTHING,
    MODEL_TAKES_NO_TOOLS,
    REQUEST_TOO_LARGE,
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
MAX_UNREADABLE = 3
"""Replies in a row that cannot be read, after which the job ends."""
MAX_LOST = 9
"""Replies in a row that were paid and could not be used, for whatever reason, after which the job ends."""
LEAST_WINDOW_TOKENS = 6_000
"""Tokens of a window below which no work can be done: the agent's instructions and tools alone take 3,000."""
MAX_HALVINGS = 3
"""Limit for the halvings of a prompt that its provider finds too long."""
ASKED_AGAIN = "\n\n[The reply broke off; the model is asked again.]\n\n"


async def request_reply(
    state: Running, context: JobContext, repository: str, pull_request: SoFar | None = None, *, seconds: float
) -> RecordModelReply:
    """The model's next reply, to be recorded. ``seconds``: for which it is waited.

    A prompt that the provider finds too long is asked once more, shortened harder. That is recorded with the reply, so
    that later prompts are as short from the start.

    Raises:
        BudgetExhausted: the reply has not ended in time.
        ServiceError: the model refuses (``model_refused``).
        Invalid: the prompt is too long however it is shortened (``context_window_exceeded``).
        Unavailable, Forbidden, Invalid: as the port raises them.
    """
    replies = [step for step in state.work.transcript if isinstance(step, ModelReplied)]
    shrink_level = max((reply.shrink_level for reply in replies), default=0)
    with depending_on("model"):
        window_tokens = await context.model.window_tokens()
    if window_tokens is not None and window_tokens < LEAST_WINDOW_TOKENS:
        raise Invalid(_TOO_SMALL.format(window=window_tokens), code=CONTEXT_WINDOW_EXCEEDED)
    sizes: list[int] = []
    sent: list[SentRequest] = []
    until = context.seconds() + seconds

    async def reply(budget: ContextBudget) -> AsyncGenerator[tuple[str, ModelEnd], None]:
        request, recorded = await asyncio.to_thread(_request, state, context, repository, budget, pull_request)
        sent[:] = [recorded]
        size = window.size(request.messages) + window.BYTES_PER_TOKEN * budget.reply_tokens
        if not sizes or size < sizes[-1]:
            sizes.append(size)
            yield await _whole_reply(context, request, recorded, until)

    budget = context_budget(window_tokens, context.budgets.reply_tokens, shrink_level)
    halvings = 0 if window_tokens is None else MAX_HALVINGS
    try:
        async with aclosing(reply_within(budget, reply, halvings=halvings)) as found:
            (text, end), budget = await anext(found)
    except ServiceError as error:
        if error.code == MODEL_SENT_NOTHING:
            raise ServiceError(f"{_capital(str(error))}.", code=error.code) from None
        if error.code == MODEL_TAKES_NO_TOOLS:
            raise Invalid(_NO_TOOLS.format(reason=error), code=error.code) from None
        if error.code not in (CONTEXT_WINDOW_EXCEEDED, REQUEST_TOO_LARGE) or window_tokens is None:
            raise
        raise Invalid(_TOO_LONG.format(reason=error), code=error.code) from None
    if end.reason == "refused" and not end.tool_calls:
        raise ServiceError("The model refuses to do this.", code="model_refused")
    is_cut = end.reason in ("length", "unknown")
    words, calls = plain_reply(text, end.tool_calls, is_cut=is_cut)
    return RecordModelReply(
        end.model,
        words,
        with_unique_ids(calls, (call.id for each in replies for call in each.tool_calls)),
        end.usage,
        context.now(),
        cut_off=is_cut,
        shrink_level=budget.shrink_level,
        messages_seen=state.work.messages,
        memory=end.memory,
        prompts=prompts().hash,
        sent=sent[0],
    )


_TOO_SMALL = (
    f"A job needs a model with a window of {LEAST_WINDOW_TOKENS:,} tokens; this one has {{window:,}}. Use another"
    " model, or start its server with a larger window and set the model's context_tokens to it."
)
_NO_TOOLS = (
    "The agent needs a model with tools: {reason}. Start its server with a parser of tool calls for this model, such as"
    " --enable-auto-tool-choice and --tool-call-parser of vLLM or --jinja of llama.cpp, or use another model."
)
_TOO_SLOW = (
    "The job was stopped: it used up its {minutes:g} minutes while the model was still replying. Give its server more"
    " computing power, use a faster model, or set max_minutes of [agent] higher."
)
_TOO_LONG = (
    "The job's conversation does not fit the model ({reason}), although what can be left out of it was. Give shorter "
    "instructions, or a model with a larger window; if the provider's window is smaller than is known here, set the "
    "model's context_tokens."
)


def _request(
    state: Running, context: JobContext, repository: str, budget: ContextBudget, pull_request: SoFar | None
) -> tuple[ModelRequest, SentRequest]:
    """Return the request, and what to record of it."""
    told = conversation.messages(state.request, state.work, repository, window.prompt_bytes(budget), pull_request)
    confirm = context.recorder.confirm
    request = ModelRequest(told, descriptions(), max_output_tokens=budget.reply_tokens, before_retry=confirm)
    return request, context.sent.record(request, state.work.transcript)


async def _whole_reply(
    context: JobContext, request: ModelRequest, sent: SentRequest, until: float
) -> tuple[str, ModelEnd]:
    """A reply to its end. Before its first chunk the port tries again itself; after that we do, a few times.

    Each that was paid and cannot be used is recorded with its cost. Raises ServiceError ``model_replies_lost`` for too
    many of them, BudgetExhausted where there is no whole one ``until`` that time of the context's clock.
    """
    asked_again = 0
    while True:
        text: list[str] = []
        used: list[Usage] = []
        await context.recorder.confirm()  # each time: this process may have been paused in a reply
        try:
            with depending_on("model"):
                asked = replace(request, on_usage=used.append)
                async with asyncio.timeout(max(0.0, until - context.seconds())) as limit:
                    end = await _reply(context.model, asked, text, context.on_text)
        except TimeoutError:
            if not limit.expired():
                raise
            error = BudgetExhausted(_TOO_SLOW.format(minutes=context.budgets.minutes))
            if used:
                await _lose(error, used, context, sent)
            raise error from None
        except ServiceError as error:
            if used or error.code in _UNREADABLE:
                await _lose(error, used, context, sent)
            is_unreadable = error.code == MODEL_REPLY_BROKEN
            if not isinstance(error, Unavailable) or error.code == _TOO_LONG_A_REPLY or not (text or is_unreadable):
                raise
            if asked_again >= MAX_ASKED_AGAIN:
                raise
            asked_again += 1
            if context.on_text is not None:
                context.on_text(ASKED_AGAIN)
        else:
            for usage in used:  # of replies before it, whose failures were waited for below
                lost = RecordLostReply(
                    "unavailable", "The provider failed.", usage, context.now(), prompts().hash, sent
                )
                await context.record(lost)
            return "".join(text), end


async def _lose(error: ServiceError, used: Sequence[Usage], context: JobContext, sent: SentRequest) -> None:
    """Record a reply that is lost. Raise ServiceError when there were too many in a row."""
    usage = functools.reduce(Usage.__add__, used, Usage())
    state = await context.record(RecordLostReply(error.code, str(error), usage, context.now(), prompts().hash, sent))
    assert isinstance(state, Running)
    unreadable = sum(lost.code in _UNREADABLE for lost in state.work.lost)
    if unreadable >= MAX_UNREADABLE or len(state.work.lost) >= MAX_LOST:
        raise ServiceError(_LOST.format(count=len(state.work.lost), reason=error), code="model_replies_lost") from None


_UNREADABLE = (MODEL_REPLY_BROKEN, MODEL_SENT_NOTHING)
_LOST = (
    "The model's replies could not be used {count} times in a row, and each may have to be paid: {reason}. Look at its"
    " server and its model's settings, then give the job a message to go on."
)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
