"""A documentation site: the claim on a domain, and the indexing of what it shows."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from service.domain.access.callers import checked_origins
from service.domain.errors import Conflict, NotFound
from service.domain.events import Event
from service.domain.widget import Widget, WidgetChange, changed_widget


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


class IndexingStarted(Event, frozen=True, tag="indexing-started"):
    """An instance of the service has claimed the indexing that is wanted. Only where several share the log."""

    instance: str
    started_at: datetime


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
    digest: str = ""
    """SHA-256 of the list of its files and their sums; empty in earlier events."""
    format: int = 0
    """Format of the index; 0 in earlier events."""


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


class SiteWidgetChanged(Event, frozen=True, tag="site-widget-changed"):
    """The settings of the site's widget, as they are from now on."""

    widget: Widget
    changed_at: datetime


SiteEvent = (
    SiteRegistered
    | IndexRequested
    | IndexingStarted
    | SiteIndexed
    | IndexKept
    | IndexFailed
    | SiteAccessChanged
    | SiteWidgetChanged
)


class RegisterSite(Struct, frozen=True):
    project_id: str
    organization_id: str
    now: datetime


class RequestIndex(Struct, frozen=True):
    reason: str
    now: datetime


class StartIndexing(Struct, frozen=True):
    """Claim the indexing for an instance, also from one that has ended."""

    instance: str
    ended: str
    """The instance whose claim is taken over; empty for none."""
    file: str | None
    """The index that the site had when the decision was made."""
    now: datetime


class RecordIndex(Struct, frozen=True):
    commit: str
    file: str
    pages: int
    sections: int
    skipped: tuple[Skipped, ...]
    seconds: float
    now: datetime
    digest: str = ""
    format: int = 0
    instance: str = ""
    """The one that has claimed the indexing; empty where none claims."""


class KeepIndex(Struct, frozen=True):
    commit: str
    now: datetime
    instance: str = ""


class RecordIndexFailure(Struct, frozen=True):
    code: str
    message: str
    now: datetime
    instance: str = ""


class ChangeSiteAccess(Struct, frozen=True):
    """Change who may ask the site without a key; None stays as it is."""

    now: datetime
    public: bool | None = None
    origins: tuple[str, ...] | None = None


class ChangeSiteWidget(Struct, frozen=True):
    change: WidgetChange
    now: datetime


class UpdateSite(Struct, frozen=True):
    """Change access and widget together, or neither."""

    access: ChangeSiteAccess
    widget: ChangeSiteWidget


SiteCommand = (
    RegisterSite
    | RequestIndex
    | StartIndexing
    | RecordIndex
    | KeepIndex
    | RecordIndexFailure
    | ChangeSiteAccess
    | ChangeSiteWidget
    | UpdateSite
)

MAX_SKIPPED_RECORDED = 100


class Absent(Struct, frozen=True):
    pass


class Site(Struct, frozen=True):
    project_id: str
    index_wanted: bool = True
    commit: str | None = None
    file: str | None = None
    digest: str = ""
    format: int = 0
    indexer: str = ""
    """The instance that claimed the indexing last."""
    is_claimed: bool = False
    """Its indexing has not ended."""
    public: bool = False
    """Whether it may be asked without a key."""
    origins: tuple[str, ...] = ()
    widget: Widget = Widget()


SiteState = Absent | Site


def decide(command: SiteCommand, state: SiteState) -> list[SiteEvent]:
    """Return the events of a command. Raise NotFound, Conflict ``domain_taken`` and ``claimed``, and Invalid for an
    origin or the widget's settings.
    """
    match command, state:
        case RegisterSite() as new, Absent():
            return [SiteRegistered(new.project_id, new.organization_id, registered_at=new.now)]
        case RegisterSite(), Site():
            raise Conflict("This site name is taken by another project. Choose another.", code="domain_taken")
        case _, Absent():
            raise NotFound("Site not found. List the projects to see their domains.")
        case RequestIndex(reason=reason, now=now), Site():
            return [IndexRequested(reason, requested_at=now)]
        case StartIndexing(instance=instance, ended=ended, file=file, now=now), Site():
            if (state.is_claimed and state.indexer not in (instance, ended)) or state.file != file:
                raise Conflict("Another instance indexes this site, or has done so.", code="claimed")
            return [IndexingStarted(instance, started_at=now)]
        case (
            (RecordIndex(instance=instance) | KeepIndex(instance=instance) | RecordIndexFailure(instance=instance)),
            (Site(is_claimed=is_claimed, indexer=indexer)),
        ) if instance and not (is_claimed and instance == indexer):
            raise Conflict("Another instance has taken over this indexing.", code="claimed")
        case RecordIndex() as done, Site():
            return [
                SiteIndexed(
                    done.commit, done.file, done.pages, done.sections, done.skipped[:MAX_SKIPPED_RECORDED],
                    len(done.skipped), done.seconds, indexed_at=done.now, digest=done.digest, format=done.format,
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
        case ChangeSiteWidget(change=wanted, now=now), Site(widget=widget):
            changed = changed_widget(widget, wanted)
            return [] if changed == widget else [SiteWidgetChanged(changed, changed_at=now)]
        case UpdateSite(access=access, widget=widget_change), Site():
            return [*decide(access, state), *decide(widget_change, state)]
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
        case IndexingStarted(instance=instance), Site():
            return replace(state, indexer=instance, is_claimed=True)
        case SiteIndexed(commit=commit, file=file, digest=digest, format=format_), Site():
            return replace(
                state, index_wanted=False, is_claimed=False, commit=commit, file=file, digest=digest, format=format_
            )
        case ((IndexKept() | IndexFailed()), Site()):
            return replace(state, index_wanted=False, is_claimed=False)
        case SiteAccessChanged(public=public, origins=origins), Site():
            return replace(state, public=public, origins=origins)
        case SiteWidgetChanged(widget=widget), Site():
            return replace(state, widget=widget)
        case _:
            assert_never(event)
