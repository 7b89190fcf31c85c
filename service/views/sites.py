"""Documentation sites and the state of their indexes."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import Timestamp, described


class IndexFailure(Struct, frozen=True):
    """Why a site could not be indexed the last time."""

    code: Annotated[str, described("Stable; `/docs/errors/CODE` says what to do about it.")]
    message: Annotated[str, described("The same as a plain sentence.")]
    at: Annotated[Timestamp, described("When that was.")]
    times: Annotated[int, described("How often in a row.")]


class SiteView(Struct, frozen=True, rename="camel"):
    """A site, and the index that its search uses."""

    domain: Annotated[str, described("The site's identifier.")]
    project_id: Annotated[str, described("The project that it shows.")]
    organization_id: Annotated[str, described("The organization that owns it.")]
    index_wanted: Annotated[bool, described("Whether a newer index is wanted, and not there yet.")]
    wanted_at: Annotated[Timestamp | None, described("When that index was asked for.")]
    commit: Annotated[str | None, described("The commit that is indexed; null before the first.")]
    indexed_at: Annotated[Timestamp | None, described("When it was indexed.")]
    pages: Annotated[int, described("Pages in the index.")]
    sections: Annotated[int, described("Sections in the index.")]
    skipped_count: Annotated[int, described("Files that were left out.")]
    failure: Annotated[IndexFailure | None, described("Why the last attempt failed; null when it did not.")]
    public: Annotated[bool, described("Whether it may be asked without a key.")]
    origins: Annotated[tuple[str, ...], described("The websites whose pages may ask it without a key.")]
