"""The sentences that the builtin model says itself, in the language of the reader (``replies.json``)."""

from collections.abc import Sequence
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from service.markup.languages.detection import NAMES


class Replies(Struct, frozen=True):
    opening: str
    unsure: str
    nothing: str
    missing: str
    """With words that no page has in place of ``{words}``."""
    or_word: str
    """Before the last of several of them."""
    greeting: str
    thanks: str
    """The reply to thanks, and to whatever else asks nothing."""
    in_english: str
    in_another: str
    """With the language's name in place of ``{language}``."""

    def no_page_has(self, words: Sequence[str]) -> str:
        """Return the sentence that no page has these words."""
        quoted = [f"“{word}”" for word in words]
        last = f" {self.or_word} " if self.or_word.isalpha() else self.or_word
        return self.missing.format(words=last.join(filter(None, [", ".join(quoted[:-1]), quoted[-1]])))

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
