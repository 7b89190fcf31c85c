"""How much an organization uses, and how far it is from its limits."""

from typing import Annotated, Literal

from msgspec import Struct

from service.views.fields import Timestamp, described

LimitScope = Literal["organization", "project", "assistant-key", "public-site"]


class LimitView(Struct, frozen=True, rename="camel"):
    """A limit on requests in a sliding window, and how much of it is used."""

    scope: Annotated[LimitScope, described("What the limit is for, as `RateLimit-Policy` names it.")]
    id: Annotated[str, described("The id of that organization, project or key.")]
    name: Annotated[str, described("Its name.")]
    limit: Annotated[int, described("Requests that the window takes.")]
    window_seconds: Annotated[int, described("The length of the window, in seconds.")]
    used: Annotated[int, described("Requests in the window now.")]
    resets_at: Annotated[Timestamp | None, described("When the oldest request leaves the window; null when unused.")]


class UsageDayView(Struct, frozen=True):
    """The accepted requests of a day."""

    day: Annotated[str, described("The day, in UTC.", format="date")]
    assistant: Annotated[int, described("Questions to the assistant.")]
    agent: Annotated[int, described("New jobs, and messages to jobs.")]


class UsageOfView(Struct, frozen=True):
    """The accepted requests of one key or project."""

    id: Annotated[str, described("Its id; empty for requests without a key.")]
    name: Annotated[str, described("Its name.")]
    assistant: Annotated[int, described("Questions to the assistant.")]
    agent: Annotated[int, described("New jobs, and messages to jobs.")]


class SiteCostView(Struct, frozen=True, rename="camel"):
    """The cost of a site's replies today, in UTC, and the bounds on it."""

    project_id: Annotated[str, described("The id of its project.")]
    domain: Annotated[str, described("The site.")]
    spent_today_usd: Annotated[float, described("The cost of the replies that have ended, where it is known.")]
    own_bound_usd_day: Annotated[float, described("The bound that an owner has set; 0: none.")]
    bound_usd_day: Annotated[float, described("The bound of the installation; 0: none. The lower one counts.")]


class UsageView(Struct, frozen=True):
    """The use of an organization, and its limits."""

    limits: Annotated[
        tuple[LimitView, ...],
        described("The limits of the organization, and of the keys and projects that are listed, as they stand now."),
    ]
    days: Annotated[tuple[UsageDayView, ...], described("The requests of each day, oldest first.")]
    keys: Annotated[tuple[UsageOfView, ...], described("The keys with most requests in these days, at most 50.")]
    projects: Annotated[
        tuple[UsageOfView, ...], described("The projects with most requests in these days, at most 50.")
    ]
    costs: Annotated[tuple[SiteCostView, ...], described("The sites, by domain, at most 50.")]
