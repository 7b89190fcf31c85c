"""Files that never reached the index: too large, symbolic links, submodules, names that cannot be used.

An index keeps them, because a renewal learns only of what changed.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct, json

from service.domain.sites import Skipped
from service.ports.docs_source import LeftOut
from service.retrieval.site.detection import is_configuration
from service.retrieval.site.layout import UNSEEN_FOLDERS, Layout, within

KEY = "left_out"
"""Key among the index's facts about itself."""
MAX_KEPT = 10_000
MORE = "…"
"""Stands for the path of those beyond."""


class LeftOutFiles(Struct):
    """At most ``MAX_KEPT`` by path, and the number of those beyond."""

    found: dict[str, LeftOut] = {}
    more: int = 0

    def change(self, gone: Iterable[str], left: Iterable[LeftOut]) -> None:
        for path in gone:
            self.found.pop(path, None)
        for one in left:
            if one.path in self.found or len(self.found) < MAX_KEPT:
                self.found[one.path] = one
            else:
                self.more += 1

    def skipped(self, layout: Layout) -> Iterator[Skipped]:
        """Yield those that a reader of the site could miss: pages, folders that may hold some, configuration."""
        for path, one in self.found.items():
            if is_configuration(path) or layout.is_page(path) or (one.may_hold_pages and _may_hold(path, layout)):
                yield Skipped(path, one.reason)
        if self.more:
            yield Skipped(MORE, f"{self.more:,} more files and folders were left out.")

    def encoded(self) -> str:
        return json.encode(self).decode()


def decode_left_out(text: str) -> LeftOutFiles:
    """Raises ValueError for what ``encoded`` did not write."""
    return json.decode(text, type=LeftOutFiles)


def _may_hold(folder: str, layout: Layout) -> bool:
    parts = folder.split("/")
    return within(folder, layout.docs_folder) and not any(
        part.startswith(".") or part in UNSEEN_FOLDERS for part in parts
    )
