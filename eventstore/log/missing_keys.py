"""Finds sealed texts that can never be opened: their keys are neither in the vault nor erased, or do not open them.

A vault that is older than its log lacks the keys of the newest subjects. What they sealed reads as if it were erased,
so the difference has to be reported. A text that its key does not open is damaged, or the key is.

Both may be asked of a log in use: it is read by pages, and the vault after each page, for a key is older than the
events that need it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from eventstore.errors import StoreCorrupt
from eventstore.vault import Vault

PAGE = 2_000
LIMIT = 1_000

SealedRow = tuple[int, str, int, str, bytes]
"""Position, stream, stream_version, id and the sealed text of an event that has one."""
_KEY_ID = slice(1, 9)


def subjects_without_keys(
    pages: Iterable[Sequence[SealedRow]], key_ids: Callable[[Collection[str]], Mapping[str, bytes | None]]
) -> list[str]:
    """Return the subjects with texts that are sealed under a lost key, in order; at most 1,000.

    ``key_ids`` returns the ids of the keys of those subjects that have one, and None for those that are erased.
    """
    found: dict[str, None] = {}
    for rows in pages:
        wanted = dict.fromkeys((stream, bytes(sealed[_KEY_ID])) for _, stream, _, _, sealed in rows)
        known = key_ids({stream for stream, _ in wanted})
        for stream, key_id in wanted:
            if stream not in found and known.get(stream, b"") not in {None, key_id}:
                found[stream] = None
                if len(found) == LIMIT:
                    return list(found)
    return list(found)


def damaged_texts(pages: Iterable[Sequence[SealedRow]], vault: Vault) -> list[int]:
    """Return the positions of texts that their keys do not open, in order; at most 1,000."""
    found: list[int] = []
    for rows in pages:
        vault.refresh()
        for position, stream, version, event_id, sealed in rows:
            key = vault.find(stream)
            try:
                if key is not None:
                    key.open(sealed, stream.encode(), version, event_id.encode())
            except StoreCorrupt:
                found.append(position)
                if len(found) == LIMIT:
                    return found
    return found
