"""Providers, as pages and commands that add a model know them, and the models that may be chosen."""

from typing import Literal

from msgspec import Struct

from service.domain.model_profiles import Work

Origin = Literal["settings", "environment", "added"]
"""Where a model is named: in the settings, by a key in the environment alone, or by an operator while it runs."""


class Parameter(Struct, frozen=True):
    """A value that a provider needs besides key and address."""

    name: str
    """As the library has it."""
    label: str
    example: str


class ModelProvider(Struct, frozen=True):
    """A provider, or a server for models, and how its models are asked."""

    id: str
    title: str
    prefix: str
    """The beginning of the library's name of each model, with a slash at its end."""
    example: str
    """The name of a model, as the provider has it."""
    api_key_env: str = ""
    """The usual variable of its key; empty where a key is not usual."""
    address: str = ""
    """An example of the address of a server of one's own; empty where the library knows the provider's."""
    parameters: tuple[Parameter, ...] = ()
    context_tokens: int | None = None
    """A window to suggest where the library does not know it."""
    is_free: bool = False
    """It runs on machines of one's own, so that its price is 0."""
    says: str = ""
    """Its special point, in a sentence."""


class KnownModel(Struct, frozen=True):
    """A model that jobs may name."""

    name: str
    model: str
    """The library's name."""
    origin: Origin
    api_base: str = ""
    used_for: tuple[Work, ...] = ()
    """The work that it does where a job names no model."""
    hides_added: bool = False
    """One of the same name was added, and is not used, since the settings win."""
