"""Keep the prompts of this version in the log, for what names them by their hash."""

from collections.abc import Callable
from datetime import datetime

from eventstore import EventStore, execute
from service.domain.prompts import KeepPrompts, PromptSet
from service.streams import PROMPTS


async def keep_prompts(store: EventStore, prompts: PromptSet, now: Callable[[], datetime]) -> str:
    """Keep the prompts, where the log does not have them yet, and return their hash. Raises StoreUnavailable."""
    await execute(store, PROMPTS, prompts.hash, KeepPrompts(prompts, now()))
    return prompts.hash
