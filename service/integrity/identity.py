"""The installation's identity: the key that signs its checkpoints, as the log itself names it.

Who can write in a data folder can put another log there with another key, and both look sound. What shows it is kept
elsewhere: the key, or its fingerprint, or a checkpoint. So a new log names the key in the metadata of its first event;
an older one in an event of the service's first start since it does. A key that was exchanged is named again, with the
one before.
"""

import base64
import hashlib
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from eventstore import EventStore, EventStoreError, LogPlace, execute
from eventstore.core import CoreEventStore
from service.domain.audit import IdentifyInstallation, InstallationIdentified
from service.domain.errors import Conflict
from service.integrity.checkpoints import key_text, obtain_key, read_public_key
from service.ports.shared.shared_secrets import SharedSecrets
from service.runtime.system import now
from service.streams import AUDIT, decoded

STREAM = "identity-"
"""And a number: the streams of the events that name the key for the first, the second time …, after the first event."""


class Identity(Struct, frozen=True):
    """A key that the log names."""

    public_key: str
    """In base64."""
    position: int
    """That of the event which names it."""


def fingerprint(public_key: str) -> str:
    """Return the fingerprint of a key in base64, as OpenSSH writes one: of its 32 bytes."""
    digest = hashlib.sha256(base64.b64decode(public_key)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


async def name_in_first_event(store: CoreEventStore, secrets: SharedSecrets, data: Path) -> None:
    """Have the first event of a log, which has none yet, name the installation's key, which is made for it."""
    store.identify(key_text((await obtain_key(secrets, data)).public_key()))


async def record_identity(store: EventStore, secrets: SharedSecrets, data: Path) -> None:
    """Name the installation's key in the log, unless that is the key that the log names last."""
    key = key_text((await obtain_key(secrets, data)).public_key())
    known, number = await _last_identity(store)
    if known is None or known.public_key != key:
        command = IdentifyInstallation(key, "" if known is None else known.public_key, now())
        with suppress(Conflict):  # another instance was faster
            await execute(store, AUDIT, f"{STREAM}{number}", command)


async def find_identity(store: EventStore) -> Identity | None:
    """Return the key that a log names, the last one; None for a log from before that no service has served since."""
    return (await _last_identity(store))[0]


async def _last_identity(store: EventStore) -> tuple[Identity | None, int]:
    """Return the number of the stream for the next one, too."""
    known, number = await store.log_key(), 1
    found = Identity(known, 1) if known else None
    while events := await store.read_stream(AUDIT.stream(f"{STREAM}{number}")):
        number += 1
        for _, event in decoded(AUDIT, events):
            if isinstance(event, InstallationIdentified):
                found = Identity(event.public_key, events[0].position)
    return found, number


async def identity_in(place: LogPlace) -> Identity | None:
    """Return the key that a log in its place names; None also where it cannot be read."""
    try:
        store = await place.open(read_only=True)
    except EventStoreError:
        return None
    try:
        return await find_identity(store)
    except EventStoreError:
        return None
    finally:
        await store.close()


def own_key(file: Path) -> str | None:
    """Return the installation's public key, in base64; None where there is no file of it. Raises Invalid."""
    return key_text(read_public_key(file)) if file.exists() else None
