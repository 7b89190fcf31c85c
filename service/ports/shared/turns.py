"""Turns in which the instances of the service change what they all want to change."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

MAX_TURN_SECONDS = 2.0
"""For a turn, and for the wait for one."""


class Turns(Protocol):
    """Gives each instance its turn, in the order in which they ask, so that none is always slower than another.

    A turn only keeps the order; it is no lock. One that takes too long ends. A caller that gets no turn in time, as
    while the database is away, goes on without one: the expected version of each change protects what is changed.
    """

    def turn(self) -> AbstractAsyncContextManager[datetime | None]:
        """Wait for a turn, and hold it for the block. Raises nothing.

        It gives the time of a clock that all instances share, as of now; None where that is not asked for each time, or
        not known.
        """
