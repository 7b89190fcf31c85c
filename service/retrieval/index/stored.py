"""The form in which an index keeps pages, for its writer and its readers."""

import zlib
from collections.abc import Sequence

from service.retrieval.search.words import PAGE_SHIFT

FORMAT = "11"
PAGES_FILE = "pages.db"
CHANGELOG, RELEASE_POST = 1, 2
"""Kinds of pages about what changed, as ``is_history`` has them; 0 for all others."""
MISSING_ENTRIES = "missing_entries"
"""Key among the index's facts about itself: a list as JSON."""


def section_ids(page: int) -> tuple[int, int]:
    """The first and last ids that sections of a page may have."""
    return page << PAGE_SHIFT, (page + 1 << PAGE_SHIFT) - 1


def pack_page(text: str, sections: Sequence[str]) -> bytes:
    """A page is mostly its sections over again, so they are the dictionary that it is compressed with."""
    packer = zlib.compressobj(6, zdict=_dictionary(sections))
    return packer.compress(text.encode()) + packer.flush()


def unpack_page(packed: bytes, sections: Sequence[str]) -> str:
    return zlib.decompressobj(zdict=_dictionary(sections)).decompress(packed).decode()


def _dictionary(sections: Sequence[str]) -> bytes:
    """Return the bytes that zlib can refer back to."""
    return "\n\n".join(sections).encode()[-(32 << 10) :]
