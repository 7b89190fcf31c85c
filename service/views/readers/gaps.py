"""Gaps of the documentation: groups of questions that it does not answer."""

from typing import Annotated

from msgspec import Struct

from service.views.fields import NextCursor, Timestamp, described
from service.views.readers.questions import ExampleView, HasMore


class GapView(Struct, frozen=True, rename="camel"):
    """Unanswered questions that ask for the same thing."""

    id: Annotated[str, described("A name for the group: the same as long as its oldest question is.")]
    project_id: Annotated[str, described("The project whose documentation lacks the answer.")]
    question: Annotated[str, described("The newest question in the group's commonest wording.")]
    count: Annotated[int, described("How often it was asked in the period.")]
    wordings: Annotated[int, described("In how many wordings.")]
    last_asked_at: Annotated[Timestamp, described("When it was asked last.")]
    examples: Annotated[tuple[ExampleView, ...], described("The newest questions.")]
    pages: Annotated[tuple[str, ...], described("Files that the searches for it found, the most frequent first.")]
    prompt: Annotated[str, described("An instruction for a job that closes the gap.")]
    job_id: Annotated[str | None, described("The job that was made of it since it was asked last.")]
    dismissed_by: Annotated[
        str | None,
        described(
            "Who dismissed it: a key's id; `person:` and the id of a person; `cli:` and the name of a user at the"
            " terminal."
        ),
    ] = None
    dismissed_at: Annotated[Timestamp | None, described("When it was dismissed; null while it is open.")] = None


class GapsView(Struct, frozen=True, rename="camel"):
    """Some of the gaps of a period."""

    gaps: Annotated[tuple[GapView, ...], described("The most frequent first.")]
    next_cursor: NextCursor
    has_more: HasMore
