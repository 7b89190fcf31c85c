"""Whether a clause of an answer says the contrary of what a passage says of the same.

People paraphrase; so a clause is held only against the passages' clauses that share most of its words, and only words
that exclude one another count: ``before`` and ``after``, ``must`` and ``may``, ``all`` and ``some``, ``not`` or none;
and names that have changed places.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from msgspec import Struct

from service.sentences.opposites import COMPARED, PHRASES, sides_of
from service.sentences.passage_facts import sentences_in
from service.sentences.words import stem, stems_in

LEAST_SHARED, SHARED = 2, 0.5
"""The words, and their share, that a clause must have in common with a passage's to be held against it."""
AROUND, FURTHER = 0.3, 0.1
"""The weight of a word that both have, but one or both outside of the clause."""
NEAR_BEST = 0.85
SCOPE = 3
"""Words behind a negation that it may deny."""
BESIDE = 4
"""Words with a meaning on each side of which two clauses must share one, for a word of each to be about the same."""
LEAST_AROUND, LEAST_SHARE = 3, 0.4
"""The same of the sentences around them, where no clause has enough."""
REACH = 8
"""Words from one name to another that may have changed places."""
MAX_WORDS = 120
"""Words of a sentence that are looked at."""
_PHRASE = re.compile(rf"\b(?:{'|'.join(sorted(PHRASES, key=len, reverse=True))})\b", re.IGNORECASE)
_TOKEN = re.compile(
    r"`{1,2}(?P<code>[^`\n]{1,80})`{1,2}|[^\W\d][\w$]{0,60}(?:[.'’][\w$]{1,40}){0,6}|\d[\d.,]{0,20}|[;:,()]|\s[–—-]\s"  # noqa: RUF001
)
_BRACKETS = re.compile(r"\(([^()]{1,200})\)")
_JOINED = frozenset(PHRASES.values())
_NAME = re.compile(r".*(?:[a-z][A-Z]|_|\w\.\w|[A-Z]{2}).*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BREAK = _words("while whereas but although though because since unless if when whenever so which where otherwise then")
_NEGATION = _words(
    """
    not never cannot can't don't doesn't isn't aren't won't didn't shouldn't mustn't wasn't weren't hasn't haven't
    needn't no neither nor without nothing none couldn't wouldn't
    """
) | {"nobody"}
_FILLING = _words(
    """
    a an the any be been being to of able have has had get gets even it this that its their your there very all make
    makes made attempt attempts try tries going allowed want
    """
)
"""Words that a negation passes over to deny the next."""
_EXCUSE = {
    word: words.split()[0]
    for words in (
        "only just alone", "unless except until without", "instead rather", "if when otherwise", "again anymore",
        "unlike differ differs different", "however although yet still", "fail fails", "refuse refuses",
        "prevent prevents avoid avoids", "ignore ignores ignored", "skip skips", "lack lacks",
        "disable disables disabled",
    )
    for word in words.split()
}  # fmt: skip
"""Words that say no in another way, or where something holds."""
_ARTICLES = _words(
    "a an the of this that these those its their your our to be is are was were in on at by for only also then"
)
_ALL, _SOME, _NO = "all", "some", "no"
_LEVELS = {
    **dict.fromkeys(_words("all every each any both"), _ALL),
    **dict.fromkeys(_words("some many most few certain"), _SOME),
    **dict.fromkeys(_words("no none neither"), _NO),
}
_OFTEN = {
    "always": _ALL,
    **dict.fromkeys(_words("usually often sometimes mostly typically generally normally may might can"), _SOME),
    "never": _NO,
}
_MANY = _words("several many some most few")
_COUNTS = {
    word: str(at) for at, word in enumerate(("two", "three", "four", "five", "six", "seven", "eight", "nine"), 2)
}
_MUST, _FREE, _MAY, _BAN = "must", "free", "may", "ban"
_OF_WHAT_FOLLOWS = _words("before after prior priorto above below beneath under inside within outside")
"""Words that say something of what stands behind them: ``A before B`` is no contrary of ``after A, B``."""
_DIRECTED = _words("over before after than to into onto by")


class Word(Struct, frozen=True, gc=False):
    text: str
    """In lower case; a name as it is."""
    stems: tuple[str, ...]
    """None for a word without meaning of its own."""
    denied: int
    """0, or the place behind a negation, from 1."""
    is_name: bool


class Clause(Struct, frozen=True):
    words: tuple[Word, ...]
    stems: frozenset[str]
    around: frozenset[str]
    """Those of what it stands in."""
    is_wide: bool
    """A sentence, or its part before or behind a semicolon, of several clauses."""
    excuses: frozenset[str]
    """Words with which it may say no in another way, or that say where it holds."""


class _Part(Struct, frozen=True):
    words: list[Word]
    semicolons: int
    """Those before it."""


Rule = Callable[[Clause, int, Clause], bool | None]
"""Whether a word of a clause is contrary to another clause, or agrees with it; None where that says nothing of it."""


def read_claim(text: str) -> tuple[Clause, ...]:
    """Return a sentence's clauses, and the sentence as one where it has several."""
    parts = _parts_of(text)
    around = frozenset(one for part in parts for word in part.words for one in word.stems)
    return tuple(_clauses(parts, around))


@lru_cache(1024)
def read_segment(text: str, above: tuple[str, ...]) -> tuple[Clause, ...]:
    """Return the same of each sentence of a passage's segment."""
    sentences = [_parts_of(sentence) for sentence in sentences_in(text)]
    around = frozenset(
        (*above, *(one for parts in sentences for part in parts for word in part.words for one in word.stems))
    )
    return tuple(clause for parts in sentences for clause in _clauses(parts, around))


def _clauses(parts: Sequence[_Part], around: frozenset[str]) -> Iterator[Clause]:
    """Return each part, those between two semicolons together, and all together."""
    for part in parts:
        yield _clause(part.words, around, is_wide=False)
    between = [[*some] for _, some in groupby(parts, key=lambda part: part.semicolons)]
    for some in between if len(between) == 1 else [*between, parts]:
        if len(some) > 1:
            yield _clause([word for part in some for word in part.words], around, is_wide=True)


def _clause(words: Sequence[Word], around: frozenset[str], *, is_wide: bool) -> Clause:
    stems = frozenset(one for word in words for one in word.stems)
    return Clause(
        tuple(words), stems, around, is_wide, frozenset(_EXCUSE[word.text] for word in words if word.text in _EXCUSE)
    )


def _parts_of(text: str) -> list[_Part]:
    """Split a sentence into clauses; what stands in brackets is behind all else."""
    bare = _PHRASE.sub(lambda match: PHRASES.get(match[0].lower(), match[0]), text)
    inner: list[str] = []
    bare = _BRACKETS.sub(lambda match: inner.append(match[1]) or " ", bare)  # type: ignore[func-returns-value]
    parts = [_Part([], 0)]
    denied = 0
    for match, _ in zip(_TOKEN.finditer(" ; ".join((bare, *inner))), range(MAX_WORDS), strict=False):
        token = (match["code"] or match[0]).replace("’", "'").strip("_")  # noqa: RUF001
        low = token.lower()
        is_mark = match["code"] is None and not token[:1].isalnum()
        if is_mark or low in _BREAK:
            is_end = token in (";", ":")
            if is_end or _weight_of(parts[-1].words) >= LEAST_SHARED:
                parts.append(_Part([], parts[-1].semicolons + is_end))
            denied = 0
            if is_mark:
                continue
        if low in _NEGATION:
            denied = 1
            parts[-1].words.append(Word(low, (), 0, is_name=False))
            continue
        parts[-1].words.append(_word(token, denied, is_name=match["code"] is not None or bool(_NAME.fullmatch(token))))
        if low in ("and", "but"):
            denied = 0
        elif denied and low not in _FILLING:
            denied = denied + 1 if denied < SCOPE else 0
    if len(parts) > 1 and _weight_of(parts[-1].words) < LEAST_SHARED and parts[-1].semicolons == parts[-2].semicolons:
        last = parts.pop()
        parts[-1].words.extend(last.words)
    return [part for part in parts if part.words]


def _word(token: str, denied: int, *, is_name: bool) -> Word:
    low = token.lower()
    stems = (low,) if low[:1].isdigit() else () if low in _JOINED else tuple(stems_in(token))
    if not is_name:
        return Word(low, stems, denied, is_name=False)
    role = low.rsplit(".", 1)[-1] if low.startswith(("~", ".")) else low
    return Word(token, (stem(role) if role.isalpha() and len(role) < 6 else role, *stems), denied, is_name=True)


def _weight_of(words: Sequence[Word]) -> int:
    return sum(bool(word.stems) for word in words)


def is_contrary(claim: str, segments: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    """Return whether a sentence says the contrary of others that speak of the same.

    ``segments``: what may speak of the same, each with the stems of its headings.
    """
    theirs = [clause for text, above in segments for clause in read_segment(text, above)]
    counts = Counter(one for clause in theirs for one in clause.stems)
    clauses = read_claim(claim)
    names = [word.text for clause in clauses for word in clause.words if word.is_name]
    swapped: set[tuple[str, str]] = set()
    agreed: set[tuple[str, Rule]] = set()
    for clause in clauses:
        for at, word in enumerate(clause.words):
            rules = list(_rules_for(clause, at))
            if not rules and not word.is_name:
                continue
            near = _near(clause, word, theirs, counts)
            for rule in rules:
                verdicts = {rule(clause, at, one) for one in near}
                if False in verdicts:
                    agreed.add((word.text, rule))
                elif True in verdicts and (word.text, rule) not in agreed:
                    return True
            for other in _names_instead(clause, at, near, names):
                if (other, word.text) in swapped:
                    return True
                swapped.add((word.text, other))
    return False


def _rules_for(clause: Clause, at: int) -> Iterator[Rule]:
    word = clause.words[at]
    if sides_of(word.text):
        yield _opposite
    if word.text in _LEVELS or word.text in ("always", "never"):
        yield _level
    if word.text in _COUNTS:
        yield _count
    if word.text in ("must", "mustn't", "may"):
        yield _modal
    if word.text == "only":
        yield _only
    if word.stems and not word.is_name:
        yield _denial
    if not clause.is_wide and (word.is_name or sides_of(word.text)):
        yield _reversed


def _near(clause: Clause, word: Word, theirs: Sequence[Clause], counts: Counter[str]) -> list[Clause]:
    """Return those that speak most of the same, besides a word."""
    own = word.stems[:1] if word.is_name else word.stems
    wanted, around = clause.stems.difference(own), clause.around.difference(own)
    scored: list[tuple[float, Clause]] = []
    for one in theirs:
        wide = wanted & one.around
        far = around & one.around
        if len(wide) < max(1, SHARED * len(wanted)) or len(far) < LEAST_SHARED:
            continue
        shared = wide & one.stems
        if not shared:
            continue
        score = sum(_weight(counts, stem) * (1.0 if stem in shared else AROUND) for stem in wide)
        scored.append((score + FURTHER * sum(_weight(counts, stem) for stem in far - wide), one))
    if not scored:
        least = max(LEAST_AROUND, LEAST_SHARE * len(around))
        return [one for one in theirs if len(around & one.around) >= least and _places(one.words, word)]
    best = max(score for score, _ in scored)
    near = [one for score, one in scored if score >= NEAR_BEST * best]
    return [one for one in near if one.is_wide == clause.is_wide] or near


def _weight(counts: Counter[str], one: str) -> float:
    return 1.0 / (1.0 + 0.1 * counts[one])


def _beside(words: Sequence[Word], at: int) -> set[str]:
    before = [word.stems for word in words[:at] if word.stems][-BESIDE:]
    behind = [word.stems for word in words[at + 1 :] if word.stems][:BESIDE]
    return {one for stems in (*before, *behind) for one in stems}


def _opposite(clause: Clause, at: int, other: Clause) -> bool | None:
    word = clause.words[at]
    verdict: bool | None = None
    for group, sides in sides_of(word.text).items():
        has_both = any(not sides & sides_of(one.text).get(group, sides) for one in clause.words)
        if has_both:
            continue
        for place, one in enumerate(other.words):
            theirs = sides_of(one.text).get(group)
            if theirs is None:
                continue
            if bool(theirs & sides) or bool(word.denied) != bool(one.denied):
                return False
            if group < COMPARED and _names_of(other) - _names_of(clause):
                continue  # of something else the opposite may be true as well
            about = _governed if word.text in _OF_WHAT_FOLLOWS else _beside
            if about(clause.words, at) & about(other.words, place):
                verdict = True
    return verdict


def _names_of(clause: Clause) -> set[str]:
    return {word.stems[0] for word in clause.words if word.is_name}


def _governed(words: Sequence[Word], at: int, most: int = 3) -> set[str]:
    found: set[str] = set()
    for word in words[at + 1 : at + 6]:
        if word.text not in _ARTICLES and len(found) < most:
            found.add(stem(word.text))
    return found


def _by_level(
    levels: Callable[[Sequence[Word], int], str | None], clause: Clause, at: int, other: Clause, most: int = 3
) -> bool | None:
    level = levels(clause.words, at)
    governed = _governed(clause.words, at, most)
    verdict: bool | None = None
    for place in range(len(other.words)):
        theirs = levels(other.words, place)
        if theirs is not None and governed & _governed(other.words, place, most):
            if theirs == level:
                return False
            verdict = True
    return verdict


def _level(clause: Clause, at: int, other: Clause) -> bool | None:
    if clause.words[at].text in _LEVELS:
        return _by_level(_level_of, clause, at, other)
    return _by_level(_often_of, clause, at, other, 1)


def _level_of(words: Sequence[Word], at: int) -> str | None:
    level = _LEVELS.get(words[at].text)
    return _NO if level == _ALL and words[at].denied else level


def _often_of(words: Sequence[Word], at: int) -> str | None:
    level = _OFTEN.get(words[at].text)
    return _NO if level == _SOME and words[at + 1 : at + 2] and words[at + 1].text in ("not", "never") else level


def _count(clause: Clause, at: int, other: Clause) -> bool | None:
    if sum(word.text in _COUNTS or word.text.isdigit() for one in (clause, other) for word in one.words) > 2:
        return None  # a range, or a number for each of several things
    return _by_level(
        lambda words, at: _COUNTS.get(words[at].text, words[at].text if words[at].text.isdigit() else None),
        clause, at, other,
    )  # fmt: skip


def _modal_of(words: Sequence[Word], at: int) -> str | None:
    text = words[at].text
    behind = words[at + 1].text if at + 1 < len(words) else ""
    if text in ("must", "mustn't"):
        return _FREE if words[at].denied else _BAN if behind in ("not", "never") or text != "must" else _MUST
    if text in ("may", "can"):
        return _BAN if behind == "not" else _MAY
    return None


def _modal(clause: Clause, at: int, other: Clause) -> bool | None:
    return _by_level(_modal_of, clause, at, other, 1)


def _only(clause: Clause, at: int, other: Clause) -> bool | None:
    if any(word.text in ("only", "just", "solely", "alone") for word in other.words):
        return False
    wanted = clause.words[at + 1] if at + 1 < len(clause.words) else None
    if wanted is None:
        return None
    texts = [word.text for word in other.words]
    for place, one in enumerate(texts):
        if one == wanted.text and ({"or", "and"} & {*texts[place + 1 : place + 2], *texts[max(0, place - 1) : place]}):
            return True
    return None


def _denial(clause: Clause, at: int, other: Clause) -> bool | None:
    word = clause.words[at]
    rest = clause.stems.difference(word.stems)
    if other.excuses != clause.excuses or len(rest & other.stems) < min(LEAST_SHARED, len(rest)):
        return None
    verdict: bool | None = None
    for place, one in enumerate(other.words):
        if _is_same(one, word):
            if (one.denied > 0) == (word.denied > 0):
                return False
            if clause.words[at - 1 : at] and clause.words[at - 1].text in _MANY:
                continue  # of several others it may be true
            if 1 in (one.denied, word.denied) and _beside(clause.words, at) & _beside(other.words, place):
                verdict = True
    return verdict


def _is_same(one: Word, other: Word) -> bool:
    """Return whether two words are forms of one, or on the same side of what excludes them."""
    if one.is_name or other.is_name:
        return one.stems[:1] == other.stems[:1]
    if not set(one.stems).isdisjoint(other.stems):
        return True
    theirs = sides_of(other.text)
    return any(sides & theirs.get(group, set()) for group, sides in sides_of(one.text).items())


def _places(words: Sequence[Word], word: Word) -> list[int]:
    return [at for at, one in enumerate(words) if one.stems and _is_same(one, word)]


def _reversed(clause: Clause, at: int, other: Clause) -> bool | None:
    """Return whether the other clause has two names the other way round."""
    word = clause.words[at]
    first = _places(other.words, word)
    if not first:
        return None
    verdict: bool | None = None
    for place in range(at + 2, min(len(clause.words), at + REACH)):
        second = clause.words[place]
        if second.text == word.text or not _are_alike(word, second):
            continue
        between = _bare(clause.words[at + 1 : place])
        for one in _places(other.words, second):
            for two in first:
                low, high = min(one, two), max(one, two)
                if high - low > 2 * REACH:
                    continue
                theirs = _bare(other.words[low + 1 : high])
                if ("by" in between) != ("by" in theirs) or not between & theirs - {"by"}:
                    continue
                if two < one:
                    return False
                verdict = True
    return verdict


def _bare(words: Sequence[Word]) -> set[str]:
    return {
        one
        for word in words
        for one in ((word.text.replace("into", "to").replace("onto", "to"),) if word.text in _DIRECTED else word.stems)
    }


def _are_alike(one: Word, other: Word) -> bool:
    theirs = sides_of(other.text)
    return (one.is_name and other.is_name) or any(
        not sides & theirs.get(group, sides) for group, sides in sides_of(one.text).items()
    )


def _names_instead(clause: Clause, at: int, near: Sequence[Clause], names: Sequence[str]) -> set[str]:
    """Return those of a sentence's names that others have in place of this one."""
    word = clause.words[at]
    if not word.is_name or any(_places(one.words, word) for one in near):
        return set()
    own = {one.text for one in clause.words}
    return {
        one.text for other in near for one in other.words if one.is_name and one.text in names and one.text not in own
    }
