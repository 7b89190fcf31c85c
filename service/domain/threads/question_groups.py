"""Groups of questions that ask for the same thing: unanswered ones show what the documentation lacks.

Two wordings are near when their rarer words are the same: the cosine of their words' weights, a word's weight being its
inverse document frequency. Each wording joins the nearest group of those before it, by the group's first wording, so
that a group does not drift from its name; the commonest wordings come first.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt

from msgspec import Struct

MAX_WORDINGS = 1_000
"""The commonest wordings are grouped; further ones have hardly more than a question each."""
NEAR = 0.55
MAX_POSTINGS = 100
"""A word leads to this many groups, the first ones: the work stays in proportion to the number of wordings."""
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ies|ing|ed|es|s|e|y)$")


class AskedWording(Struct, frozen=True):
    """Questions of one wording, in one project."""

    project_id: str
    wording: str
    count: int
    newest: int
    """The position of the newest of these questions in the log."""
    oldest: int = 0
    """The position of the oldest question of this wording that was not answered, in any period."""
    first: int = 0
    """The position of the oldest of these questions."""


class QuestionGroup(Struct, frozen=True):
    wordings: tuple[AskedWording, ...]
    """The commonest first."""

    @property
    def count(self) -> int:
        return sum(one.count for one in self.wordings)

    @property
    def newest(self) -> int:
        return max(one.newest for one in self.wordings)

    @property
    def oldest(self) -> int:
        return min(one.oldest for one in self.wordings)


def group_wordings(asked: Sequence[AskedWording]) -> list[QuestionGroup]:
    """Return groups of wordings, each of one project, the group that was asked most first."""
    ordered = sorted(asked, key=lambda one: (-one.count, -one.newest))[:MAX_WORDINGS]
    words = [frozenset(_root(word) for word in one.wording.split()) for one in ordered]
    documents = Counter(word for some in words for word in some)
    weights = {word: (1.0 + log(len(ordered) / number)) ** 2 for word, number in documents.items()}
    lengths = [sqrt(sum(weights[word] for word in some)) for some in words]
    groups: list[list[int]] = []
    begins: dict[tuple[str, str], list[int]] = {}
    for index, some in enumerate(words):
        project_id = ordered[index].project_id
        leading = _leading_words(some, weights)
        nearest, best = -1, 0.0
        candidates = {group for word in leading for group in begins.get((project_id, word), ())[:MAX_POSTINGS]}
        for group in sorted(candidates):
            first = groups[group][0]
            cosine = sum(weights[word] for word in some & words[first]) / (lengths[index] * lengths[first])
            if cosine >= NEAR and cosine > best:
                nearest, best = group, cosine
        if nearest >= 0:
            groups[nearest].append(index)
            continue
        for word in leading:
            begins.setdefault((project_id, word), []).append(len(groups))
        groups.append([index])
    found = [QuestionGroup(tuple(ordered[index] for index in group)) for group in groups]
    return sorted(found, key=lambda group: (-group.count, -group.newest))


def _leading_words(words: frozenset[str], weights: Mapping[str, float]) -> list[str]:
    """Return the rarer words of a wording: those without which no other wording is near it. What is left has less than
    ``NEAR`` of its length, so sharing that alone is not enough (prefix filtering; Bayardo and others, "Scaling up all
    pairs similarity search", 2007).
    """
    rarest_first = sorted(words, key=lambda word: (-weights[word], word))
    left = sum(weights[word] for word in words)
    enough = left * NEAR**2
    leading = []
    for word in rarest_first:
        if left < enough:
            break
        leading.append(word)
        left -= weights[word]
    return leading


def _root(word: str) -> str:
    """Return a word without a common English ending, so that "exports" and "exporting" are one word here."""
    return _ENDING.sub("", word)
