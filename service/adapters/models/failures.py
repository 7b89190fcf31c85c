"""Failures of providers by their meaning, from status, type, code and words, wherever they stand.

A failure is an answer with a status, or part of a stream that began with 200; its type, code and words are each
provider's own. One table reads them all, in this order:

| Meaning | Job | Reader |
|---|---|---|
| the prompt is too long for the window | a shorter prompt and reply, then fails | the same, then a sentence |
| one request is too large for the minute's limit | a smaller prompt and reply, then fails | the same |
| no credit is left | fails at once | passages |
| the provider's filter refuses the prompt | fails at once | a sentence |
| the reply is broken, as the provider says itself | asked again, three times in all | asked again |
| busy, or over a quota by time; down | waits | passages |
| the key is refused | fails at once | passages |
| model or address not found | fails at once, with the address | passages |
| the request is refused | fails at once | passages |

Sources of the words: OpenAI, Azure, Anthropic, Gemini, Bedrock, Mistral, Cohere, xAI, Groq, DeepSeek, Moonshot, Zhipu,
Qwen, Together, Fireworks, OpenRouter, GitHub Models, Workers AI, vLLM, SGLang, TGI, llama.cpp, LM Studio, Ollama.
"""

import re
import reprlib
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from service.adapters.models.capabilities import PartRefused, refused_parts
from service.domain.errors import (
    Forbidden,
    Invalid,
    QuotaUsedUp,
    RateLimited,
    ServiceError,
    Unavailable,
    is_temporary,
)
from service.ports.model import CONTEXT_WINDOW_EXCEEDED, MODEL_REPLY_BROKEN, REQUEST_TOO_LARGE

MODEL_KEY_REFUSED = "model_key_refused"
MODEL_REFUSED_REQUEST = "model_refused_request"

Meaning = Literal[
    "too_long", "too_large", "spent", "refused_by_filter", "broken", "busy", "down", "late", "unreached", "not_allowed",
    "not_found", "refused",
]  # fmt: skip


class ContentRefused(Exception):
    """The provider's filter refuses the prompt. No error to a caller: the reply ends as ``refused``."""


_LOOKED_AT = 4_000
"""Characters of a provider's words that are read."""


_TOO_LARGE = re.compile(
    r"request too large|"
    r"request body too large|"
    r"tokens_limit_reached|"
    r"request_too_large|"
    r"request entity too large|"
    r"payload too large",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"limit:? ([\d,]{1,18})\b.{0,80}?\brequested:? (?:about )?([\d,]{1,18})", re.IGNORECASE | re.DOTALL)
"""The tokens of a minute and those of the request, as OpenAI and Groq write them."""
_TOO_LONG = re.compile(
    r"context_length_exceeded|"
    r"exceed_context_size|"
    r"context window|"
    r"maximum context|"
    r"context length|"
    r"context[ _]size|"
    r"context limit|"
    r"context_window|"
    r"context the overflows|"
    r"context shift is disabled|"
    r"maximum prompt length|"
    r"prompt exceeds max|"
    r"(?:prompt|input|inputs|conversation) (?:is|are) too long|"
    r"too many (?:input )?tokens|"
    r"input token count|"
    r"input tokens? exceed|"
    r"model token limit|"
    r"range of input length|"
    r"longer than the (?:maximum )?model|"
    r"exceeds? the maximum (?:allowed )?length|"
    r"exceeds the maximum number of tokens|"
    r"must be <= \d+\. given: \d+|"
    r"max_tokens must be at least 1|"
    r"reduce the length of the (?:messages|prompt)|"
    r"string_above_max_length|"
    r"total number of tokens",
    re.IGNORECASE,
)
_SPENT = re.compile(
    r"insufficient_quota|"
    r"credit balance is too low|"
    r"insufficient (?:account )?balance|"
    r"insufficient credits?|"
    r"billing_hard_limit|"
    r"billing_not_active|"
    r"billing_error|"
    r"payment required|"
    r"monthly spending limit|"
    r"monthly spend|"
    r"spend(?:ing)? limit|"
    r"used all available credits|"
    r"run out of credits|"
    r"out of credits|"
    r"arrearage|"
    r"requires more credits|"
    r"no credits?",
    re.IGNORECASE,
)
_PERHAPS_SPENT = re.compile(r"exceeded your current quota|exceeded_current_quota", re.IGNORECASE)
_BY_TIME = re.compile(
    r"retry in \d|"
    r"retry ?after|"
    r"per[ _-]?minute|"
    r"per[ _-]?day|"
    r"per[ _-]?hour|"
    r"retrydelay|"
    r"quotaid|"
    r"try again (?:in|at|later)|"
    r"generativelanguage|"
    r"resets? (?:in|at)",
    re.IGNORECASE,
)
"""Words of a quota that comes back by itself."""
_FILTER = re.compile(
    r"content_filter|"
    r"content[ _]policy|"
    r"content management policy|"
    r"responsible ?ai ?policy|"
    r"data_inspection_failed|"
    r"sensitive content|"
    r"prohibited_content|"
    r"inappropriate content|"
    r"guardrail|"
    r"requires moderation|"
    r"flagged for|"
    r"safety_check|"
    r"content_moderation",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"tool_use_failed|"
    r"failed to call a function|"
    r"failed to parse (?:input|tool)|"
    r"error parsing tool|"
    r"malformed function call|"
    r"output_parse_failed|"
    r"tool call validation failed",
    re.IGNORECASE,
)
_BUSY = re.compile(
    r"rate[ _-]?limit|"
    r"too many requests|"
    r"resource_exhausted|"
    r"quota|"
    r"throttl|"
    r"engine_overloaded|"
    r"concurrency limit|"
    r"model_overloaded",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"overloaded|"
    r"server_error|"
    r"service[ _]unavailable|"
    r"internal_error|"
    r"internal server error|"
    r"at capacity|"
    r"is (?:currently )?loading|"
    r"loading model|"
    r"api_error|"
    r"bad gateway",
    re.IGNORECASE,
)
_NOT_ALLOWED = re.compile(
    r"authentication|"
    r"permission|"
    r"invalid[ _]api[ _]key|"
    r"incorrect api key|"
    r"unauthorized|"
    r"forbidden|"
    r"api key not valid|"
    r"access[ _]denied|"
    r"must be verified|"
    r"unsupported_country",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(
    r"model[ _]not[ _]found|"
    r"not_found|"
    r"unknown model|"
    r"no endpoints found|"
    r"deploymentnotfound|"
    r"model .{0,200}(?:does not exist|not found)|"
    r"try pulling it",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"invalid[ _]request|bad[ _]?request|invalid_argument|validation|unsupported", re.IGNORECASE)

_BY_STATUS: Mapping[int, Meaning] = {
    401: "not_allowed",
    402: "spent",
    403: "not_allowed",
    404: "not_found",
    408: "late",
    413: "too_large",
    425: "down",
    429: "busy",
    504: "late",
}


def meaning_of(status: int, words: str, *, has_time: bool = False) -> Meaning | None:
    """Return the meaning of a failure; None when nothing says it.

    ``status``: 0 where there is none. ``words``: its type, code and message, together. ``has_time``: whether the
    provider says when to come back.
    """
    words = words[:_LOOKED_AT]
    limit = _LIMIT.search(words)
    if _TOO_LARGE.search(words) or (limit is not None and _number(limit[2]) > _number(limit[1])):
        return "too_large"
    if status not in (401, 403) and not (status == 429 and _BY_TIME.search(words)) and _TOO_LONG.search(words):
        return "too_long"
    if _SPENT.search(words) or (_PERHAPS_SPENT.search(words) and not (has_time or _BY_TIME.search(words))):
        return "spent"
    if status not in (401, 408, 429) and status < 500 and _FILTER.search(words):
        return "refused_by_filter"
    if _BROKEN.search(words):
        return "broken"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status and is_temporary(status):
        return "down"
    for pattern, meaning in _BY_WORDS:
        if pattern.search(words):
            return meaning
    return "refused" if 400 <= status < 500 else None


def _number(text: str) -> int:
    return int(text.replace(",", "") or 0)


_BY_WORDS: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (_BUSY, "busy"),
    (_NOT_ALLOWED, "not_allowed"),
    (_NOT_FOUND, "not_found"),
    (_DOWN, "down"),
    (_REFUSED, "refused"),
)


class _Kind(Struct, frozen=True):
    error: type[ServiceError]
    code: str
    sentence: str
    """With ``{model}``, ``{at}`` for the address, and ``{quoted}`` for the provider's words."""


KINDS: Mapping[Meaning, _Kind] = {
    "too_long": _Kind(Invalid, CONTEXT_WINDOW_EXCEEDED, "the prompt is too long for {model}"),
    "too_large": _Kind(
        Invalid,
        REQUEST_TOO_LARGE,
        "one request is larger than the provider of {model} accepts in a minute, or at all: raise its limit of tokens"
        " there, or set context_tokens of the model below it",
    ),
    "spent": _Kind(QuotaUsedUp, "", "the account behind the key for {model} has no credit left"),
    "broken": _Kind(Unavailable, MODEL_REPLY_BROKEN, "the provider of {model} could not read its model's reply"),
    "busy": _Kind(RateLimited, "", "the provider of {model} limits its rate"),
    "down": _Kind(Unavailable, "", "the provider of {model} is overloaded or down"),
    "late": _Kind(Unavailable, "", "the provider of {model} did not answer in time"),
    "unreached": _Kind(Unavailable, "", "the provider of {model} cannot be reached"),
    "not_allowed": _Kind(
        Forbidden, MODEL_KEY_REFUSED, "the provider of {model} refuses the key, or does not let it use the model"
    ),
    "not_found": _Kind(
        Invalid,
        MODEL_REFUSED_REQUEST,
        "the provider does not know {model}{at}. Look at model and api_base in the settings{quoted}",
    ),
    "refused": _Kind(Invalid, MODEL_REFUSED_REQUEST, "the provider of {model} refuses the request{quoted}"),
}


def error_for(
    meaning: Meaning,
    *,
    model: str = "the model",
    address: str = "",
    quoted: str = "",
    retry_after_seconds: float | None = None,
) -> ServiceError:
    """Return our error for a meaning. Raise ContentRefused for a refusal by a filter.

    ``quoted``: the provider's words, without secrets; empty for none.
    """
    if meaning == "refused_by_filter":
        raise ContentRefused
    kind = KINDS[meaning]
    message = kind.sentence.format(
        model=model, at=f" at {address}" if address else "", quoted=f": {quoted}" if quoted else ""
    )
    if issubclass(kind.error, Unavailable):
        return kind.error(message, code=kind.code or None, retry_after_seconds=retry_after_seconds)
    return kind.error(message, code=kind.code or None)


def failure_in_stream(error: object) -> ServiceError:
    """Return the error for what a provider put into its stream. Its message stays out: it may quote us.

    Raises ContentRefused: its filter refuses the prompt.
    """
    status, words = _described(error)
    meaning = meaning_of(status, words)
    if meaning is None:
        return Unavailable("the model's provider reports a failure in its stream")
    return perhaps_of_a_part(error_for(meaning), meaning, words)


def perhaps_of_a_part(error: ServiceError, meaning: Meaning | None, words: str) -> ServiceError:
    """Return the error as a refusal of a part of the request, where the words may say so."""
    parts = refused_parts(words) if meaning in ("refused", "not_found", "down", None) else ()
    return PartRefused(parts, error) if parts else error


def _described(error: object) -> tuple[int, str]:
    """Return the status and the words of an error object, as OpenAI, Anthropic and those who imitate them write it."""
    while isinstance(error, dict) and isinstance(inner := error.get("error"), dict):
        error = inner
    if not isinstance(error, dict):
        return 0, _words(error)
    status = next(
        (_status(error.get(name)) for name in ("code", "status", "status_code") if _status(error.get(name))), 0
    )
    names = ("type", "code", "status", "error_type", "error", "message", "detail", "param", "metadata")
    return status, " ".join(_words(error[name]) for name in names if error.get(name))


_looked_at = reprlib.Repr()
_looked_at.maxstring = _looked_at.maxother = _looked_at.maxlong = _LOOKED_AT
_looked_at.maxdict = _looked_at.maxlist = 50


def _words(value: object) -> str:
    """Return a value as text, as much of it as is looked at."""
    return value[:_LOOKED_AT] if isinstance(value, str) else _looked_at.repr(value)[:_LOOKED_AT]


def _status(value: Any) -> int:
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and len(text) == 3 and 400 <= int(text) < 600 else 0
