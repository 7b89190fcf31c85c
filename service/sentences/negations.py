"""Whether two sentences of nearly the same words mean the contrary."""

import re

from service.sentences.words import stem, stems_in

LEAST_SAME = 3
SAME_SENTENCE = 0.7
"""The share of both sentences' words that is enough to compare how often each says no."""
SAME_CLAIM, LEAST_CLAIM = 0.6, 2
"""The share of a sentence's words, and their number, from which a word that only one of the two denies counts."""
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|can't|don't|doesn't|isn't|aren't|won't|didn't|no longer|shouldn't|mustn't|wasn't"
    r"|weren't|hasn't|haven't|needn't)\b[*_]{0,3}",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\b(?:no|without|none|nothing|nobody|neither|nor|only|unless|until|except|instead|rather|avoid|skips?|skipped|ignores?d?"
    r"|omits?|omitted|omitting|lacks?|leaves?|leaving|fails?|refuses?d?|prevents?|disables?d?|unlike|if|when|but|just|off|out"
    r"|alone|nowhere|hardly|un\w{4,30}|in\w{3,30}able|empty|otherwise|however|though|although|yet|still)\b",
    re.IGNORECASE,
)
"""Words that say no in another way, or where it holds: with one of them how often a sentence says no means little."""
_ADVICE = re.compile(r"\W*(?:(?:so|then|please)\W+)?(?:never|do not|don't|avoid)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z']{2,40}")
_FILLING = frozenset("the a an be been being to have has had any very also yet all that this it its".split())  # noqa: SIM905
_BARE = re.compile(r"[`*_]")


def negations_in(text: str) -> int:
    return len(_NEGATION.findall(text))


def denied_in(text: str) -> set[str]:
    """Return the words, as stems, that a negation stands before: ``apply`` in ``does not apply``."""
    bare = _BARE.sub("", text)
    found: set[str] = set()
    for match in _NEGATION.finditer(bare):
        for word in _WORD.finditer(bare, match.end(), match.end() + 60):
            if word[0].casefold() not in _FILLING:
                found.add(stem(word[0]))
                break
    return found


def says_contrary(words: str, anchors: dict[str, int], sentence: str) -> bool | None:
    """Return whether a sentence of a passage says the contrary of these words; None where it speaks of something else.

    ``anchors``: the stems of the words.
    """
    theirs = set(stems_in(sentence))
    shared = len(anchors.keys() & theirs)
    count, their_count = negations_in(words), negations_in(sentence)
    is_same = shared >= max(LEAST_SAME, SAME_SENTENCE * len(anchors), SAME_SENTENCE * len(theirs))
    if (count > 0) == (their_count > 0):
        return False if is_same or (shared >= SAME_CLAIM * len(anchors) and count) else None
    if _DENYING.search(words if their_count else sentence):
        return None
    denied = denied_in(sentence) if their_count else denied_in(words)
    is_denied = not denied.isdisjoint(anchors.keys() if their_count else theirs) and _ADVICE.match(words) is None
    is_claim = is_denied and shared >= max(LEAST_CLAIM, SAME_CLAIM * len(anchors))
    return True if is_claim or (is_same and not _DENYING.search(words + sentence)) else None
