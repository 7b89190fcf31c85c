"""How one model is asked, as the settings name it."""

from service.domain.model_capabilities import CAPABILITIES
from service.runtime.settings.settings import ModelSection, listed

LEAST_WINDOW_TOKENS = 2_048


class ModelSettings(ModelSection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model that the settings name."""

    alias: str
    connect_timeout_seconds: float = 10.0

    @property
    def refused_parts(self) -> frozenset[str]:
        return frozenset(listed(self.refuses))

    @property
    def accepted_parts(self) -> frozenset[str]:
        return frozenset(listed(self.accepts))

    def __post_init__(self) -> None:
        if (self.input_usd_per_million_tokens is None) != (self.output_usd_per_million_tokens is None):
            raise ValueError("give the price of both input and output tokens, or of neither")
        for name, parts in (("refuses", self.refused_parts), ("accepts", self.accepted_parts)):
            if unknown := parts - set(CAPABILITIES):
                known = ", ".join(CAPABILITIES)
                raise ValueError(f"{name}: {min(unknown)!r} is no part of a request. The parts are: {known}")
        if self.context_tokens is not None and self.context_tokens < LEAST_WINDOW_TOKENS:
            raise ValueError(
                f"context_tokens is at least {LEAST_WINDOW_TOKENS}: our own instructions take half of that"
            )
