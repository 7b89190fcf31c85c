"""How far a reply has come by its record: what another process needs to go on with it."""

from collections.abc import Iterable

from msgspec import Struct

from service.domain.events import GONE
from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads.recorded_reply import CallEnd, ReplyWritten, SourcesFound
from service.domain.threads.threads import ThreadEvent


class ModelCall(Struct, frozen=True):
    """A call of the model for the reply."""

    raw: str
    """The model's words, its citations as numbers."""
    end: CallEnd | None = None
    """None: its end is not on record."""


class ReplyProgress(Struct, frozen=True):
    text: str = ""
    """All that readers were sent."""
    calls: tuple[ModelCall, ...] = ()
    closing: str = ""
    """The service's own words behind the model's; the end of ``text``."""
    sources: tuple[Source, ...] = ()
    """By their numbers."""
    query: str = ""
    """The search for the first prompt: the planned one where there is a plan, else the first."""
    planned: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    planned_by: str = ""
    searches: int = 0
    """Search steps and pages read."""
    is_readable: bool = True
    """Whether none of its text was erased or damaged."""

    @property
    def usage(self) -> Usage:
        """Return the usage of the calls that have ended: what the others cost is known to their provider alone."""
        return sum((call.end.usage for call in self.calls if call.end is not None), start=Usage())


def progress_of(events: Iterable[ThreadEvent], reply_id: str) -> ReplyProgress:
    """Return the progress that the events of a thread record of one reply."""
    texts: list[str] = []
    closing: list[str] = []
    raw: list[str] = []
    calls: list[ModelCall] = []
    sources: dict[int, Source] = {}
    first: SourcesFound | None = None
    searches = 0
    for event in events:
        match event:
            case SourcesFound(reply_id=of) as found if of == reply_id:
                first = found if first is None or found.planned_by else first
                searches += 1
                sources.update((source.number, source) for source in found.sources)
            case ReplyWritten(reply_id=of) as segment if of == reply_id:
                texts.append(segment.text)
                raw.append(segment.text if segment.raw is None else segment.raw)
                if calls and not any(raw):
                    closing.append(segment.text)
                else:
                    closing.clear()
                if segment.call is not None:
                    calls.append(ModelCall("".join(raw), segment.call))
                    raw.clear()
            case _:
                pass
    if words := "".join(raw):
        calls.append(ModelCall(words))
    return ReplyProgress(
        "".join(texts),
        tuple(calls),
        "".join(closing),
        tuple(sources[number] for number in sorted(sources)),
        "" if first is None else first.query,
        () if first is None else first.planned,
        () if first is None else first.expected,
        "" if first is None else first.planned_by,
        searches,
        is_readable=GONE.isdisjoint(texts),
    )
