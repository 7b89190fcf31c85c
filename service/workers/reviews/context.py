"""The parts that the workers on comments have in common."""

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from eventstore import EventStore, Views
from service.domain.projects.settings import CodeHostKind
from service.ports.review_host import ReviewHost
from service.runtime.system import now
from service.workers.fair_slots import FairSlots


class ReviewContext(Struct, frozen=True):
    store: EventStore
    views: Views
    hosts: Mapping[CodeHostKind, ReviewHost]
    slots: FairSlots
    clock: Callable[[], datetime] = now
    """For tests."""
    leads: Callable[[], bool] = lambda: True
    """Returns whether no other instance answers comments."""
