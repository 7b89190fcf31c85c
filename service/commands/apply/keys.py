"""Entries of keys. A new key's token goes to the file that its entry names, and nowhere else."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from eventstore import plan
from service.commands.access.keys import NewKey, change_key, create_key, revoke_key
from service.commands.apply.entries import KeyEntry
from service.commands.apply.installation import Done, Installation, Owner, Step, change_beside_secret, differences
from service.domain.access.callers import checked_networks, checked_origins
from service.domain.access.keys import LIFETIMES_DAYS, ChangeKey, CreateKey, digest_of
from service.domain.errors import Conflict, Invalid
from service.domain.organizations import checked_name
from service.queries.access.keys import KeyDirectory, list_keys
from service.runtime import secret_files
from service.runtime.system import new_key_token, now
from service.streams import KEYS
from service.views.access.keys import KeyView
from service.views.apply import ChangeView


class Access(Struct, frozen=True):
    """From where a key may be used; None stays as it is."""

    addresses: tuple[str, ...] | None
    origins: tuple[str, ...] | None
    reader_tokens: bool | None


async def plan_key(installation: Installation, entry: KeyEntry) -> Step:
    entry = replace(entry, name=checked_name(entry.name))
    owner = await installation.owner_of_sites(entry.organization, entry.domains or ())
    installation.once("key", owner.name, entry.name)
    named = [
        key for key in await list_keys(installation.views) if key.organization_id == owner.id and key.name == entry.name
    ]
    if len(valid := [key for key in named if key.status == "in_force"]) > 1:
        ids = ", ".join(key.id for key in valid)
        raise Conflict(f"Several keys have the name {entry.name!r}: {ids}. Rename or revoke all but one.")
    if entry.remove:
        return _removal(installation, entry, [key for key in named if key.status != "revoked"])
    if valid:
        return await _change(installation, entry, valid[0])
    return _creation(installation, entry, owner, named)


def _removal(installation: Installation, entry: KeyEntry, named: Sequence[KeyView]) -> Step:
    view = ChangeView(kind="key", name=entry.name, action="none")
    if not named:
        return Step(view)

    async def act() -> Done:
        for key in named:
            await revoke_key(installation.store, key.id, installation.metadata)
        return Done(named[0].id)

    return Step(replace(view, action="remove", id=named[0].id), act)


def _creation(installation: Installation, entry: KeyEntry, owner: Owner, past: Sequence[KeyView]) -> Step:
    if entry.token_file is None:
        raise Invalid("A new key needs token_file, the file that its token is written to. Name it.")
    if past and secret_files.is_there(file := installation.path(entry.token_file)):
        note = f"The key {entry.name} is {past[-1].status}. To create a new one, move {file} away and apply again."
        return Step(ChangeView(kind="key", name=entry.name, action="none", id=past[-1].id, notes=(note,)))
    if entry.kind is None:
        raise Invalid("A new key needs its kind: admin or assistant. Name it.")
    file = installation.new_secret_file(entry.token_file)
    if entry.expires_days is not None and entry.expires_days not in LIFETIMES_DAYS:
        days = ", ".join(map(str, LIFETIMES_DAYS))
        raise Invalid(f"A key cannot expire after {entry.expires_days} days. Choose from {days}, or leave it out.")
    new = NewKey(
        kind=entry.kind,
        organization_id=owner.id,
        name=entry.name,
        domains=entry.domains or (),
        expires_at=now() + timedelta(days=entry.expires_days) if entry.expires_days else None,
        allowed_addresses=entry.addresses or (),
        allowed_origins=entry.origins or (),
        scope=entry.scope or "all",
        is_server=bool(entry.server),
        needs_reader_token=entry.reader_tokens,
    )
    KEYS.decide(CreateKey(**asdict(new), token=new_key_token(new.kind), now=now()), KEYS.initial)

    async def act() -> Done:
        token = new_key_token(new.kind)
        secret_files.keep_unfinished(file, token)
        created = await create_key(installation.store, installation.views, new, installation.metadata, token=token)
        secret_files.finish(file)
        return Done(created.id)

    return Step(ChangeView(kind="key", name=entry.name, action="create", file=str(file)), act)


async def _change(installation: Installation, entry: KeyEntry, key: KeyView) -> Step:
    _require_same_kind(entry, key)
    access = Access(
        None if entry.addresses is None else checked_networks(entry.addresses),
        None if entry.origins is None else checked_origins(entry.origins),
        entry.reader_tokens,
    )
    before = Access(key.allowed_addresses, key.allowed_origins, key.reader_tokens)
    change = ChangeKey(
        now(),
        allowed_addresses=access.addresses,
        allowed_origins=access.origins,
        needs_reader_token=access.reader_tokens,
    )
    given = {name: value for name, value in asdict(access).items() if value is not None}
    make = partial(change_key, installation.store, key.id, change, installation.metadata)
    is_change = await plan(installation.store, KEYS, key.id, change) is not None
    changed = (make, differences(asdict(before), given)) if is_change else None
    return change_beside_secret("key", entry.name, key.id, changed, await _unfinished(installation, entry, key))


def _require_same_kind(entry: KeyEntry, key: KeyView) -> None:
    """Raise Conflict where the entry wants another value of what cannot change."""
    wanted: dict[str, tuple[object, object]] = {
        "kind": (entry.kind, key.kind),
        "domains": (None if entry.domains is None else set(entry.domains), set(key.domains)),
        "scope": (entry.scope, key.scope),
        "server": (entry.server, key.use == "server"),
    }
    for name, (new, old) in wanted.items():
        if new is not None and new != old:
            raise Conflict(
                f"The {name} of the key {entry.name} cannot change. Give the new key another name, and remove this one"
                " with remove = true."
            )


async def _unfinished(installation: Installation, entry: KeyEntry, key: KeyView) -> Path | None:
    """Return the file whose token an earlier run recorded without giving the file its name."""
    if entry.token_file is None or (token := secret_files.unfinished(installation.path(entry.token_file))) is None:
        return None
    keys = KeyDirectory(installation.store)
    await keys.catch_up()
    found = keys.find(digest_of(token))
    return installation.path(entry.token_file) if found is not None and found.id == key.id else None
