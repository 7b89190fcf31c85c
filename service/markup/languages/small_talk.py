"""Greetings, thanks and the like: what people say to somebody who answers, and what asks nothing of a documentation.

``small_talk.json`` has them by language, in lower case and without marks; any of them is known in any language.
"""

import re
from functools import cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

MAX_CHARACTERS = 200
_MARKS = re.compile(r"[^\w' -]+|_")
_BESIDE = frozenset(["you", "there", "very", "much", "so", "a", "lot", "all", "again", "vielen", "dir", "beaucoup"])
"""Words that may stand beside such a word and add nothing."""

Kind = Literal["greeting", "thanks"]


class SmallTalk(Struct, frozen=True):
    kind: Kind
    languages: tuple[str, ...]
    """Those that it may be in."""


class _Said(Struct, frozen=True):
    greetings: tuple[str, ...]
    thanks: tuple[str, ...]


@cache
def _said() -> dict[str, tuple[Kind, tuple[str, ...]]]:
    """Return the kind of each phrase, and its languages; what is both is thanks."""
    lists = msgspec.json.decode(
        resources.files(__package__).joinpath("small_talk.json").read_bytes(), type=dict[str, _Said]
    )
    found: dict[str, tuple[Kind, tuple[str, ...]]] = {}
    for language, one in lists.items():
        for phrase in one.greetings:
            found[phrase] = "greeting", (*found.get(phrase, ("", ()))[1], language)
        for phrase in one.thanks:
            found[phrase] = "thanks", (*found.get(phrase, ("", ()))[1], language)
    return found


def small_talk(text: str) -> SmallTalk | None:
    """Return what kind of small talk a text is; None for one that may ask something."""
    if len(text) > MAX_CHARACTERS:
        return None
    said: list[tuple[Kind, tuple[str, ...]]] = []
    for part in _MARKS.split(text.casefold().replace("’", "'")):  # noqa: RUF001
        if words := part.split():
            found = _phrases(words)
            if not found:
                return None
            said += found
    if not said:
        return None
    languages = [language for language in said[0][1] if all(language in others for _, others in said)]
    kind: Kind = "thanks" if any(kind == "thanks" for kind, _ in said) else "greeting"
    return SmallTalk(kind, tuple(languages) or said[0][1])


def _phrases(words: list[str]) -> list[tuple[Kind, tuple[str, ...]]]:
    """Return the words as one phrase, or as single ones with what may stand beside them; nothing for other words."""
    known = _said()
    if (whole := known.get(" ".join(words))) is not None:
        return [whole]
    if not all(word in known or word in _BESIDE for word in words):
        return []
    return [known[word] for word in words if word in known]
