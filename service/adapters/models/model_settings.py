"""How one model is asked, as the settings name it."""

from service.runtime.settings.settings import ModelSection

LEAST_WINDOW_TOKENS = 8_000


class ModelSettings(ModelSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model that the settings name."""

    alias: str
    connect_timeout_seconds: float = 10.0

    def __post_init__(self) -> None:
        if (self.input_usd_per_million_tokens is None) != (self.output_usd_per_million_tokens is None):
            raise ValueError("give the price of both input and output tokens, or of neither")
        if self.context_tokens is not None and self.context_tokens < LEAST_WINDOW_TOKENS:
            raise ValueError(
                f"context_tokens is at least {LEAST_WINDOW_TOKENS}: our own instructions take half of that"
            )
