"""Requests with a key: what the caller may send again is recorded once, together with the claim of its key."""

from collections.abc import Awaitable, Callable

from eventstore import Append, EventStore, Metadata, WrongExpectedVersion, load, plan
from service.domain.access.idempotency import Claimed, ClaimRequest, claim_id
from service.runtime.system import now
from service.streams import REQUESTS


async def claimed_job(store: EventStore, project_id: str, key: str, fingerprint: str) -> str | None:
    """Return the job that an earlier request with the key was about. Raises KeyReused."""
    claim = ClaimRequest(project_id, "", fingerprint, now())
    if await plan(store, REQUESTS, claim_id(project_id, key), claim) is not None:
        return None
    state = (await load(store, REQUESTS, claim_id(project_id, key))).state
    return state.job_id if isinstance(state, Claimed) else None


async def record_once(
    store: EventStore,
    key: str,
    claim: ClaimRequest,
    planned: Callable[[], Awaitable[Append | None]],
    metadata: Metadata,
) -> int | None:
    """Record what is planned and the claim of its key, both or none. Return its position, or None when the key was
    claimed for the same before. Raises KeyReused, and what planning raises.
    """
    while True:
        claimed = await plan(store, REQUESTS, claim_id(claim.project_id, key), claim, metadata=metadata)
        if claimed is None:
            return None
        write = await planned()
        try:
            return (await store.append_all([claimed, *([write] if write else [])])).position
        except WrongExpectedVersion:  # another was faster, with the claim or on the job: look again
            continue
