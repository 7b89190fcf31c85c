"""The requests to a job's model, rebuilt from its stream and from the prompts that the log keeps."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

from eventstore import EventStore, RecordedEvent, load
from service.domain.jobs.decider import ContextsOpened, JobEvent, ModelReplied, ReplyLost, ToolReturned
from service.domain.jobs.rebuilding import rebuilt
from service.domain.jobs.withholding import Withholding
from service.domain.prompts import Kept, PromptSet
from service.streams import JOBS, PROMPTS, decoded
from service.views.jobs.job_requests import NO_REQUEST, JobRequestView, request_view

_PARTS = JOBS.codec.tags_of(ModelReplied, ReplyLost, ToolReturned, ContextsOpened)


async def read_request(store: EventStore, job_id: str, choose: Callable[[int], int]) -> JobRequestView:
    """Return one request. ``choose``: gets how many there are, at least one, and returns a number from 1.

    It takes as long as reading all of the job's replies and results: 0.1 s for a hundred calls of 100,000 tokens each.
    """
    requests = await read_requests(store, job_id, lambda count: [choose(count)])
    return requests[0] if requests else NO_REQUEST


async def read_requests(
    store: EventStore, job_id: str, choose: Callable[[int], Sequence[int]] = lambda count: range(1, count + 1)
) -> list[JobRequestView]:
    """Return some requests in order, all if ``choose`` is not given."""
    async with aclosing(store.iterate_stream(JOBS.stream(job_id))) as stream:
        recorded = [one async for one in stream if one.type in _PARTS]
    events = await asyncio.to_thread(_decoded, recorded)
    named = dict.fromkeys(one.prompts for one in events if isinstance(one, ModelReplied | ReplyLost) and one.prompts)
    states = {each: (await load(store, PROMPTS, each, may_be_old=True)).state for each in named}
    kept = {each: state.prompts for each, state in states.items() if isinstance(state, Kept)}
    count = sum(isinstance(one, ModelReplied | ReplyLost) for one in events)
    wanted = frozenset(choose(count)) if count else frozenset[int]()
    return await asyncio.to_thread(_views, events, kept, wanted, count)


def _decoded(recorded: Sequence[RecordedEvent]) -> list[JobEvent]:
    return [event for _, event in decoded(JOBS, recorded)]


def _views(
    events: Sequence[JobEvent], kept: Mapping[str, PromptSet], wanted: frozenset[int], count: int
) -> list[JobRequestView]:
    withholding = Withholding(events)
    views = []
    for request in rebuilt(events, kept):
        if request.number not in wanted:
            continue
        shown = [withholding.without(message) for message in request.messages or ()]
        tools = kept[request.prompts].tools if request.messages is not None else ()
        messages, left_out = [message for message, _ in shown], sum(lines for _, lines in shown)
        views.append(request_view(request, count, tools, messages, left_out))
    return views
