"""Use the models that operators add, in every instance, and try them, in one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import structlog

from eventstore import EventStore, Metadata, load
from service.commands.models import record_trial, try_model
from service.domain.errors import ServiceError
from service.domain.model_profiles import ModelProfile
from service.ports.model import Model
from service.ports.model_probe import Probe, not_answering
from service.queries.models import INSTALLATION
from service.streams import MODELS
from service.workers.retry import retry_while_unavailable

log = structlog.get_logger()


class AddedModelsFollower:
    """Calls ``take`` whenever a model was added, tried, chosen or removed, in whichever process."""

    def __init__(self, store: EventStore, take: Callable[[], Awaitable[None]]) -> None:
        self._store, self._take = store, take

    async def run(self) -> None:
        """Follow the log until cancelled."""
        after = await self._store.head()
        await self._take()  # what was recorded between the opening of the log and now
        async for _ in self._store.follow(after=after, category=MODELS.category):
            await self._take()


class ModelTrials:
    """Tries each model that waits for it, and records the findings. What a killed process left is tried again."""

    def __init__(
        self, store: EventStore, open_model: Callable[[ModelProfile], AbstractAsyncContextManager[Model]]
    ) -> None:
        self._store, self._open_model = store, open_model
        self._under_way: dict[str, ModelProfile] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as running:
            after = await self._store.head()
            await self._begin(running)
            async for _ in self._store.follow(after=after, category=MODELS.category):
                await self._begin(running)

    async def _begin(self, running: asyncio.TaskGroup) -> None:
        state = (await retry_while_unavailable(lambda: load(self._store, MODELS, INSTALLATION))).state
        for one in state.models:
            profile = one.profile
            if one.tried_at is None and self._under_way.get(profile.name) != profile:
                self._under_way[profile.name] = profile
                running.create_task(self._try(profile), name=f"trial of {profile.name}")

    async def _try(self, profile: ModelProfile) -> None:
        metadata = Metadata(actor="service")
        try:
            async with self._open_model(profile) as model:
                probe = await try_model(self._store, profile, model, metadata)
        except ServiceError as error:
            probe = Probe(profile.model, not_answering(str(error)))
            await record_trial(self._store, profile, probe, metadata)
        finally:
            if self._under_way.get(profile.name) == profile:
                del self._under_way[profile.name]
        log.info("model tried", model=profile.name, answers=probe.answers, can_edit=probe.can_edit)
