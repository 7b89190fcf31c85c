"""The messages that readers get when a model failed: the assistant is busy, unavailable or misconfigured, and no more.

A provider's message may quote our key, the prompt, or its own machines, and it names the model; that is for the log.
"""

from service.domain.errors import QuotaUsedUp, RateLimited, ServiceError, Unavailable
from service.domain.threads.replies import ModelFailure, ReplyBroken
from service.ports.model import CONTEXT_WINDOW_EXCEEDED, ModelEnd

MODEL_EMPTY = "model_empty"
MODEL_TOO_SLOW = "model_too_slow"

BUSY = ReplyBroken("assistant_busy", "The assistant is busy. Ask again in a moment.")
UNAVAILABLE = ReplyBroken("assistant_unavailable", "The assistant is unavailable. Ask again in a moment.")
MISCONFIGURED = ReplyBroken(
    "assistant_misconfigured",
    "The assistant is misconfigured. Report it to the owner of this site; the service's log has the reason.",
)
TOO_LONG = ReplyBroken(
    CONTEXT_WINDOW_EXCEEDED, "The question is too long with its context. Ask for less at once, or begin a new chat."
)
EMPTY = ReplyBroken("assistant_empty", "The assistant wrote no answer. Ask again, or in other words.")

STANDS_IN = (BUSY, UNAVAILABLE, MISCONFIGURED, EMPTY)
"""Failures in whose place readers get passages, below a note (``notes.stand_in_note``)."""

CONTENT_FILTER = "content_filter"
_WITHHELD = "The assistant's model does not answer this: its content filter stopped it. Ask in other words."
_ENDED = "The answer ends here: the content filter of the assistant's model stopped it."


class ModelFailed(Exception):
    """A call of the model that failed, in the model's own words."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(str(error))
        self.error = error


def is_filtered(end: ModelEnd) -> bool:
    """Return whether a content filter ended the reply, or the model itself refused to write it."""
    return end.reason == "refused" and not end.tool_calls


def filtered_failure(model: str) -> ModelFailure:
    """Return what the operator learns of a reply that a content filter ended."""
    return ModelFailure(model, CONTENT_FILTER, "a content filter ended the reply, or the model refused to write it")


def filter_notice(*, after_text: bool) -> str:
    """Return the sentence about it for the reader, as a paragraph of its own."""
    return f"\n\n{_ENDED}" if after_text else _WITHHELD


def empty_reply(*, has_written_call: bool) -> ModelFailed:
    """Return the failure of a model that has written nothing, asked twice. ``has_written_call``: but calls as text."""
    says = (
        "the model writes its calls of tools as text: start its server with a parser of tool calls for this model"
        if has_written_call
        else "the model wrote nothing, although it was asked twice"
    )
    return ModelFailed(ServiceError(says, code=MODEL_EMPTY))


def out_of_time(minutes: float) -> ModelFailed:
    """Return the failure of a model that was still writing when the time of its answer was used up."""
    says = (
        f"the answer's {minutes:g} minutes were used up while the model was still writing: give its server more"
        " computing power, use a faster model, or set max_minutes of [assistant] higher"
    )
    return ModelFailed(Unavailable(says, code=MODEL_TOO_SLOW))


def as_readers_learn(error: ServiceError) -> ReplyBroken:
    """Return the end of a reply for a failure of its model."""
    if isinstance(error, QuotaUsedUp):
        return MISCONFIGURED
    if isinstance(error, RateLimited):
        return BUSY
    if isinstance(error, Unavailable):
        return UNAVAILABLE
    return _BY_CODE.get(error.code, MISCONFIGURED)


_BY_CODE = {CONTEXT_WINDOW_EXCEEDED: TOO_LONG, MODEL_EMPTY: EMPTY}
