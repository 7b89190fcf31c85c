"""The composition root of the commands: opens a data folder, with every part that a command may need."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from eventstore import SQLiteEventStore, Views
from service.adapters.api_client import ApiClient
from service.adapters.builtin_answer import BuiltinAnswer
from service.adapters.builtin_editor import BuiltinEditor
from service.adapters.dulwich_docs import DulwichDocs
from service.adapters.models import ConfiguredModels, ModelSettings
from service.adapters.remote_code_host import remote_code_hosts
from service.adapters.tokens import Tokens
from service.adapters.website import WebsiteDocs
from service.cli.main import run
from service.cli.runtime import Program, Runtime
from service.ports.docs_source import DocsSource
from service.projections import all_projections
from service.retrieval.query import SiteIndexes
from service.settings import BadSettings, ModelSection, Settings


def make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@asynccontextmanager
async def open_runtime(data: Path, settings: Settings, models: ConfiguredModels) -> AsyncIterator[Runtime]:
    """An open data folder, made when it is not there."""
    make_private(data)
    async with AsyncExitStack() as stack:
        store = await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db")
        stack.push_async_callback(store.close)
        views = await Views.open(data / "views.db", store, all_projections())
        stack.push_async_callback(views.close)
        index = SiteIndexes(data / "index")
        stack.push_async_callback(index.close)
        stack.push_async_callback(models.close)
        client = ApiClient(os.environ)
        stack.push_async_callback(client.close)
        tokens = Tokens(os.environ, client)
        docs = WebsiteDocs(_docs(data, tokens, None), data, allow_private=settings.network.allow_private)
        scratch_docs = partial(_docs, data, tokens)
        hosts = remote_code_hosts(client, tokens)
        yield Runtime(data, settings, store, views, docs, scratch_docs, hosts, models, index)


def _docs(data: Path, tokens: Tokens, scratch: Path | None) -> DocsSource:
    return DulwichDocs(data, env=os.environ, scratch=scratch, token_of=tokens.token)


@asynccontextmanager
async def open_for_command(data: Path, settings: Settings) -> AsyncIterator[Runtime]:
    async with open_runtime(data, settings, configured_models(settings)) as runtime:
        await runtime.views.catch_up()
        yield runtime


def configured_models(settings: Settings) -> ConfiguredModels:
    return ConfiguredModels(
        [_model_settings(alias, section) for alias, section in settings.models.items()],
        agent=settings.agent.model,
        assistant=settings.assistant.model,
        builtin_agent=BuiltinEditor(),
        builtin_assistant=BuiltinAnswer(),
        env=os.environ,
    )


def _model_settings(alias: str, section: ModelSection) -> ModelSettings:
    try:
        return ModelSettings(
            alias=alias,
            model=section.model,
            api_base=section.api_base,
            api_key_env=section.api_key_env,
            input_usd_per_million_tokens=section.input_usd_per_million_tokens,
            output_usd_per_million_tokens=section.output_usd_per_million_tokens,
            max_output_tokens=section.max_output_tokens,
            context_tokens=section.context_tokens,
            fallback=section.fallback,
            first_token_timeout_seconds=section.first_token_timeout_seconds,
            idle_timeout_seconds=section.idle_timeout_seconds,
        )
    except ValueError as error:
        raise BadSettings(f"[models.{alias}]: {error}") from None


async def _serve(data: Path, settings: Settings) -> None:
    from service.server import serve  # late: no other command needs what serves

    await serve(data, settings)


def _description() -> dict[str, Any]:
    from service.web.description import description

    return description()


def main(arguments: Sequence[str]) -> int:
    """The ``docsmith`` command."""
    return run(arguments, Program(open=open_for_command, serve=_serve, openapi=_description))
