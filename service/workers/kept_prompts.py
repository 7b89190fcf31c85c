"""The prompts of this version, kept in the log before an event names them."""

import asyncio
from importlib import import_module

from eventstore import EventStore
from service.commands.prompts import keep_prompts
from service.domain.prompts import PromptSet
from service.runtime.system import now
from service.workers.retry import retry_while_unavailable


class KeptPrompts:
    """``module``: has a function ``prompts`` that returns them, and is imported with the first call of a model."""

    def __init__(self, store: EventStore, module: str) -> None:
        self._store, self._module, self._hash = store, module, ""

    async def hash(self) -> str:
        """Return the hash of the prompts; the log has them then. While it is unavailable, it is waited for."""
        if not self._hash:
            prompts = await asyncio.to_thread(self._made)
            self._hash = await retry_while_unavailable(lambda: keep_prompts(self._store, prompts, now))
        return self._hash

    def _made(self) -> PromptSet:
        made: PromptSet = import_module(self._module).prompts()
        return made
