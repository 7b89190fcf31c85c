"""A documentation site: the claim on a domain, and the indexing of what it shows."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.access.callers import checked_origins
from service.domain.errors import Conflict, NotFound
from service.domain.events import Event


class Skipped(Struct, frozen=True):
    """A file that is not in the index, and why."""

    path: str
    reason: str


class SiteRegistered(Event, frozen=True, tag="site-registered"):
    """The domain is taken; its stream is ``site-<domain>``, so there can be only one."""

    project_id: str
    organization_id: str
    registered_at: datetime


class IndexRequested(Event, frozen=True, tag="index-requested"):
    reason: str
    requested_at: datetime


class SiteIndexed(Event, frozen=True, tag="site-indexed"):
    commit: str
    file: str
    """The index's name under ``index/<domain>/``."""
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    """At most the first 100."""
    skipped_count: int
    seconds: float
    indexed_at: datetime


class IndexKept(Event, frozen=True, tag="index-kept"):
    """It was asked for, but the site's newest commit is indexed already."""

    commit: str
    kept_at: datetime


class IndexFailed(Event, frozen=True, tag="index-failed"):
    code: str
    message: str
    failed_at: datetime


class SiteAccessChanged(Event, frozen=True, tag="site-access-changed"):
    """The access without a key, as it is from now on."""

    public: bool
    origins: tuple[str, ...]
    """The websites whose pages may ask; programs that are no browser need not be listed."""
    changed_at: datetime


SiteEvent = SiteRegistered | IndexRequested | SiteIndexed | IndexKept | IndexFailed | SiteAccessChanged


class RegisterSite(Struct, frozen=True):
    project_id: str
    organization_id: str
    now: datetime


class RequestIndex(Struct, frozen=True):
    reason: str
    now: datetime


class RecordIndex(Struct, frozen=True):
    commit: str
    file: str
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    seconds: float
    now: datetime


class KeepIndex(Struct, frozen=True):
    commit: str
    now: datetime


class RecordIndexFailure(Struct, frozen=True):
    code: str
    message: str
    now: datetime


class ChangeSiteAccess(Struct, frozen=True):
    """Change who may ask the site without a key; None stays as it is."""

    now: datetime
    public: bool | None = None
    origins: tuple[str, ...] | None = None


SiteCommand = RegisterSite | RequestIndex | RecordIndex | KeepIndex | RecordIndexFailure | ChangeSiteAccess

MAX_SKIPPED_RECORDED = 100


class Absent(Struct, frozen=True):
    pass


class Site(Struct, frozen=True):
    project_id: str
    index_wanted: bool = True
    commit: str | None = None
    file: str | None = None
    public: bool = False
    """Whether it may be asked without a key."""
    origins: tuple[str, ...] = ()


SiteState = Absent | Site


def decide(command: SiteCommand, state: SiteState) -> list[SiteEvent]:
    """Return the events of a command. Raise NotFound, Conflict ``domain_taken``, or Invalid for an origin."""
    match command, state:
        case RegisterSite() as new, Absent():
            return [SiteRegistered(new.project_id, new.organization_id, registered_at=new.now)]
        case RegisterSite(), Site():
            raise Conflict("This domain belongs to another project.", code="domain_taken")
        case _, Absent():
            raise NotFound("Site not found. List the projects to see their domains.")
        case RequestIndex(reason=reason, now=now), Site():
            return [IndexRequested(reason, requested_at=now)]
        case RecordIndex() as done, Site():
            return [
                SiteIndexed(
                    done.commit, done.file, done.pages, done.sections, done.skipped[:MAX_SKIPPED_RECORDED],
                    len(done.skipped), done.seconds, indexed_at=done.now,
                )
            ]  # fmt: skip
        case KeepIndex(commit=commit, now=now), Site():
            return [IndexKept(commit, kept_at=now)]
        case RecordIndexFailure(code=code, message=message, now=now), Site():
            return [IndexFailed(code, message, failed_at=now)]
        case ChangeSiteAccess() as change, Site():
            public = state.public if change.public is None else change.public
            origins = state.origins if change.origins is None else checked_origins(change.origins)
            if (public, origins) == (state.public, state.origins):
                return []
            return [SiteAccessChanged(public, origins, changed_at=change.now)]
        case _:
            raise AssertionError(command)


def evolve(state: SiteState, event: SiteEvent) -> SiteState:
    match event, state:
        case SiteRegistered(project_id=project_id), _:
            return Site(project_id)
        case _, Absent():
            raise AssertionError(event)
        case IndexRequested(), Site():
            return replace(state, index_wanted=True)
        case SiteIndexed(commit=commit, file=file), Site():
            return replace(state, index_wanted=False, commit=commit, file=file)
        case ((IndexKept() | IndexFailed()), Site()):
            return replace(state, index_wanted=False)
        case SiteAccessChanged(public=public, origins=origins), Site():
            return replace(state, public=public, origins=origins)
        case _:
            assert_never(event)
