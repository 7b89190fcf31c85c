"""A pull request's page and its files as HTML: in a child process, since others wrote what is in them."""

from collections.abc import Sequence

from msgspec import Struct

from service.markup.pages import is_markdown
from service.ports.code_host import ComparedChanges, Diffed, PullRequestFile, PullRequestPage, PullRequestTexts
from service.views.jobs.job_transcript import PageComment
from service.views.jobs.jobs import FoundByChecks
from service.web.pages.diffs import Hunk, Marking, rows_of
from service.web.pages.rendering import rendered

MAX_BODY = 60_000
"""Characters of a description."""
ROW_PIXELS, MAX_PIXELS, UNKNOWN_PIXELS = 21, 700, 420
"""Heights of a row, and of the window in which a file is shown."""
OPEN_FILES, OPEN_LINES = 30, 800
"""A page with more shows its files closed."""
MAX_FRAMES = 12
"""Frames of a page, each of which costs a browser some 3 ms before anything is loaded. Where there would be more, the
files that are shown apart are links.
"""


class Made(Struct, frozen=True):
    """A page, and how many pairs of lines in it are without marks for words."""

    html: str
    unmarked: int


class FileView(Struct, frozen=True):
    """A file of the diff as the template shows it."""

    place: int
    diffed: Diffed
    hunks: Sequence[Hunk]
    height: int
    """The height of its window in pixels, when it is shown apart."""

    @property
    def is_apart(self) -> bool:
        return self.diffed.hunks is None

    @property
    def has_reading_view(self) -> bool:
        """Return whether the file is a page that can be shown as its readers see it."""
        return is_markdown(self.diffed.path) and not self.diffed.binary and not self.diffed.is_too_large


class Place(Struct, frozen=True):
    """Where the page stands. ``actions`` is the way from there to the folder of the pull request's address."""

    root: str
    actions: str
    name: str
    is_only_here: bool = False
    """Whether its address leads nowhere on other machines."""


class Rights(Struct, frozen=True):
    """The actions that a reader may take on a pull request's page."""

    may_decide: bool = False
    """Merge it and close it."""
    may_comment: bool = False
    is_signed_in: bool = False
    name: str = ""
    organization_id: str = ""
    """The project's, for its members; else empty."""


class Talk(Struct, frozen=True):
    """The reader's rights, and for members of the organization the comments so far."""

    rights: Rights = Rights()
    comments: Sequence[PageComment] = ()
    form: str = ""
    """Names the forms of this page: one that is sent twice counts once."""
    job_id: str = ""
    """The newest job of the pull request, for members of the organization."""
    path: str = ""
    """The page's path from the root."""
    is_changing: bool = False
    """Whether a job is under way on the pull request, or on its branch."""
    live: str = ""
    """Where the page of a member hears of changes, from the root; else empty."""


def make_page(
    page: PullRequestPage,
    place: Place,
    refusal: str,
    found: FoundByChecks = FoundByChecks(),  # noqa: B008  (frozen)
    talk: Talk = Talk(),  # noqa: B008  (frozen)
) -> Made:
    """Return the page; ``found``: what the checks see in the changes."""
    marking = Marking()
    files = [_view(number, file, marking) for number, file in enumerate(page.files, start=page.first_file)]
    are_few = len(files) <= OPEN_FILES and sum(file.diffed.lines for file in files if not file.is_apart) <= OPEN_LINES
    frames = sum(file.is_apart + file.has_reading_view for file in files)
    count = page.file_count or len(files)
    html = rendered(
        "pull_request.html",
        root=place.root,
        actions=place.actions,
        name=place.name,
        is_only_here=place.is_only_here,
        page=page,
        pull_request=page.pull_request,
        body=page.body[:MAX_BODY],
        is_body_cut=len(page.body) > MAX_BODY,
        files=files,
        count=count,
        last=page.first_file + len(files) - 1,
        are_open=are_few,
        has_frames=frames <= MAX_FRAMES,
        added=sum(file.added or 0 for file in page.files),
        removed=sum(file.removed or 0 for file in page.files),
        unmarked=marking.unmarked,
        refusal=refusal,
        errors=found.errors,
        unsourced=found.unsourced,
        talk=talk,
        rights=talk.rights,
    )
    return Made(html, marking.unmarked)


def make_file(shown: PullRequestFile, number: int, place: Place, is_alone: bool = False) -> Made:
    """Return the page of one file; ``is_alone``: it stands in no frame, and leads back."""
    marking = Marking()
    html = rendered(
        "pull_request_file.html",
        root=place.root,
        actions=place.actions,
        name=place.name,
        title=shown.title,
        is_alone=is_alone,
        file=_view(number, shown.file, marking),
        unmarked=marking.unmarked,
    )
    return Made(html, marking.unmarked)


def make_changes(changes: ComparedChanges) -> Made:
    """Return the files of a job's changes, as a part of a page."""
    marking = Marking()
    files = [_view(number, file, marking) for number, file in enumerate(changes.files, start=1)]
    html = rendered("agent/job_changes_files.html", files=files, unmarked=marking.unmarked)
    return Made(html, marking.unmarked)


def make_rendered(shown: PullRequestTexts, place: Place, is_alone: bool = False) -> Made:
    """Return the page that shows a page of the documentation as its readers see it, before and after."""
    from service.web.pages.rendered_pages import RenderedPage, render  # late: a start does not wait for its 20 ms

    page = render(shown.before, shown.after, shown.path) if shown.is_text else RenderedPage(is_too_long=True)
    html = rendered(
        "pull_request_rendered.html",
        root=place.root,
        actions=place.actions,
        name=place.name,
        is_alone=is_alone,
        title=shown.title,
        path=shown.path,
        page=page,
        is_added=shown.before is None,
        is_deleted=shown.after is None,
    )
    return Made(html, 0)


def _view(number: int, file: Diffed, marking: Marking) -> FileView:
    height = min(file.lines * ROW_PIXELS + 2 * ROW_PIXELS, MAX_PIXELS) if file.lines else UNKNOWN_PIXELS
    return FileView(number, file, rows_of(file.hunks or (), marking), height)
