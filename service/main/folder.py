"""Opens a data folder, with every part that a command or the server may need."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.runtime import Runtime, is_served
from service.integrity.log_place import log_place, note_elsewhere
from service.main.process.children import preload_children
from service.runtime.data_folder import LOG_COPY, create_private

if TYPE_CHECKING:  # imported where a command needs them: together they take longer than most commands run
    from eventstore import EventStore, LogPlace, Secrets, Views
    from eventstore.core import CoreEventStore
    from service.adapters.code_hosts.api_client import ApiClient
    from service.adapters.code_hosts.tokens import Tokens
    from service.adapters.models.configured import ConfiguredModels, ModelSettings
    from service.domain.model_profiles import ModelProfile
    from service.domain.projects.settings import CodeHostKind
    from service.main.process.reloading import ClosableModels
    from service.ports.code_host import HostedPullRequests
    from service.ports.docs_source import DocsSource
    from service.ports.model import Model
    from service.ports.model_provider import KnownModel, ModelProvider
    from service.ports.review_host import ReviewHost
    from service.ports.shared.instances import Instances
    from service.ports.shared.shared_secrets import SharedSecrets
    from service.queries.models import AddedModels
    from service.retrieval.search.meaning import Meaning
    from service.retrieval.search.query import SiteIndexes
    from service.runtime.hosted_place import HostedPlace
    from service.runtime.settings.settings import ModelSection, Settings

CHECKED_BYTES = 32 << 20
"""Limit for read tables that are checked at each start, in bytes; that takes a tenth of a second."""


class OpenFolder:
    """A Runtime whose parts are built when they are asked for first."""

    def __init__(
        self,
        data: Path,
        settings: "Settings",
        store: "CoreEventStore",
        views: "Views",
        closing: AsyncExitStack,
        models: "ClosableModels | None" = None,
        added: "AddedModels | None" = None,
    ) -> None:
        """``added``: the models that were added as the folder was opened."""
        self.data, self.settings, self.store, self.views = data, settings, store, views
        self.added = added
        self.secrets: Secrets = store
        self._closing, self._models = closing, models

    @cached_property
    def models(self) -> "ClosableModels":
        models = self._models or configured_models(self.settings, added=self.added, store=self.store)
        self._closing.push_async_callback(models.close)
        return models

    def known_models(self) -> "Sequence[KnownModel]":
        return self.models.known()

    def open_model(self, profile: "ModelProfile", key: str = "") -> "AbstractAsyncContextManager[Model]":
        from service.main.added_models import open_model

        return open_model(self.secrets, profile, key)

    @property
    def model_providers(self) -> "Sequence[ModelProvider]":
        from service.adapters.models.providers import PROVIDERS

        return PROVIDERS

    @cached_property
    def shared_secrets(self) -> "SharedSecrets":
        from service.integrity.shared_secrets import shared_secrets

        return shared_secrets(self.data, self.secrets, is_local=log_place(self.data).is_local)

    @cached_property
    def index(self) -> "SiteIndexes":
        from service.retrieval.search.query import SiteIndexes

        index = SiteIndexes(self.data / "index", meaning=self.meaning)
        self._closing.push_async_callback(index.close)
        return index

    @cached_property
    def meaning(self) -> "Meaning | None":
        search = self.settings.search
        if not search.embedding_model:
            return None
        from service.adapters.models.configured import ModelSettings
        from service.adapters.models.embeddings import LitellmEmbeddings
        from service.retrieval.search.meaning import Meaning

        section = self.settings.models.get(search.embedding_model)
        model = ModelSettings(
            alias=search.embedding_model,
            model=section.model if section is not None else search.embedding_model,
            api_base=section.api_base if section is not None else "",
            api_key_env=section.api_key_env if section is not None else "",
        )
        wait = search.embedding_wait_ms / 1000
        embeddings = LitellmEmbeddings(model, os.environ)
        self._closing.push_async_callback(embeddings.close)
        return Meaning(self.data / "index", embeddings, wait_seconds=wait)

    @cached_property
    def docs(self) -> "DocsSource":
        from service.adapters.website.site import WebsiteDocs

        allow_private = self.settings.network.allow_private
        return WebsiteDocs(self._docs(None), self.data, allow_private=allow_private)

    @asynccontextmanager
    async def join(self) -> "AsyncIterator[Instances]":
        from service.main.process.joining import join

        async with join(self.data, self.settings, serves=False) as joined:
            yield joined.instances

    async def is_served(self) -> bool:
        if is_served(self.data):
            return True
        if log_place(self.data).is_local:
            return False
        async with self.join() as instances:  # another data folder's
            return any(one.url for one in instances.others())

    def scratch_docs(self, scratch: Path) -> "DocsSource":
        return self._docs(scratch)

    def _docs(self, scratch: Path | None) -> "DocsSource":
        from service.adapters.git.dulwich_docs import DulwichDocs
        from service.adapters.git.opened_folder import Folders
        from service.commands.allowed_folders import known_folders
        from service.commands.projects import follow_default_branch

        network = self.settings.network

        async def folders() -> Folders:
            known = await known_folders(self.store)
            return Folders((*network.folders, *known.folders), known.taken_back)

        return DulwichDocs(
            self.data, env=os.environ, scratch=scratch, token_of=self._tokens.token,
            allow_private=network.allow_private, place=self.hosted_place,
            renamed=partial(follow_default_branch, self.store), folders=folders,
        )  # fmt: skip

    @cached_property
    def code_hosts(self) -> "Mapping[CodeHostKind, ReviewHost]":
        from service.adapters.code_hosts.remote import remote_code_hosts

        return remote_code_hosts(self._client, self._tokens)

    @cached_property
    def hosted(self) -> "HostedPullRequests":
        from service.adapters.hosted.code_host import HostedCodeHost

        base_url = self.settings.server.public_url.rstrip("/")
        return HostedCodeHost(self.data, base_url=lambda: base_url, place=self.hosted_place)

    @cached_property
    def hosted_place(self) -> "HostedPlace":
        from service.runtime.hosted_place import HostedPlace

        return HostedPlace(self.data, self.settings.instances.hosted_folder)

    @cached_property
    def _tokens(self) -> "Tokens":
        from service.adapters.code_hosts.tokens import Tokens

        return Tokens(os.environ, self._client, kept=self.secrets.find_secret)

    @cached_property
    def _client(self) -> "ApiClient":
        from service.adapters.code_hosts.api_client import ApiClient

        client = ApiClient(os.environ, allow_private=self.settings.network.allow_private)
        self._closing.push_async_callback(client.close)
        return client


@asynccontextmanager
async def open_runtime(
    data: Path, settings: "Settings", models: "ClosableModels | None" = None, *, alone: bool = False
) -> AsyncIterator[Runtime]:
    """An open data folder, made when it is not there. ``alone``: no other process serves it, so that a damaged
    ``views.db`` can be rebuilt.

    Raises Forbidden ``data_read_only`` and ``data_of_another_user``, Conflict ``log_missing``, ``vault_missing``,
    ``log_lost`` and ``not_a_data_folder``, and EventStoreError.
    """
    preload_children()
    create_private(data)
    _require_writable(data)
    require_owner(data, os.geteuid())
    place = log_place(data)
    if place.is_local:
        _require_log(data)
        _require_vault(data)
    else:
        await _require_tables(data, place)
    await _require_continuous(data, place, alone=alone)
    from service.queries.models import read_added

    async with AsyncExitStack() as stack:
        store = await _open_log(data, place, keeps_copy=alone)
        stack.push_async_callback(store.close)
        note_elsewhere(data, place)
        await _repeat_erasures(store)
        await _name_key(store, data, is_local=place.is_local)
        views = await _open_views(data / "views.db", store, alone=alone)
        stack.push_async_callback(views.close)
        yield OpenFolder(data, settings, store, views, stack, models, await read_added(store, store))


@asynccontextmanager
async def open_to_read(data: Path, settings: "Settings", models: "ClosableModels") -> AsyncIterator[Runtime]:
    """A data folder that cannot be written, or whose log does not answer, as it is.

    Raises Conflict ``log_lost``, and EventStoreError, also where a part of it is missing.
    """
    from eventstore import StoreUnavailable, Views
    from service.queries.models import read_added
    from service.queries.read_models import read_models

    preload_children()
    place, away = log_place(data), None
    try:
        await _require_continuous(data, place)
        if await asyncio.to_thread(place.is_standby):
            away = f"{place.name} is a standby"
    except StoreUnavailable:
        if place.is_local:
            raise
        away = f"{place.name} does not answer"
    async with AsyncExitStack() as stack:
        store = await place.open(read_only=True, local_copy=None if away is None else data / LOG_COPY)
        stack.push_async_callback(store.close)
        views = await Views.open_to_read(data / "views.db", store, read_models(), away=away)
        stack.push_async_callback(views.close)
        yield OpenFolder(data, settings, store, views, stack, models, await read_added(store, store))


def _require_writable(data: Path) -> None:
    """Even who only reads writes: views follow the log, and SQLite keeps files beside its own."""
    for place in (data, *(data / name for name in ("events.db", "keys.db", "views.db"))):
        if place.exists() and not os.access(place, os.W_OK):
            from service.domain.errors import Forbidden

            raise Forbidden(
                f"{place} cannot be written by the user that runs this (uid {os.getuid()}), or its disk is read-only: "
                "run it as the user that owns the data folder, or give that user the right to write.",
                code="data_read_only",
            )


def require_owner(data: Path, user: int) -> None:
    """The superuser can write everywhere, and what it writes here the service of another user cannot.

    Raises Forbidden ``data_of_another_user``.
    """
    log = data / "events.db"
    if user != 0 or not log.exists() or (owner := log.stat().st_uid) == 0:
        return
    import pwd

    from service.domain.errors import Forbidden

    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:  # it is of another system: a container's
        name = f"#{owner}"
    raise Forbidden(
        f"{log} belongs to another user, whose service could not write what root leaves beside it: run this as that "
        f"user (sudo -u '{name}' docsmith …).",
        code="data_of_another_user",
    )


def _require_log(data: Path) -> None:
    """Refuse to start a new log beside what was made from a lost one: it would look as if there had never been
    anything.
    """
    log = data / "events.db"
    if log.exists() and log.stat().st_size > 0:
        return
    for left in ("views.db", "checkpoints.jsonl", "hosted"):  # each of them is made after the log
        if (data / left).exists():
            from service.domain.errors import Conflict

            raise Conflict(
                f"{log}, the log, is {'empty' if log.exists() else 'missing'}, and {data / left} is of one that was "
                "there: put it back, or restore it into a new folder (docsmith restore BACKUP). To start again, name "
                "another folder with --data DIR.",
                code="log_missing",
            )


def _require_vault(data: Path) -> None:
    """A log without its vault would get a new one, and what people typed would look erased."""
    if (data / "events.db").exists() and not (data / "keys.db").exists():
        from service.domain.errors import Conflict

        raise Conflict(
            f"{data / 'keys.db'}, the vault of the log beside it, is missing, and without it what people typed cannot "
            "be read: put it back, or restore it (docsmith restore BACKUP --vault VAULT). To go on without it, "
            "restore a backup without --vault.",
            code="vault_missing",
        )


async def _require_tables(data: Path, place: "LogPlace") -> None:
    """Refuse to start a new log in a database beside what was made from one that was there."""
    if (data / "views.db").exists() and not await asyncio.to_thread(place.exists):
        from service.domain.errors import Conflict

        raise Conflict(
            f"There is no log in {place.name}, and {data / 'views.db'} is of one that was there: correct the address, "
            "or name another folder with --data DIR.",
            code="log_missing",
        )


async def _require_continuous(data: Path, place: "LogPlace", *, alone: bool = False) -> None:
    """Check the log before anything is opened for writing, which would also overwrite a damaged WAL. ``alone``: no
    other process serves the folder, so that it can follow a log whose loss was accepted with another one.
    """
    if not await asyncio.to_thread(place.exists):
        return
    from service.integrity.continuity import LogLost, require_continuous

    try:
        await asyncio.to_thread(require_continuous, data)
    except LogLost:
        from service.integrity.accepted_losses import settle_accepted_loss

        if not alone or not await settle_accepted_loss(data, place):
            raise


async def _open_log(data: Path, place: "LogPlace", *, keeps_copy: bool) -> "CoreEventStore":
    import sqlite3

    from eventstore.sqlite.files import explained

    try:
        return await place.open(local_copy=data / LOG_COPY if keeps_copy else None)
    except sqlite3.Error as error:  # its pages are only read once it is open
        raise explained(error, data / "events.db") from error


async def _name_key(store: "CoreEventStore", data: Path, *, is_local: bool) -> None:
    """Have a log that is begun now name the key of its checkpoints."""
    if await store.head() == 0:
        from service.integrity.identity import name_in_first_event
        from service.integrity.shared_secrets import shared_secrets

        await name_in_first_event(store, shared_secrets(data, store, is_local=is_local), data)


async def _repeat_erasures(store: "EventStore") -> None:
    """Repeat erasures before anything is read: the vault may have been restored from a backup."""
    from service.integrity.erasing import repeat_erasures_if_writable

    await repeat_erasures_if_writable(store)


def _require_sound(file: Path) -> None:
    """Raises StoreCorrupt for a file whose pages do not hold together. In a large one to look would take longer than a
    start may: who meets what is wrong there marks the file.
    """
    import sqlite3

    from eventstore import StoreCorrupt, damage_mark

    if damage_mark(file).exists():
        raise StoreCorrupt(f"{file.name}: damage was met in it", file=file.name)
    if not file.exists() or file.stat().st_size > CHECKED_BYTES:
        return
    with closing(sqlite3.connect(file)) as db:
        try:
            (says,) = db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.OperationalError:
            return  # who opens it for good says what hinders
        except sqlite3.DatabaseError as error:
            says = str(error)
    if says != "ok":
        raise StoreCorrupt(f"{file.name}: {says.splitlines()[-1]}", file=file.name)


async def _open_views(file: Path, store: "EventStore", *, alone: bool) -> "Views":
    import structlog

    from eventstore import StoreCorrupt, Views, damage_mark
    from service.queries.read_models import read_models

    try:
        if alone:
            await asyncio.to_thread(_require_sound, file)
        return await Views.open(file, store, read_models())
    except StoreCorrupt as error:
        if not alone:
            raise
        structlog.get_logger().warning("views are made anew", reason=str(error))
        for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
            file.with_name(name).unlink(missing_ok=True)
        damage_mark(file).unlink(missing_ok=True)
        return await Views.open(file, store, read_models())


@asynccontextmanager
async def open_for_command(data: Path, settings: "Settings") -> AsyncIterator[Runtime]:
    async with open_runtime(data, settings) as runtime:
        await runtime.views.catch_up()
        if not log_place(data).is_local:
            from service.main.homes import find_home_of_command

            await find_home_of_command(runtime)
        yield runtime
        await _note_head(runtime.views)


async def _note_head(views: "Views") -> None:
    """Let the views see what the command appended: from then on its loss would be noticed."""
    from eventstore import EventStoreError

    with suppress(EventStoreError):  # the command has done its work
        await views.catch_up()


def configured_models(
    settings: "Settings",
    env: Mapping[str, str] = os.environ,
    added: "AddedModels | None" = None,
    store: "EventStore | None" = None,
) -> "ConfiguredModels":
    """Return the models of the settings, and those that were added. Raises NotFound ``unknown_model`` and Invalid."""
    from service.adapters.builtin.answer import BuiltinAnswer
    from service.adapters.builtin.editor import BuiltinEditor
    from service.adapters.models.configured import NONE_ADDED, ConfiguredModels
    from service.commands.model_capabilities import LoggedCapabilities
    from service.main.added_models import added_settings, environment_with

    return ConfiguredModels(
        [_model_settings(alias, section) for alias, section in settings.models.items()],
        agent=settings.agent.model,
        assistant=settings.assistant.model,
        planner=settings.assistant.planner,
        builtin_agent=BuiltinEditor(),
        builtin_assistant=BuiltinAnswer(),
        env=env if added is None else environment_with(env, added),
        added=NONE_ADDED if added is None else added_settings(added),
        capabilities=None if store is None else LoggedCapabilities(store),
    )


def _model_settings(alias: str, section: "ModelSection") -> "ModelSettings":
    from msgspec.structs import asdict

    from service.adapters.models.configured import ModelSettings
    from service.runtime.settings.settings_file import BadSettings

    try:
        return ModelSettings(alias=alias, **asdict(section))
    except ValueError as error:
        raise BadSettings(f"[models.{alias}]: {error}") from None
