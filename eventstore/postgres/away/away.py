"""Whether a database answers.

While it does not, each read would wait for ``PATIENCE_SECONDS``. So after the first one that did, the others fail at
once, except for one each ``RETRY_SECONDS`` that tries whether the database answers again.
"""

import threading
import time
from collections.abc import Callable

from eventstore.errors import StoreUnavailable

RETRY_SECONDS = 0.25
PATIENCE_SECONDS = 3.0
"""A read that takes longer is given up where there is a copy to read instead: most take a millisecond or two."""


class Away:
    """Notes failures and answers of one database. Its methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._why: str | None = None
        self._next_look = 0.0

    @property
    def why(self) -> str | None:
        """Return why the database does not answer, as far as is known; None when it did the last time."""
        return self._why

    def require_turn(self) -> None:
        """Raise StoreUnavailable while the database is away and another look is not due."""
        if self._why is None:
            return
        with self._lock:
            if self._why is not None:
                if (now := self._clock()) < self._next_look:
                    raise StoreUnavailable(self._why)
                self._next_look = now + PATIENCE_SECONDS  # the others do not wait for this look

    def failed(self, why: str) -> None:
        """Note that it did not answer."""
        with self._lock:
            self._why, self._next_look = why, self._clock() + RETRY_SECONDS

    def answered(self) -> None:
        if self._why is not None:
            with self._lock:
                self._why = None
