"""Files that are not in the index: those that never reached it (too large, symbolic links, submodules, names that
cannot be used), and those that look like pages and are none of the site's.

An index keeps the first, because a renewal learns only of what changed.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct, json

from service.domain.sites import Skipped
from service.ports.docs_source import LeftOut
from service.retrieval.site.detection import is_configuration
from service.retrieval.site.layout import Layout, within

KEY = "left_out"
"""Key among the index's facts about itself."""
MAX_KEPT = 10_000
MORE = "…"
"""Stands for the path of those beyond."""
MAX_EXCLUDED = 500
"""Lines for files that look like pages; a folder of nothing else is one line."""
MORE_EXCLUDED = "…/"
OWN_FOLDER = ".docsmith/"


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
    return within(folder, layout.docs_folder) and not layout.unseen_folder(f"{folder}/")


def excluded(layout: Layout, names: Collection[str]) -> Iterator[Skipped]:
    """Yield the files of a commit that look like pages and are none, with the reason of each.

    A folder without a page, all of it left out for one reason, is one line that ends in a slash.
    """
    every = {path: layout.why_excluded(path) for path in names if not path.startswith(OWN_FOLDER)}
    reasons = {path: reason for path, reason in every.items() if reason}
    if not reasons:
        return
    by_folder: dict[str, str] = {}
    """The reason that all files below a folder share; empty where they do not, or one is a page."""
    for path, reason in every.items():
        if reason is None:
            continue
        for folder in reversed(tuple(_folders(path))):
            if by_folder.setdefault(folder, reason) != reason:
                by_folder[folder] = ""
    files: dict[str, list[str]] = {}
    for path in sorted(reasons):
        folder = layout.unseen_folder(path) or next((one for one in _folders(path) if by_folder[one]), "")
        is_inside = within(folder, layout.docs_folder) and folder != layout.docs_folder
        files.setdefault(f"{folder}/" if folder and is_inside else path, []).append(path)
    lines = {(line if len(paths) > 1 else paths[0]): reasons[paths[0]] for line, paths in files.items()}
    for number, (path, reason) in enumerate(lines.items()):
        if number == MAX_EXCLUDED:
            yield Skipped(MORE_EXCLUDED, f"{len(lines) - number:,} more files and folders are not pages of the site.")
            return
        yield Skipped(path, reason)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders above a file, the outermost first."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
