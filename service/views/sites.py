"""Documentation sites and the state of their indexes."""

from typing import Annotated

from msgspec import Struct

from service.domain.widget import WidgetForm
from service.views.fields import Timestamp, described


class IndexFailure(Struct, frozen=True):
    """Why a site could not be indexed the last time."""

    code: Annotated[str, described("Stable; `/docs/errors/CODE` says what to do about it.")]
    message: Annotated[str, described("The same as a plain sentence.")]
    at: Annotated[Timestamp, described("When that was.")]
    times: Annotated[int, described("How often in a row.")]


class IndexingView(Struct, frozen=True, rename="camel"):
    """The indexing of a site that is under way, or waits."""

    stage: Annotated[str, described("What is being done, in words.")]
    since: Annotated[Timestamp, described("Since when the site is behind.")]
    done: Annotated[int, described("Files that were read.")]
    total: Annotated[int, described("Files to read; 0 while it is not known.")]


class PaymentView(Struct, frozen=True, rename="camel"):
    """The payment for questions that a site is asked without a key."""

    model: Annotated[str, described("The model that answers.")]
    cost_bound_usd_day: Annotated[float, described("The most that it may cost in a day of UTC; 0 where it is free.")]
    problem: Annotated[str, described("Why the builtin model answers instead; empty when it need not.")]


class FindingView(Struct, frozen=True):
    """One finding of a site's report."""

    path: Annotated[str, described("The file.")]
    detail: Annotated[str, described("The finding in words.")]
    line: Annotated[int, described("Its line, from 1; 0 for a finding of the whole file.")] = 0


class FindingsView(Struct, frozen=True):
    """The findings of one kind."""

    number: Annotated[int, described("Number of all.")]
    first: Annotated[tuple[FindingView, ...], described("The first thousand of them.")]


class SiteReportView(Struct, frozen=True, rename="camel"):
    """How well a site was read, by its index."""

    generator: Annotated[str, described("The site generator that the repository is for.")]
    commit: Annotated[str, described("The commit that is indexed.")]
    pages: Annotated[int, described("Pages in the index.")]
    sections: Annotated[int, described("Sections in the index.")]
    navigation_entries: Annotated[int, described("Pages that the navigation names; 0 where there is none.")]
    findings: Annotated[
        dict[str, FindingsView],
        described(
            "By kind: `same_address`, `missing_entry`, `broken_link`, `missing_include`, `leftover` are mistakes;"
            " `not_in_navigation` and `skipped` may be intended."
        ),
    ]


class WidgetView(Struct, frozen=True, rename="camel"):
    """How a site's widget presents itself. Empty text: the widget's own, in the reader's language."""

    title: Annotated[str, described("The heading of its panel.")]
    greeting: Annotated[str, described("Its first words to the reader.")]
    suggestions: Annotated[tuple[str, ...], described("Questions to begin with.")]
    hand_off: Annotated[
        str,
        described(
            "Where readers get more help: a link, or an address that begins with `mailto:`. `{threadId}` in it stands"
            " for the id of the conversation; where it is missing, the id is added to a link as the parameter"
            " `threadId`, and to a mail as its subject."
        ),
    ]
    form: Annotated[WidgetForm, described("How the panel opens where the page's tag does not choose.")]
    accent: Annotated[str, described("The colour of buttons and links, such as `#0b6e4f`.")]


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
    widget: Annotated[WidgetView, described("How its widget presents itself.")]
