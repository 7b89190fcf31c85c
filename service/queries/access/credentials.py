"""Passkeys and provider accounts of one person, from the log: there are few, and a removed one is gone at once."""

from eventstore import EventStore, load
from service.domain.access.credentials import Credentials
from service.domain.texts.times import timestamp
from service.streams import CREDENTIALS
from service.views.access.credentials import CredentialsView, PasskeyView


async def known_credentials(store: EventStore, person_id: str) -> Credentials:
    return (await load(store, CREDENTIALS, person_id, may_be_old=True)).state


async def get_credentials(store: EventStore, person_id: str) -> CredentialsView:
    found = await known_credentials(store, person_id)
    passkeys = tuple(
        PasskeyView(one.id, one.name, timestamp(one.added_at), timestamp(one.used_at) if one.used_at else None)
        for one in found.passkeys
    )
    return CredentialsView(passkeys, tuple(found.accounts))
