"""Gaps: dismiss one, restore it, and record that a site answers its questions by now."""

from eventstore import EventStore, Metadata, Views, execute
from service.domain.threads.gaps import MAX_QUESTIONS, AnswerGap, DismissGap, RestoreGap, gap_not_found
from service.queries.readers.gaps import Gap, GapQuery, GapReader, dismissed_gap
from service.runtime.system import now
from service.streams import GAPS


async def dismiss_gap(
    store: EventStore, views: Views, reader: GapReader, query: GapQuery, wanted: str, metadata: Metadata
) -> None:
    """Dismiss a gap, as it is in a period: questions in its words are in no gap from now on. One that is dismissed
    already stays so. Raise NotFound.
    """
    gap = await reader.find(query, wanted)
    if gap is None:
        if await dismissed_gap(views, query.organization_id, wanted):
            return
        raise gap_not_found()
    command = DismissGap(query.organization_id, gap.view.project_id, gap.questions[:MAX_QUESTIONS], now())
    await execute(store, GAPS, gap.view.id, command, metadata=metadata)


async def restore_gap(store: EventStore, views: Views, organization_id: str, wanted: str, metadata: Metadata) -> None:
    """List a dismissed gap again; does nothing for one that is open. Raise NotFound for another organization's."""
    if not await dismissed_gap(views, organization_id, wanted):
        raise gap_not_found()
    await execute(store, GAPS, wanted, RestoreGap(now()), metadata=metadata)


async def record_answered(
    store: EventStore, organization_id: str, gap: Gap, questions: tuple[str, ...], commit: str
) -> int:
    """Record that a site answers these questions of a gap. Return the position in the log."""
    command = AnswerGap(organization_id, gap.view.project_id, questions[:MAX_QUESTIONS], commit, now())
    return (await execute(store, GAPS, gap.view.id, command)).position
