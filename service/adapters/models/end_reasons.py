"""End reasons of providers, in our words. One that is not in the table is unknown: neither an end nor a failure.

Sources: OpenAI and Anthropic (API references, "finish_reason", "stop_reason"), Gemini ("FinishReason"), Cohere
("finish_reason"), Mistral (``model_length``), DeepSeek (``insufficient_system_resource``), Zhipu (``sensitive``,
``network_error``), Bedrock (``guardrail_intervened``), TGI (``eos_token``), llama.cpp (``eos``, ``limit``), OpenRouter
(``error``).
"""

from collections.abc import Mapping
from typing import Literal

EndReason = Literal["stop", "tool_calls", "length", "refused", "unknown"]

_REASONS: dict[EndReason | Literal["broken"], str] = {
    "stop": "stop stopped end end_turn stop_sequence stop_token eos eos_token eos_token_id complete completed done"
    " finish finished pause_turn normal success",
    "tool_calls": "tool_calls tool_call function_call function_calls tool_use tool",
    "length": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length model_length limit"
    " token_limit context_length model_context_window_exceeded incomplete",
    "refused": "content_filter content_filtered refusal refused safety recitation blocklist prohibited_content spii"
    " language image_safety guardrail_intervened sensitive error_toxic content_policy_violation",
    "broken": "error abort aborted cancelled canceled network_error timeout insufficient_system_resource overloaded"
    " server_error malformed_function_call unexpected_tool_call internal_error",
}
_BY_WORD: Mapping[str, EndReason | Literal["broken"]] = {
    word: reason for reason, words in _REASONS.items() for word in words.split()
}


def end_reason(said: str, *, has_calls: bool, refused: bool = False) -> EndReason | Literal["broken"]:
    """Return the reason for what a provider says; empty where it says nothing, which is a usual end.

    ``broken``: the provider itself says that the reply failed. Calls that arrived whole count whatever else is said of
    the end: some servers say ``stop`` with them.
    """
    word = said.strip().lower().replace("-", "_").replace(" ", "_").removeprefix("finish_reason_")
    reason: EndReason | Literal["broken"] = "refused" if refused else _BY_WORD.get(word, "unknown" if word else "stop")
    return "tool_calls" if has_calls and reason in ("stop", "unknown", "broken") else reason
