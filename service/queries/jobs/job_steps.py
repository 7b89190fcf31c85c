"""The steps of the job behind a pull request."""

from collections import deque
from contextlib import aclosing

from eventstore import EventStore, Views
from service.queries.jobs.jobs import jobs_of_pull_request, past_events
from service.views.jobs.job_steps import JobStep, JobSteps, StepReader

MAX_STEPS = 1_000


async def steps_of_pull_request(views: Views, store: EventStore, project_id: str, number: int) -> JobSteps | None:
    """Return the steps so far of the newest job that works on a pull request; None when no job does."""
    jobs = await jobs_of_pull_request(views, project_id, number)
    if not jobs:
        return None
    reader, steps, count = StepReader(), deque[JobStep](maxlen=MAX_STEPS), 0
    async with aclosing(past_events(store, jobs[-1], 0)) as events:
        async for _, event in events:
            if (step := reader.step(event)) is not None:
                steps.append(step)
                count += 1
    return JobSteps(jobs[-1], reader.model, tuple(steps), is_cut=count > MAX_STEPS)
