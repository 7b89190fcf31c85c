"""The words by which questions are found."""

import hashlib
import re
from collections.abc import Iterator

from service.domain.texts.unicode_forms import normalized

MAX_WORDS = 64
"""Different words of a question by which it is found: its first."""
MAX_CHARACTERS = 5_000
"""Characters of a question that are read for them: its first."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"([\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)")
"""Thai, Lao, kana and Han: no spaces are between their words."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the different words of a text, without the endings of English plurals. Runs of letters without spaces
    between their words become pairs of letters.
    """
    found = dict.fromkeys(_words(normalized("NFKC", text[:MAX_CHARACTERS]).casefold()))
    return tuple(found)[:MAX_WORDS]


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        for number, part in enumerate(_UNSPACED.split(word)):
            if number % 2:
                yield from (part[at : at + 2] for at in range(max(len(part) - 1, 1)))
            elif part:
                yield _singular(part)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def word_key(organization_id: str, word: str) -> int:
    """Return the number under which an organization's word is kept: 64 bits, so that two are hardly ever the same."""
    digest = hashlib.blake2b(f"{organization_id}\n{word}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
