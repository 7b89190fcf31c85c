"""The parameters of a model's settings, as litellm takes them."""

from typing import Any

from service.adapters.models.model_settings import ModelSettings
from service.ports.model import AssistantMessage, ModelRequest


def chosen_parameters(spec: ModelSettings, request: ModelRequest, provider: str, *, is_known: bool) -> dict[str, Any]:
    """Return the parameters that the settings give.

    litellm leaves out those that it knows the model not to take, and any for a model that it does not know
    (``is_known``), such as one of an own server, if it is not made to pass them on.

    Anthropic takes a conversation with tool calls for one of a thinking model only with the thoughts before each call,
    signed (its docs, "Extended thinking with tool use"). Those are not kept, so there it thinks before its first call.
    """
    given: dict[str, Any] = {"temperature": spec.temperature, "top_p": spec.top_p}
    if provider != "anthropic" or not _has_calls(request):
        given["reasoning_effort"] = spec.reasoning_effort
    given = {name: value for name, value in given.items() if value is not None}
    if given and not is_known:
        given["allowed_openai_params"] = list(given)
    return given | spec.extra


def _has_calls(request: ModelRequest) -> bool:
    return any(isinstance(message, AssistantMessage) and message.tool_calls for message in request.messages)
