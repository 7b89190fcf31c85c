"""The prompts of a version of the service, kept in the log once: the events of a model's calls name them by their hash.

What a job's model was sent is rebuilt from them (``domain/jobs/requests.py``), whatever the prompts are by then.
"""

import hashlib
from datetime import datetime

import msgspec
from msgspec import Struct

from service.domain.events import Event


class KeptTool(Struct, frozen=True):
    """A tool as a model is offered it."""

    name: str
    description: str
    parameters: str
    """A JSON Schema of type object, as JSON."""


class PromptSet(Struct, frozen=True):
    """The prompts of one part of the service, and its tools."""

    used_by: str
    """``agent`` or ``assistant``."""
    texts: dict[str, str]
    """By name; with the places of their values, and without the reasons."""
    tools: tuple[KeptTool, ...]

    @property
    def hash(self) -> str:
        """Return 32 hexadecimal digits: the same for the same texts and tools, whatever the version of the service."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:32]


class PromptsKept(Event, frozen=True, tag="prompts-kept"):
    prompts: PromptSet
    kept_at: datetime


PromptEvent = PromptsKept


class KeepPrompts(Struct, frozen=True):
    prompts: PromptSet
    now: datetime


class NotKept(Struct, frozen=True):
    """No instance has used them yet."""


class Kept(Struct, frozen=True):
    prompts: PromptSet


PromptState = NotKept | Kept


def decide(command: KeepPrompts, state: PromptState) -> list[PromptEvent]:
    return [PromptsKept(command.prompts, kept_at=command.now)] if isinstance(state, NotKept) else []


def evolve(_state: PromptState, event: PromptEvent) -> PromptState:
    return Kept(event.prompts)
