"""Secrets of the installation: in files, in the vault, and when the log moves from the one to the other."""

import stat
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from eventstore import StoreReadOnly
from service.commands.guarded_projects import forget_unused_tokens
from service.integrity.shared_secrets import FileSecrets, VaultSecrets, shared_secrets, usage_secret
from tests.contracts.shared_secrets import SharedSecretsContract
from tests.eventstore.backends import BACKENDS, opened_tables


def never():
    raise AssertionError("there is a secret")


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


class TestFiles(SharedSecretsContract):
    @pytest.fixture
    def opened(self, tmp_path):
        async def opened():
            return FileSecrets(tmp_path)

        return opened


class TestVault(SharedSecretsContract):
    @pytest.fixture(params=BACKENDS)
    def opened(self, request, tmp_path, stack):
        async def opened():
            store = await BACKENDS[request.param].open(tmp_path)
            stack.push_async_callback(store.close)
            return VaultSecrets(store)

        return opened


@pytest.mark.parametrize("is_local", [True, False])
class TestInstallation(SharedSecretsContract):
    @pytest.fixture
    def opened(self, is_local, tmp_path, stack):
        async def opened():
            store = await BACKENDS["sqlite" if is_local else "postgres"].open(tmp_path)
            stack.push_async_callback(store.close)
            return shared_secrets(tmp_path, store, is_local=is_local)

        return opened


async def test_file_of_a_secret_is_its_owners_alone(tmp_path):
    made = await FileSecrets(tmp_path).obtain("usage", lambda: b"secret")
    (file,) = tmp_path.iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode), file.read_bytes()) == ("usage.key", 0o600, made)


async def test_what_a_killed_process_left_is_deleted(tmp_path):
    (tmp_path / ".usage.key.0123456789abcdef").touch()
    await FileSecrets(tmp_path).obtain("usage", lambda: b"secret")
    assert [file.name for file in tmp_path.iterdir()] == ["usage.key"]


async def test_secret_survives_moves_to_tables_and_back(tmp_path, stack):
    tables = await opened_tables(tmp_path)
    stack.push_async_callback(tables.close)
    made = await FileSecrets(tmp_path).obtain("usage", lambda: b"secret")
    assert await shared_secrets(tmp_path, tables, is_local=False).obtain("usage", never) == made
    (tmp_path / "usage.key").unlink()
    assert await shared_secrets(tmp_path, tables, is_local=False).obtain("usage", never) == made
    assert await shared_secrets(tmp_path, tables, is_local=True).obtain("usage", never) == made
    assert (tmp_path / "usage.key").read_bytes() == made


async def test_file_that_differs_from_the_shared_secret_is_set_apart(tmp_path, stack):
    tables = await opened_tables(tmp_path)
    stack.push_async_callback(tables.close)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        await FileSecrets(folder).obtain("checkpoint", folder.name.encode)
        assert await shared_secrets(folder, tables, is_local=False).obtain("checkpoint", never) == b"first"
    assert (first / "checkpoint.key").read_bytes() == b"first"
    assert (second / "checkpoint.key.replaced").read_bytes() == b"second"
    assert await shared_secrets(second, tables, is_local=True).obtain("checkpoint", never) == b"first"


async def test_shared_secrets_are_no_unused_tokens(tmp_path, stack):
    store = await BACKENDS["sqlite"].open(tmp_path)
    stack.push_async_callback(store.close)
    await VaultSecrets(store).obtain("cluster", lambda: b"secret")
    await store.keep_secret("a token", "text")
    await forget_unused_tokens(store, [], datetime.now(UTC) + timedelta(days=365))
    assert await VaultSecrets(store).find("cluster") == b"secret"
    assert await store.find_secret("a token") is None


async def test_forgotten_secret_gets_a_successor(tmp_path, stack):
    store = await BACKENDS["sqlite"].open(tmp_path)
    stack.push_async_callback(store.close)
    shared = VaultSecrets(store)
    await shared.obtain("cluster", lambda: b"one")
    await store.forget_secret("shared-cluster-1")
    assert await shared.find("cluster") is None
    assert await shared.obtain("cluster", lambda: b"two") == b"two"


async def test_vault_that_is_only_read_gives_what_it_has(tmp_path, stack):
    store = await opened_tables(tmp_path)
    stack.push_async_callback(store.close)
    read = await opened_tables(tmp_path, read_only=True)
    stack.push_async_callback(read.close)
    with pytest.raises(StoreReadOnly):
        await VaultSecrets(read).obtain("usage", lambda: b"secret")
    assert len(await usage_secret(VaultSecrets(read), reads_only=True)) == 32
    made = await usage_secret(VaultSecrets(store))
    assert await usage_secret(VaultSecrets(read), reads_only=True) == made
