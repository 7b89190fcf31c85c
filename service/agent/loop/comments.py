"""A comment on the pull request as the model is shown it: others' text, so all of it is data."""

import re

from service.agent.prompts import prompt
from service.agent.tools.results import as_data
from service.domain.jobs.comments import CommentSource, without_address
from service.ports.model import UserMessage


def comment_message(comment: CommentSource, text: str) -> UserMessage:
    """Return the message, which also has the comment's own words for a model that works on values."""
    shown = prompt("comment", author=_name(comment.author), place=_place(comment), quoted=as_data(text))
    return UserMessage(shown, words=without_address(text))


def _name(author: str) -> str:
    """Return the account's name as far as it has the form that code hosts give names."""
    return f"`{author}`" if re.fullmatch(r"[\w.@-]{1,100}", author) else "A reviewer"


def _place(comment: CommentSource) -> str:
    if not comment.path:
        return ""
    parts = ["", "It is about this place:", as_data(comment.path + _lines(comment))]
    if comment.diff:
        parts += ["The changes that it stands below:", as_data(comment.diff)]
    return "\n".join([*parts, ""])


def _lines(comment: CommentSource) -> str:
    first, last = comment.first_line, comment.last_line
    if last is None:
        return ""
    return f", line {last}" if first in (None, last) else f", lines {first} to {last}"
