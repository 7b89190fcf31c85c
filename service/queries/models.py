"""The models that operators have added, with their keys, as the log and the vault have them."""

from collections.abc import Mapping

from msgspec import Struct

from eventstore import EventStore, EventStoreError, Secrets, StoreUnavailable, load
from service.domain.model_profiles import ModelProfiles
from service.streams import MODELS

INSTALLATION = "installation"
"""There is one list, for all organizations and instances."""


class AddedModels(Struct, frozen=True):
    """The models that were added, and the keys that the vault keeps of them, by their ids."""

    profiles: ModelProfiles = ModelProfiles()
    keys: Mapping[str, str] = {}


async def read_profiles(store: EventStore) -> ModelProfiles:
    """Return the models that were added; none while the log cannot be read."""
    try:
        return (await load(store, MODELS, INSTALLATION)).state
    except StoreUnavailable:
        return ModelProfiles()


async def read_added(store: EventStore, secrets: Secrets) -> AddedModels:
    """Return the models that were added, with their keys. A key that cannot be read is missing."""
    profiles = await read_profiles(store)
    keys: dict[str, str] = {}
    for one in profiles.models:
        try:
            key = await secrets.find_secret(one.profile.key_id) if one.profile.key_id else None
        except EventStoreError:
            continue
        if key is not None:
            keys[one.profile.key_id] = key
    return AddedModels(profiles, keys)


async def key_ids(store: EventStore) -> set[str]:
    """Return the names under which the vault keeps the keys of models."""
    return {one.profile.key_id for one in (await load(store, MODELS, INSTALLATION)).state.models} - {""}
