"""The models that operators have added, as the adapter of models takes them."""

import os
from collections import ChainMap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog
from msgspec.structs import replace

from eventstore import Secrets
from service.adapters.models.configured import AddedSettings, LitellmModel, ModelSettings
from service.domain.errors import Invalid
from service.domain.model_profiles import ModelProfile, Work
from service.ports.model import Model
from service.queries.models import AddedModels

log = structlog.get_logger()


def added_settings(added: AddedModels) -> AddedSettings:
    """Return the models that can be used; one that does not fit this program is left out, and named in its log."""
    models: dict[str, ModelSettings] = {}
    for one in added.profiles.models:
        try:
            models[one.profile.name] = settings_of(one.profile)
        except Invalid as error:
            log.warning("an added model cannot be used", model=one.profile.name, reason=str(error))

    def usable(name: str) -> str:
        return name if name in models else ""

    def first_for(work: Work) -> str:
        able = (one.profile.name for one in added.profiles.models if one.can(work))
        return next(filter(usable, able), "")

    chosen = added.profiles.chosen
    return AddedSettings(
        tuple(models.values()), usable(chosen.get("agent", "")), usable(chosen.get("assistant", "")),
        first_for("agent"), first_for("assistant"),
    )  # fmt: skip


def settings_of(profile: ModelProfile) -> ModelSettings:
    """Return how a model is asked. Raise Invalid for what does not go together."""
    try:
        return ModelSettings(
            alias=profile.name,
            model=profile.model,
            api_base=profile.api_base,
            api_key_env=_variable(profile.name) if profile.key_id else profile.api_key_env,
            context_tokens=profile.context_tokens,
            max_output_tokens=profile.max_output_tokens,
            input_usd_per_million_tokens=profile.input_usd_per_million_tokens,
            output_usd_per_million_tokens=profile.output_usd_per_million_tokens,
            extra=dict(profile.extra),
        )
    except ValueError as error:
        raise Invalid(f"The model cannot be used so: {error}.") from None


def environment_with(env: Mapping[str, str], added: AddedModels) -> Mapping[str, str]:
    """Return the environment with the keys that the vault keeps, each under a name that no variable has."""
    models = added.profiles.models
    keys = {_variable(one.profile.name): added.keys.get(one.profile.key_id, "") for one in models if one.profile.key_id}
    return ChainMap({name: key for name, key in keys.items() if key}, dict(env))


@asynccontextmanager
async def open_model(secrets: Secrets, profile: ModelProfile, key: str = "") -> AsyncIterator[Model]:
    """A model on its own, to be tried. ``key``: one that the vault does not keep yet.

    Raises Invalid, and NotFound for a provider that is not known.
    """
    if profile.key_id:
        key = await secrets.find_secret(profile.key_id) or ""
    settings = settings_of(profile)
    if key:
        settings = replace(settings, api_key_env=_variable(profile.name))
    model = LitellmModel(settings, env=ChainMap({_variable(profile.name): key} if key else {}, dict(os.environ)))
    try:
        await model.prepare()
        yield model
    finally:
        await model.close()


def _variable(name: str) -> str:
    return f"the key of {name}"
