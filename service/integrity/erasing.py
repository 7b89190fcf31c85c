"""Erases again what the log says was erased, before anything personal is read."""

import structlog

from eventstore import EventStore, StoreUnavailable
from service.streams import ERASURES

PAGE = 1000

log = structlog.get_logger()


async def repeat_erasures(store: EventStore, *, through: int | None = None) -> int:
    """Erase again what the log says was erased: the vault may have been put back from a backup. How many they were.

    Called before anything is read that may be personal: from then on this store shows nothing of it, even when the
    vault cannot be written.

    Raises StoreUnavailable.
    """
    after, subjects = 0, list[str]()
    while page := await store.read_all(after=after, category=ERASURES.category, limit=PAGE):
        after = page[-1].position
        subjects += [
            ERASURES.entity_id(recorded.stream) for recorded in page if through is None or recorded.position <= through
        ]
    if subjects:
        await store.erase_all(subjects)
    return len(subjects)


async def repeat_erasures_if_writable(store: EventStore, *, through: int | None = None) -> None:
    """As ``repeat_erasures``; a vault that cannot be written is a warning, since nothing erased is shown anyway."""
    try:
        await repeat_erasures(store, through=through)
    except StoreUnavailable as error:
        log.warning("what was erased could not be erased again", reason=str(error))
