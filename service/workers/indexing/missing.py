"""The indexes that an instance lacks when it starts, until others were asked for each."""

from collections.abc import Awaitable, Callable, Iterable

AWAIT_SECONDS = 60.0
"""For instances that start at the same time: they may have an index that is missing here."""


class MissingIndexes:
    def __init__(self) -> None:
        self._missing: set[str] | None = None
        """The sites that no instance has been asked about; None before that was looked at."""
        self._awaited: set[str] = set()
        """The sites whose index an instance may have that is still starting."""
        self._may_await = True

    def find(self, domains: Iterable[str]) -> None:
        self._missing = set(domains)

    def note_tried(self, domain: str, *, may_come: bool) -> None:
        """Note that the others were asked. ``may_come``: the index is not here, and one that starts may have it."""
        if self._missing is None or domain not in self._missing | self._awaited:
            return
        self._missing.discard(domain)
        self._awaited.discard(domain)
        if may_come and self._may_await:
            self._awaited.add(domain)

    async def await_no_more(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Count those as tried that no instance had, after a while: one that starts for longer holds no other up."""
        await sleep(AWAIT_SECONDS)
        self._may_await = False
        self._awaited.clear()

    def explain(self) -> str | None:
        """Return why the instance should not be asked yet; None where it may be."""
        if self._missing is not None and not self._missing | self._awaited:
            return None
        return f"{len((self._missing or set()) | self._awaited)} indexes are to be fetched from other instances"
