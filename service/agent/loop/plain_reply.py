"""A model's reply without what is not text, and with the calls that it wrote as text."""

import msgspec

from service.agent.tools.arguments import KINDS
from service.domain.model import ToolCall, decoded_arguments
from service.markup.streaming.model_text import ModelTextFilter
from service.markup.streaming.written_calls import written_calls

UNREAD_CALL = (
    "The model wrote a call of a tool as text, and it is not exactly a call of one of the job's tools. Its server has"
    " no parser of tool calls for this model: start it with one, such as --enable-auto-tool-choice and"
    " --tool-call-parser of vLLM or --jinja of llama.cpp, or use another model."
)


def plain_reply(text: str, calls: tuple[ToolCall, ...], *, is_cut: bool) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text for the record and the calls to carry out.

    Where the provider reports no calls, those that stand in the text are carried out, if each is one of the job's tools
    and its arguments fit. Otherwise the text says why nothing was done.
    """
    reader = ModelTextFilter(KINDS)
    words = (reader.feed(text.replace("\r\n", "\n")) + reader.finish()).strip()
    written = reader.take_calls()
    if calls or not written:
        return words, calls
    found = tuple(ToolCall("", name, arguments) for each in written for name, arguments in written_calls(each, KINDS))
    if found and all(map(_fits, found)):
        return words, found
    return words if is_cut else "\n\n".join(filter(None, (words, UNREAD_CALL))), ()


def _fits(call: ToolCall) -> bool:
    try:
        decoded_arguments(call.arguments, KINDS[call.name])
    except msgspec.DecodeError:
        return False
    return True
