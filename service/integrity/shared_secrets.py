"""Secrets of the installation, of which all instances of the service have the same: see the port SharedSecrets.

With the log in its data folder there is one instance, and each secret is a file there, such as ``usage.key``. With the
log in PostgreSQL each is a secret of the vault: sealed like those, in the same database, and in its backups.

Which of the two an installation has may change (``docsmith store copy --move``). So a secret that is missing in the one
is taken over from the other: signatures and digests stay what they were.
"""

import asyncio
import base64
import os
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from eventstore import EventStoreError, Secrets, StoreUnavailable, SubjectErased
from eventstore.sqlite.files import sync_folder
from service.ports.shared.shared_secrets import PREFIX, SharedSecrets

USAGE, CHECKPOINT, CLUSTER = "usage", "checkpoint", "cluster"
"""Names: of the secret behind digests of addresses and reader tokens, of the key that signs checkpoints, and of the
secret that instances know each other by."""
SECRET_BYTES = 32
_REPLACED = "replaced"

new_secret = partial(secrets.token_bytes, SECRET_BYTES)


class FileSecrets:
    """Secrets in files of a data folder, readable by its owner alone."""

    def __init__(self, data: Path) -> None:
        self._data = data

    async def obtain(self, name: str, make: Callable[[], bytes]) -> bytes:
        return await asyncio.to_thread(self._obtain, name, make)

    async def find(self, name: str) -> bytes | None:
        return await asyncio.to_thread(self._find, name)

    async def set_apart(self, name: str) -> None:
        """Rename the file of a secret that is not in use any more."""
        file = self._file(name)
        with suppress(OSError):  # it is in no one's way there
            await asyncio.to_thread(os.replace, file, file.with_name(f"{file.name}.{_REPLACED}"))

    def _file(self, name: str) -> Path:
        return self._data / f"{name}.key"

    def _find(self, name: str) -> bytes | None:
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError:
            return None

    def _obtain(self, name: str, make: Callable[[], bytes]) -> bytes:
        while (found := self._find(name)) is None:
            self._create(self._file(name), make())
        return found

    def _create(self, file: Path, secret: bytes) -> None:
        """Keep a secret unless there is one: of several processes that make it at once, one wins."""
        for left in file.parent.glob(f".{file.name}.*"):  # of a process that was killed
            left.unlink(missing_ok=True)
        fresh = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(secret)
                opened.flush()
                os.fsync(descriptor)
            with suppress(FileExistsError, FileNotFoundError):  # another was faster, or took it for a left one
                os.link(fresh, file)  # never replaces one
        finally:
            fresh.unlink(missing_ok=True)
        sync_folder(file.parent)


class VaultSecrets:
    """Secrets among those of the vault, each as ``shared-NAME-NUMBER``; the number grows when one was forgotten."""

    def __init__(self, kept: Secrets) -> None:
        self._kept = kept

    async def obtain(self, name: str, make: Callable[[], bytes]) -> bytes:
        number = 0
        while (found := await self.find(name)) is None:
            number += 1
            try:
                await self._kept.keep_secret(f"{PREFIX}{name}-{number}", base64.b64encode(make()).decode())
            except SubjectErased:
                continue  # it was forgotten, and its name is not used again
            except EventStoreError:
                if await self.find(name) is None:  # no other was faster
                    raise
        return found

    async def find(self, name: str) -> bytes | None:
        for number in _numbers_of(name, await self._kept.secret_names()):
            text = await self._kept.find_secret(f"{PREFIX}{name}-{number}")
            if text is not None:
                return base64.b64decode(text)
        return None


class MovedSecrets:
    """Secrets that are taken over from where they were before, at first use."""

    def __init__(self, kept: FileSecrets | VaultSecrets, before: FileSecrets | VaultSecrets) -> None:
        self._kept, self._before = kept, before

    async def obtain(self, name: str, make: Callable[[], bytes]) -> bytes:
        found = await self._kept.find(name)
        if found is not None and isinstance(self._kept, FileSecrets):
            return found
        before = await self._before.find(name)
        if found is None:
            found = await self._kept.obtain(name, make if before is None else lambda: before)
        if before not in (None, found) and isinstance(self._before, FileSecrets):
            await self._before.set_apart(name)  # else it would be in use again, were the log moved back
        return found

    async def find(self, name: str) -> bytes | None:
        found = await self._kept.find(name)
        return await self._before.find(name) if found is None else found


async def usage_secret(shared: SharedSecrets, *, reads_only: bool = False) -> bytes:
    """Return the secret of digests and reader tokens; where nothing can be written and there is none, or none that
    can be read, one for now.
    """
    if reads_only:
        try:
            return await shared.find(USAGE) or new_secret()
        except StoreUnavailable:
            return new_secret()
    return await shared.obtain(USAGE, new_secret)


def shared_secrets(data: Path, kept: Secrets, *, is_local: bool) -> SharedSecrets:
    """Return the secrets of an installation whose log is in the data folder (``is_local``) or in PostgreSQL."""
    files, vault = FileSecrets(data), VaultSecrets(kept)
    return MovedSecrets(files, vault) if is_local else MovedSecrets(vault, files)


def _numbers_of(name: str, names: Collection[str]) -> list[int]:
    """Return the numbers under which a secret is kept, the lowest first."""
    parts = (one.rpartition("-") for one in names)
    return sorted(int(number) for before, _, number in parts if before == PREFIX + name and number.isdecimal())
