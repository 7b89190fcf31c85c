"""Turn litellm's errors into our own, and decide when to try again.

The words of an error are ours: a provider's message may quote the key or the prompt, and errors are logged and shown.
Only a provider's reason for refusing a request is passed on, shortened and without secrets: without it, the request
could not be corrected. It is for operators: readers of the assistant learn less (``service.assistant.failures``).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from service.adapters.models.failures import MODEL_REFUSED_REQUEST, Meaning, error_for, meaning_of, perhaps_of_a_part
from service.adapters.redaction import without_secrets
from service.adapters.retry_after import retry_after_seconds
from service.domain.errors import Invalid, NotFound, QuotaUsedUp, RateLimited, ServiceError, Unavailable
from service.ports.model import MODEL_REPLY_BROKEN, MODEL_SENT_NOTHING

MAX_QUOTED_CHARACTERS = 300
_LOOKED_AT_CHARACTERS = 20 * MAX_QUOTED_CHARACTERS

# By the names of litellm's classes, nearest first, so that nothing here needs litellm's import of seconds.
_BY_CLASS: Mapping[str, Meaning] = {
    "ContextWindowExceededError": "too_long",
    "PaymentRequiredError": "spent",
    "AuthenticationError": "not_allowed",
    "PermissionDeniedError": "not_allowed",
    "NotFoundError": "not_found",
    "RateLimitError": "busy",
    "Timeout": "late",
    "APITimeoutError": "late",
    "ServiceUnavailableError": "down",
    "BadGatewayError": "down",
    "InternalServerError": "down",
    "APIConnectionError": "unreached",
    "BadRequestError": "refused",
    "UnprocessableEntityError": "refused",
    "APIResponseValidationError": "broken",
}
_SURE: Collection[Meaning] = ("too_long", "too_large", "spent", "refused_by_filter", "broken")
"""Meanings of a provider's words that decide also where no status came with them."""

_ENDED_EARLY = "before any terminal event"
_UNKNOWN_PROVIDER = "LLM Provider NOT provided"
_OWN_WORDS = re.compile(r"litellm\.\w+:|\b\w+Exception -")
"""Words that litellm puts before a provider's, with the name of its class."""


def error_of(
    error: BaseException,
    *,
    model: str,
    status: int,
    headers: Mapping[str, str],
    secrets: Collection[str],
    address: str = "",
) -> ServiceError:
    """Ours for what litellm raised.

    ``secrets`` are left out of what is quoted. ``status`` (0: none) and ``headers`` are those of the provider's answer;
    they decide where litellm's class does not. ``address``: the one that was asked.

    Raises:
        ContentRefused: it is no error.
    """
    wrapper, error = error, getattr(error, "original_exception", None) or error  # litellm's, of what fails in a stream
    said = str(error)
    names = [kind.__name__ for kind in (*type(error).__mro__, *type(wrapper).__mro__)]
    if names[0] == "APIError":  # litellm's for every status that it has no class for
        status = status or getattr(error, "status_code", 0)
    code = getattr(error, "status_code", 0) or status
    if any(beginning in said.lower() for beginning in ("<!doctype html", "<html")) and is_page(_PAGES[0], code):
        return answered_with_page(f"the provider of {model}", code)
    if _ENDED_EARLY in said:
        return Unavailable(
            f"the provider of {model} ended its stream before the reply did, or answered with something else, such as a"
            " web page: check api_base of the model in the settings"
        )
    if _UNKNOWN_PROVIDER in said:
        return NotFound(f"no provider is known for {model}", code="unknown_model")
    quoted = _quote(said, secrets)
    if "UnsupportedParamsError" in names:
        return Invalid(f"{model} cannot do what is asked: {quoted}", code=MODEL_REFUSED_REQUEST)
    retry_after = retry_after_seconds(headers)
    meaning = _meaning_of(_OWN_WORDS.sub("", said), status, names, code, has_time=retry_after is not None)
    if meaning is None:  # a fault in litellm, in us or in the settings: trying again is no help
        return ServiceError(f"the call of {model} could not be made ({type(error).__name__})")
    found = error_for(meaning, model=model, address=address, quoted=quoted, retry_after_seconds=retry_after)
    return perhaps_of_a_part(found, meaning, said)


def _meaning_of(said: str, status: int, names: Sequence[str], code: int, *, has_time: bool) -> Meaning | None:
    """Return the meaning of an error by the provider's status and words, else litellm's class, else its code."""
    if "ContentPolicyViolationError" in names:
        return "refused_by_filter"
    by_words = meaning_of(status, said, has_time=has_time)
    if status or by_words in _SURE:
        return by_words
    by_code: Meaning | None = ("refused" if code < 500 else "down") if code >= 400 else None
    return next((_BY_CLASS[name] for name in names if name in _BY_CLASS), by_code)


_PAGES = ("text/html", "application/xhtml+xml")
_PAGE_BEGINNINGS = (b"<!doctype html", b"<html")


def is_page(content_type: str, status: int) -> bool:
    """Return whether an answer is a web page where a model's was expected. Those of servers that are overloaded, or
    refuse a key, often are pages too, and mean what their status says.
    """
    return content_type in _PAGES and status < 500 and status not in (401, 402, 408, 425, 429)


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


def _quote(text: str, secrets: Collection[str]) -> str:
    line = " ".join(without_secrets(text[:_LOOKED_AT_CHARACTERS], [one for one in secrets if one]).split())
    return line if len(line) <= MAX_QUOTED_CHARACTERS else line[: MAX_QUOTED_CHARACTERS - 1] + "…"


_NOT_AGAIN = (MODEL_REPLY_BROKEN, MODEL_SENT_NOTHING)
"""Codes of replies that are not asked for again here: the caller counts what was paid, or sends a shorter prompt."""


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
        if error.code in _NOT_AGAIN:
            return None
        wait = error.retry_after_seconds
        if wait is None:
            base = 2.0 if isinstance(error, RateLimited) else 0.5
            wait = random * min(self.longest_wait_seconds, base * 2 ** (tried - 1))
        return wait if spent_seconds + wait <= self.total_seconds else None
