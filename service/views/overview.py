"""Numbers of what waits for an organization's people."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import Timestamp, described

MAX_COUNTED = 1_000
"""Jobs of each kind are counted up to this number."""


class WaitingJobsView(Struct, frozen=True, rename="camel"):
    """Jobs that are not archived, each kind counted up to 1,000."""

    review: Annotated[int, described("Jobs whose pull request is open.")]
    needs_input: Annotated[int, described("Jobs that ask something; send a message to answer.")]
    active: Annotated[int, described("Jobs that are under way.")]
    failed: Annotated[int, described("Jobs that failed.")]


class OverviewView(Struct, frozen=True, rename="camel"):
    """Numbers of what waits for an organization's people."""

    jobs: Annotated[WaitingJobsView, described("Its jobs.")]
    unanswered: Annotated[int, described("Questions of the last 7 days that are in gaps.")]
    sites: Annotated[int, described("Its sites.")]
    failing_sites: Annotated[int, described("Sites that could not be indexed the last time.")]
    oldest_indexed_at: Annotated[
        Timestamp | None, described("When the oldest index of its sites was made; null before the first.")
    ]
