"""Turn litellm's errors into our own, and decide when to try again.

The words of an error are ours: a provider's message may quote the key or the prompt, and errors are logged and shown.
Only a provider's reason for refusing a request is passed on, shortened and without secrets: without it, the request
could not be corrected. It is for operators: readers of the assistant learn less (``service.assistant.failures``).
"""

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from service.adapters.redaction import without_secrets
from service.adapters.retry_after import retry_after_seconds
from service.domain.errors import (
    Forbidden,
    Invalid,
    NotFound,
    QuotaUsedUp,
    RateLimited,
    ServiceError,
    Unavailable,
    is_temporary,
)
from service.ports.model import CONTEXT_WINDOW_EXCEEDED

MODEL_KEY_REFUSED = "model_key_refused"
MODEL_REFUSED_REQUEST = "model_refused_request"

MAX_QUOTED_CHARACTERS = 300
_LOOKED_AT_CHARACTERS = 20 * MAX_QUOTED_CHARACTERS


class ContentRefused(Exception):
    """The provider's filter refuses the prompt. No error to a caller: the reply ends as ``refused``."""


_REFUSED = "the provider of {model} refuses the request: {quoted}"

# By the names of litellm's classes, nearest first, so that nothing here needs litellm's import of seconds.
_KINDS: dict[str, tuple[type[ServiceError], str, str]] = {
    "ContextWindowExceededError": (Invalid, CONTEXT_WINDOW_EXCEEDED, "the prompt is too long for {model}"),
    "PaymentRequiredError": (QuotaUsedUp, "", "the account behind the key for {model} has no credit left"),
    "AuthenticationError": (Forbidden, MODEL_KEY_REFUSED, "the provider of {model} refuses the key"),
    "PermissionDeniedError": (Forbidden, MODEL_KEY_REFUSED, "the key may not use {model}"),
    "NotFoundError": (Invalid, MODEL_REFUSED_REQUEST, "the provider does not know {model}"),
    "LiteLLMUnknownProvider": (NotFound, "unknown_model", "no provider is known for {model}"),
    "UnsupportedParamsError": (Invalid, MODEL_REFUSED_REQUEST, "{model} cannot do what is asked: {quoted}"),
    "RateLimitError": (RateLimited, "", "the provider of {model} limits its rate"),
    "Timeout": (Unavailable, "", "the provider of {model} did not answer in time"),
    "APITimeoutError": (Unavailable, "", "the provider of {model} did not answer in time"),
    "ServiceUnavailableError": (Unavailable, "", "the provider of {model} is overloaded or down"),
    "BadGatewayError": (Unavailable, "", "the provider of {model} is overloaded or down"),
    "InternalServerError": (Unavailable, "", "the provider of {model} is overloaded or down"),
    "APIConnectionError": (Unavailable, "", "the provider of {model} cannot be reached"),
    "BadRequestError": (Invalid, MODEL_REFUSED_REQUEST, _REFUSED),
    "UnprocessableEntityError": (Invalid, MODEL_REFUSED_REQUEST, _REFUSED),
    "StreamEnded": (
        Unavailable,
        "",
        "the provider of {model} ended its stream before the reply did, or answered with something else, such as a web"
        " page: check api_base of the model in the settings",
    ),
    "APIResponseValidationError": (Unavailable, "", "the provider of {model} answers what is no answer"),
}

_BY_STATUS = {
    401: "AuthenticationError",
    402: "PaymentRequiredError",
    403: "PermissionDeniedError",
    408: "Timeout",
    425: "ServiceUnavailableError",
    429: "RateLimitError",
}
"""Where the provider's status says more than litellm's class, which may be made from words in the message."""

_SPENT = ("insufficient_quota", "exceeded your current quota", "credit balance is too low")
"""Words of refusals for lack of money, which come as 429 (OpenAI) and 400 (Anthropic)."""

_TOO_LONG = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context length",
    "prompt is too long",
    "input is too long",
    "input token count",
    "exceeds the available context size",
)
"""Words of refusals of a prompt for its length, of which litellm knows only some: OpenAI and its imitators, Anthropic,
Bedrock, Gemini, llama.cpp."""

_ENDED_EARLY = "before any terminal event"
_UNKNOWN_PROVIDER = "LLM Provider NOT provided"


def error_of(
    error: BaseException, *, model: str, status: int, headers: Mapping[str, str], secrets: Collection[str]
) -> ServiceError:
    """Ours for what litellm raised.

    ``secrets`` are left out of what is quoted. ``status`` (0: none) and ``headers`` are those of the provider's answer;
    they decide where litellm's class does not.

    Raises:
        ContentRefused: it is no error.
    """
    wrapper, error = error, getattr(error, "original_exception", None) or error  # litellm's, of what fails in a stream
    said = str(error)
    names = [kind.__name__ for kind in (*type(error).__mro__, *type(wrapper).__mro__)]
    if names[0] == "APIError":  # litellm's for every status that it has no class for
        status = status or getattr(error, "status_code", 0)
    if "ContentPolicyViolationError" in names:
        raise ContentRefused
    code = getattr(error, "status_code", 0) or status
    if any(beginning in said.lower() for beginning in ("<!doctype html", "<html")) and is_page(_PAGES[0], code):
        return answered_with_page(f"the provider of {model}", code)
    found = _KINDS.get(_kind_of(said, status, names, code))
    if found is None:  # a fault in litellm, in us or in the settings: trying again is no help
        return ServiceError(f"the call of {model} could not be made ({type(error).__name__})")
    kind, error_code, sentence = found
    message = sentence.format(model=model, quoted=_quote(said, secrets))
    if issubclass(kind, Unavailable):
        return kind(message, code=error_code or None, retry_after_seconds=retry_after_seconds(headers))
    return kind(message, code=error_code or None)


_PAGES = ("text/html", "application/xhtml+xml")
_PAGE_BEGINNINGS = (b"<!doctype html", b"<html")


def is_page(content_type: str, status: int) -> bool:
    """Return whether an answer is a web page where a model's was expected. Those of servers that are overloaded, or
    refuse a key, often are pages too, and mean what their status says.
    """
    return content_type in _PAGES and status < 500 and status not in _BY_STATUS.keys() - {403}


def begins_page(data: bytes) -> bool:
    return data[:200].lstrip().lower().startswith(_PAGE_BEGINNINGS)


def address_of(url: str) -> str:
    """Return an address without what may be secret in it."""
    place = urlsplit(url)
    return f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}"


def answered_with_page(who: str, status: int) -> Unavailable:
    """Return the error for a web page. ``who``: the address that answered, or the model's provider."""
    return Unavailable(
        f"{who} answered with a web page (status {status}), not as a model's provider does. Check api_base of the"
        " model in the settings, which often ends in /v1, and whether a proxy answers in the provider's place"
    )


def _kind_of(said: str, status: int, names: Sequence[str], code: int) -> str:
    """Return the kind of an error by its words, else its status, else litellm's class, else the code; empty if none."""
    if any(words in said for words in _SPENT):
        return "PaymentRequiredError"
    if _ENDED_EARLY in said:
        return "StreamEnded"
    if _UNKNOWN_PROVIDER in said:
        return "LiteLLMUnknownProvider"
    if status in (400, 413, 422) and any(words in said.lower() for words in _TOO_LONG):
        return "ContextWindowExceededError"
    if status in _BY_STATUS or is_temporary(status):
        return _BY_STATUS.get(status, "InternalServerError")
    by_code = ("BadRequestError" if 400 <= code < 500 else "BadGatewayError") if code else ""
    return next((name for name in names if name in _KINDS), by_code)


def _quote(text: str, secrets: Collection[str]) -> str:
    line = " ".join(without_secrets(text[:_LOOKED_AT_CHARACTERS], [one for one in secrets if one]).split())
    return line if len(line) <= MAX_QUOTED_CHARACTERS else line[: MAX_QUOTED_CHARACTERS - 1] + "…"


class Retries(Struct, frozen=True):
    """How often, and for how long, a call is tried before its first chunk."""

    tries: int = 4
    total_seconds: float = 60.0
    """From the first try on; a wait that would end later is not begun."""
    longest_wait_seconds: float = 20.0

    def wait_seconds(self, error: ServiceError, *, tried: int, spent_seconds: float, random: float) -> float | None:
        """Return the seconds to wait before another try; None for no other try. ``random`` is from 0 to 1.

        A server's Retry-After wins (RFC 9110, section 10.2.3). Otherwise full jitter (AWS Architecture Blog,
        "Exponential Backoff And Jitter") over half a second, doubled each time; four times that when the rate is
        limited, because providers count by the minute. A quota that is used up does not come back so soon.
        """
        if not isinstance(error, Unavailable) or isinstance(error, QuotaUsedUp) or tried >= self.tries:
            return None
        wait = error.retry_after_seconds
        if wait is None:
            base = 2.0 if isinstance(error, RateLimited) else 0.5
            wait = random * min(self.longest_wait_seconds, base * 2 ** (tried - 1))
        return wait if spent_seconds + wait <= self.total_seconds else None
