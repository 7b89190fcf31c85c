"""The sentences that the builtin model says itself, in the language of the reader (``replies.json``)."""

from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from service.markup.languages.detection import NAMES


class Replies(Struct, frozen=True):
    opening: str
    nothing: str
    greeting: str
    in_english: str
    in_another: str
    """With the language's name in place of ``{language}``."""

    def documentation_in(self, language: str) -> str:
        """Return the sentence that the documentation is in a language that is not the reader's."""
        return self.in_english if language == "en" else self.in_another.format(language=NAMES.get(language, language))


def replies_in(language: str) -> Replies:
    """Return the sentences in a language; in English where it has none."""
    replies = _replies()
    return replies.get(language, replies["en"])


@cache
def _replies() -> dict[str, Replies]:
    return msgspec.json.decode(
        resources.files(__package__).joinpath("replies.json").read_bytes(), type=dict[str, Replies]
    )
