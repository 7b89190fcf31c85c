"""Capabilities of servers of models, as they were learned from refusals: for a day, so that none is paid twice."""

from datetime import datetime, timedelta
from typing import Literal, get_args

from msgspec import Struct

from service.domain.events import Event

Capability = Literal[
    "tools", "stream_options", "max_tokens", "max_completion_tokens", "system_role", "message_order", "parallel_calls",
    "temperature", "reasoning_effort", "output_schema", "memory", "calls_without_memory", "tool_names",
    "call_ids",
]  # fmt: skip
"""Parts of a request that some servers refuse. ``message_order``: a user's message behind a tool's result. ``memory``:
what a reply carried, sent back. ``calls_without_memory``: calls whose thoughts are not sent back. ``call_ids``: ids of
more than nine letters and digits.
"""
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
REMEMBERED = timedelta(hours=24)


class CapabilityRefused(Event, frozen=True, tag="model-capability-refused"):
    """A server refused a part of a request, and accepted it the other way."""

    capability: str
    model: str
    address: str
    """Without what may be secret in it."""
    refused_at: datetime


ModelCapabilityEvent = CapabilityRefused


class RecordRefusal(Struct, frozen=True):
    capability: Capability
    model: str
    address: str
    now: datetime


class Refusals(Struct, frozen=True):
    """The refusals of one server and model, by capability."""

    refused_at: dict[str, datetime] = {}

    def at(self, now: datetime) -> frozenset[str]:
        """Return the capabilities that are refused at a time: those that were learned within a day before it."""
        return frozenset(name for name, at in self.refused_at.items() if now - at < REMEMBERED)


def decide(command: RecordRefusal, state: Refusals) -> list[CapabilityRefused]:
    if command.capability in state.at(command.now):
        return []
    return [CapabilityRefused(command.capability, command.model, command.address, command.now)]


def evolve(state: Refusals, event: CapabilityRefused) -> Refusals:
    return Refusals({**state.refused_at, event.capability: event.refused_at})
