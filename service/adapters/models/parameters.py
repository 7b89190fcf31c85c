"""The parameters of a model's settings, as litellm takes them."""

from typing import Any

from service.adapters.models.model_settings import ModelSettings
from service.ports.model import AssistantMessage, ModelRequest


def chosen_parameters(
    spec: ModelSettings, request: ModelRequest, provider: str, *, is_known: bool, owner: str, refused: frozenset[str]
) -> dict[str, Any]:
    """Return the parameters that the settings give.

    litellm leaves out those that it knows the model not to take, and any for a model that it does not know
    (``is_known``), such as one of an own server, if it is not made to pass them on.

    Anthropic takes a conversation with tool calls for one of a thinking model only with the thoughts before each call,
    signed (its docs, "Extended thinking with tool use"). Where those of a call are another model's, or were never kept,
    it does not think.
    """
    given: dict[str, Any] = {}
    if "temperature" not in refused:
        given |= {"temperature": spec.temperature, "top_p": spec.top_p}
    is_whole = provider != "anthropic" or not _lacks_thoughts(request, owner)
    if is_whole and "reasoning_effort" not in refused:
        given["reasoning_effort"] = spec.reasoning_effort
    given = {name: value for name, value in given.items() if value is not None}
    if given and not is_known:
        given["allowed_openai_params"] = list(given)
    return given | spec.extra


def _lacks_thoughts(request: ModelRequest, owner: str) -> bool:
    return any(
        isinstance(message, AssistantMessage)
        and message.tool_calls
        and (message.memory is None or message.memory.owner != owner)
        for message in request.messages
    )
