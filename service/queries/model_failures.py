"""The assistant's model while it fails: why, since when, and the setting to change. For those who run the service."""

from msgspec import Struct

from eventstore import Views
from service.ports.model import Models


class ModelFailing(Struct, frozen=True):
    """The last reply of the assistant's model was none."""

    model: str
    code: str
    reason: str
    """The provider's words: for operators alone."""
    failed_at: str
    since: str
    replies: int
    """How many failed, one after the other."""

    @property
    def says(self) -> str:
        """Return what is wrong, without the provider's words."""
        return _ADVICE.get(self.code, _OTHER)[0]

    @property
    def mend(self) -> str:
        """Return what to change."""
        return _ADVICE.get(self.code, _OTHER)[1]


_MODEL = "Choose or add another on the page Models, or set model in its [models] section."
_AWAY = "Look at the provider's status and at api_base in its [models] section; fallback there names another model."
_WINDOW = "Set context_tokens in its [models] section to the window that its server was started with."
_OTHER = ("The call fails.", _MODEL)
_ADVICE = {
    "model_key_refused": (
        "The provider refuses the key, or there is none.",
        "Enter another key on the page Models, or set the variable of its api_key_env and start the service again.",
    ),
    "quota_used_up": (
        "The account at the provider has no credit left.",
        "Add credit there, or set fallback in its [models] section.",
    ),
    "rate_limited": (
        "The provider takes no more requests at the moment.",
        "Ask the provider for a higher limit, or set fallback in its [models] section.",
    ),
    "unavailable": ("The provider does not answer.", _AWAY),
    "timed_out": ("The provider took too long.", _AWAY),
    "model_cut_off": ("The provider ends its replies before their end.", _AWAY),
    "model_too_slow": (
        "The model is too slow: an answer's time was used up while it was still writing.",
        "Give its server more computing power, use a faster model, or set max_minutes of [assistant] higher.",
    ),
    "unknown_model": ("The provider does not know the model.", _MODEL),
    "model_refused_request": ("The provider refuses the request.", _MODEL),
    "model_reply_broken": ("The provider's replies cannot be read.", _AWAY),
    "model_sent_nothing": ("The provider answers with an empty stream.", _WINDOW),
    "request_too_large": (
        "One request is larger than the provider accepts in a minute.",
        "Ask the provider for a higher limit of tokens, or set context_tokens in its [models] section below it.",
    ),
    "context_window_exceeded": ("The prompt does not fit the model's window.", _WINDOW),
    "model_empty": ("The model writes nothing.", _MODEL),
}


async def find_failing_model(views: Views, models: Models) -> ModelFailing | None:
    """Return the failure of the assistant's model, unless a reply has worked since, or another model is used now."""
    rows = await views.query("SELECT model, code, reason, failed_at, since, replies FROM model_failure", ())
    failing = [ModelFailing(*row) for row in rows]
    return failing[0] if failing and failing[0].model == models.for_assistant().name else None
