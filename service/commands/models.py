"""Add a model while the service runs, try it, choose it for a kind of work, remove it."""

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from eventstore import EventStore, EventStoreError, Metadata, OutcomeUnknown, Secrets, execute, load
from service.domain.errors import Invalid
from service.domain.model_profiles import (
    AddModel,
    ChooseModel,
    Finding,
    ModelProfile,
    RecordTrial,
    RemoveModel,
    RequestTrial,
    Work,
    checked,
)
from service.ports.model import Model
from service.ports.model_probe import Probe, probe_model
from service.ports.model_provider import ModelProvider
from service.queries.models import INSTALLATION
from service.runtime.system import new_id, now
from service.streams import MODELS

MAX_KEY_CHARACTERS = 5_000


def profile_of(provider: ModelProvider, name: str, model: str, values: Mapping[str, object]) -> ModelProfile:
    """Return the profile of a model of a provider. ``model``: with or without the provider's prefix; ``values``: by the
    names of the profile's fields, and those of the provider's parameters.

    Raises Invalid for a value that is missing, unknown or does not fit.
    """
    parameters = {one.name: str(values[one.name]).strip() for one in provider.parameters if values.get(one.name)}
    fields = {key: value for key, value in values.items() if key in ModelProfile.__struct_fields__ and value != ""}
    unknown = values.keys() - fields.keys() - parameters.keys()
    if strange := [key for key in unknown if values[key] not in ("", None)]:
        raise Invalid(f"{provider.title} has no parameter {strange[0]!r}.")
    address = str(fields.get("api_base") or "")
    if provider.address and not address:
        raise Invalid(f"The address of {provider.title} is missing, such as {provider.address}.")
    if missing := [one for one in provider.parameters if one.name not in parameters]:
        raise Invalid(f"{missing[0].label} is missing: {missing[0].name}, such as {missing[0].example}.")
    if provider.is_free and fields.get("input_usd_per_million_tokens") is None:
        fields |= {"input_usd_per_million_tokens": 0.0, "output_usd_per_million_tokens": 0.0}
    full = model.strip() if model.strip().startswith(provider.prefix) else f"{provider.prefix}{model.strip()}"
    made = ModelProfile(name.strip(), provider.id, full, extra=parameters)
    return checked(replace(made, **{**fields, "api_base": address.rstrip("/")}))


async def add_model(
    store: EventStore,
    secrets: Secrets,
    profile: ModelProfile,
    metadata: Metadata,
    *,
    key: str = "",
    findings: tuple[Finding, ...] = (),
) -> ModelProfile:
    """Record a model, in place of the one that has its name, and return it as it is recorded. ``key``: kept in the
    vault; ``findings``: those of a trial before, else the service tries it.

    Raises Invalid and Conflict.
    """
    if key and profile.api_key_env:
        raise Invalid("A model has one key: the variable's, or the one that is typed here. Leave one out.")
    if len(key) > MAX_KEY_CHARACTERS or not key.isprintable():
        raise Invalid("This is not a key: it has control characters, or is too long.")
    before = (await load(store, MODELS, INSTALLATION)).state.find(profile.name)
    if key:
        profile = replace(profile, key_id=new_id())
        await secrets.keep_secret(profile.key_id, key)
    try:
        await execute(store, MODELS, INSTALLATION, AddModel(profile, now(), findings), metadata=metadata)
    except OutcomeUnknown:
        raise
    except BaseException:
        await _forget(secrets, profile.key_id)
        raise
    if before is not None and before.profile.key_id != profile.key_id:
        await _forget(secrets, before.profile.key_id)
    return profile


async def remove_model(store: EventStore, secrets: Secrets, name: str, metadata: Metadata) -> None:
    """Remove a model and forget its key. Raises NotFound."""
    known = (await load(store, MODELS, INSTALLATION)).state.find(name)
    await execute(store, MODELS, INSTALLATION, RemoveModel(name, now()), metadata=metadata)
    if known is not None:
        await _forget(secrets, known.profile.key_id)


async def choose_model(store: EventStore, work: Work, name: str, metadata: Metadata) -> None:
    """Have a model do a kind of work where the settings name none; empty: no longer. Raises NotFound."""
    await execute(store, MODELS, INSTALLATION, ChooseModel(work, name, now()), metadata=metadata)


async def request_trial(store: EventStore, name: str, metadata: Metadata) -> None:
    """Have the service try a model. Raises NotFound."""
    await execute(store, MODELS, INSTALLATION, RequestTrial(name, now()), metadata=metadata)


async def record_trial(store: EventStore, profile: ModelProfile, probe: Probe, metadata: Metadata) -> None:
    """Record what a model was found to do, unless it is another one by now."""
    command = RecordTrial(profile, findings_of(probe), now())
    await execute(store, MODELS, INSTALLATION, command, metadata=metadata)


async def try_model(store: EventStore, profile: ModelProfile, model: Model, metadata: Metadata) -> Probe:
    """Try a model, and record what it was found to do."""
    probe = await probe_model(model)
    await record_trial(store, profile, probe, metadata)
    return probe


def findings_of(probe: Probe) -> tuple[Finding, ...]:
    """Return what was found as it is recorded."""
    return tuple(Finding(one.ability, one.verdict, one.says, one.mend) for one in probe.tried)


async def _forget(secrets: Secrets, key_id: str) -> None:
    if key_id:
        with suppress(EventStoreError):  # a later start forgets it
            await secrets.forget_secret(key_id)
