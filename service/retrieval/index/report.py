"""The outcome of indexing a site."""

from msgspec import Struct

from service.domain.sites import Skipped


class IndexReport(Struct, frozen=True, rename="camel"):
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    seconds: float
    read: int
    """Files that were read as pages; all others are as they were in an earlier index."""
    late: int = 0
    """Pages that were left out because they took longer than they may; they are among the skipped, too."""
    left_out: int = 0
    """Files and folders that could not be read at all: too large, links, names that cannot be used."""
