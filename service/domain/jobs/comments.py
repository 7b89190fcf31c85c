"""Comments on a job's pull request: where each is and who wrote it, as the log and the code hosts name it."""

from msgspec import Struct


class CommentSource(Struct, frozen=True):
    """A comment on a pull request, without its text."""

    id: str
    """The code host's, the same for each version of the comment; its kind is part of it."""
    version: str
    """When it was written or last changed, as the code host says it."""
    author: str
    """The name of the account."""
    thread: str = ""
    """Where an answer to it belongs, in the code host's terms; empty for the conversation."""
    url: str = ""
    path: str = ""
    """The file that it is about; empty for none."""
    first_line: int | None = None
    last_line: int | None = None
    diff: str = ""
    """The end of the changes that the code host shows above it."""
