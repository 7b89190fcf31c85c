"""How one model is asked, as the settings name it."""

from msgspec import Struct

LEAST_WINDOW_TOKENS = 8_000


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model that the settings name."""

    alias: str
    model: str
    """Its name in litellm, such as ``anthropic/claude-sonnet-4-5``; or ``builtin/…``."""
    api_base: str = ""
    """Where the provider is, if not where litellm knows it to be."""
    api_key_env: str = ""
    """The environment variable that holds the key. Empty: the provider's usual one, but none for an own ``api_base``,
    so that no key goes to a server that it was not meant for."""
    input_usd_per_million_tokens: float | None = None
    output_usd_per_million_tokens: float | None = None
    """Both or neither; without them the price is that of litellm's table."""
    max_output_tokens: int | None = None
    """The most that is ever asked for; without it, what litellm's table says of the model."""
    context_tokens: int | None = None
    """Tokens of a prompt and its reply together; None: as litellm's table has it for the model."""
    fallback: str = ""
    """The alias of the model to ask when this one is down, overloaded or refuses its key."""
    connect_timeout_seconds: float = 10.0
    first_token_timeout_seconds: float = 120.0
    """Until the provider's first bytes of an answer."""
    idle_timeout_seconds: float = 60.0
    """Between one piece of the answer and the next."""

    def __post_init__(self) -> None:
        if (self.input_usd_per_million_tokens is None) != (self.output_usd_per_million_tokens is None):
            raise ValueError("give the price of both input and output tokens, or of neither")
        if self.context_tokens is not None and self.context_tokens < LEAST_WINDOW_TOKENS:
            raise ValueError(
                f"context_tokens is at least {LEAST_WINDOW_TOKENS}: our own instructions take half of that"
            )
