"""Change the running service when it reads its settings again."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from service.ports.model import Model, Models
from service.ports.model_provider import KnownModel
from service.runtime.settings.settings import Settings

AT_ONCE = (
    "agent.model", "assistant.max_cost_usd_day", "assistant.model", "assistant.planner",
    "assistant.withhold_unsupported_code", "limits.", "log.level",
    "models.", "server.drain_seconds", "server.max_connections_per_address", "server.proxy_header",
    "server.trusted_proxies",
)  # fmt: skip
"""Beginnings of the names that take effect by reading the settings again. All others take a restart."""


class Changes(Struct, frozen=True):
    """The names of the settings that are not as they were."""

    at_once: tuple[str, ...]
    after_restart: tuple[str, ...]


def changes(before: Settings, after: Settings) -> Changes:
    one, other = dict(_named(before)), dict(_named(after))
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return Changes(
        tuple(name for name in names if name.startswith(AT_ONCE)),
        tuple(name for name in names if not name.startswith(AT_ONCE)),
    )


def _named(settings: Settings) -> Iterator[tuple[str, object]]:
    for section in settings.__struct_fields__:
        value = getattr(settings, section)
        if isinstance(value, dict):
            yield from ((f"{section}.{key}", entry) for key, entry in value.items())
        else:
            yield from ((f"{section}.{name}", getattr(value, name)) for name in value.__struct_fields__)


class ClosableModels(Models, Protocol):
    def known(self) -> Sequence[KnownModel]: ...
    async def prepare(self) -> None: ...
    async def close(self) -> None: ...
    def describe(self) -> str: ...


class CurrentModels:
    """The models of the settings as they are now.

    What is under way goes on with the models that it began with, so that those are closed only ``linger_seconds``
    after others have taken their place.
    """

    def __init__(self, models: ClosableModels, linger_seconds: float) -> None:
        self._models, self._linger_seconds = models, linger_seconds
        self._measured: Callable[[Model], Model] = lambda model: model
        self._before: dict[ClosableModels, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def begin(self, models: ClosableModels) -> None:
        """Take the models that are known once the log is open, before any is used."""
        self._models = models

    def measure(self, measured: Callable[[Model], Model]) -> None:
        """Give out models as the function makes them of the settings'."""
        self._measured = measured

    def for_agent(self, alias: str) -> Model:
        return self._measured(self._models.for_agent(alias))

    def for_assistant(self) -> Model:
        return self._measured(self._models.for_assistant())

    def for_planning(self) -> Model | None:
        planner = self._models.for_planning()
        return None if planner is None else self._measured(planner)

    def builtin_for_assistant(self) -> Model:
        return self._measured(self._models.builtin_for_assistant())

    async def refused(self) -> Mapping[str, Sequence[str]]:
        return await self._models.refused()

    def known(self) -> Sequence[KnownModel]:
        return self._models.known()

    def describe(self) -> str:
        return self._models.describe()

    async def prepare(self) -> None:
        await self._models.prepare()

    def replace(self, models: ClosableModels) -> None:
        before, self._models = self._models, models
        loop = asyncio.get_running_loop()
        self._before[before] = loop.call_later(self._linger_seconds, self._let_go, before)

    def _let_go(self, models: ClosableModels) -> None:
        self._before.pop(models).cancel()
        task = asyncio.get_running_loop().create_task(models.close(), name="close models")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for models in tuple(self._before):
            self._let_go(models)
        await asyncio.gather(*self._closing, self._models.close())
