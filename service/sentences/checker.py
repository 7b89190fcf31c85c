"""A reply's sentences held against the passages that it was made from, while it is still being written.

Pure: no clock, no I/O, no model. Feed ``SentenceChecker`` the text as readers get it, in order and from its beginning,
and the passages as they are found. To split text costs next to nothing; what ``judge`` does may take some milliseconds
for a very long sentence and belongs in a thread.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import unescape
from typing import TypedDict

from msgspec.structs import replace

from service.domain.threads.checks import CheckCounts, CheckStatus, ReplyChecks, SentenceCheck
from service.sentences import claims
from service.sentences.judge import Judge, Verdict
from service.sentences.numbers import numbers_in
from service.sentences.passages import GivenPassage, Passages
from service.sentences.units import Unit, UnitReader
from service.sentences.words import ENGLISH, WORD, is_english, knows_english

MAX_SENTENCES = 500
"""Sentences of a reply that are judged; what is beyond is not."""
MAX_SHOWN = 200
"""Characters of a sentence that its verdict repeats."""
MAX_MISSING, MAX_MISSING_CHARACTERS = 10, 80
LEAST_OVERLAP = 0.2
"""The share of a sentence's words that one place must have when there is nothing else to check."""
SAME_LANGUAGE = 0.45
"""The share of a sentence's words that the passages know when both are in one language."""
_CITED = re.compile(r"\[(\d{1,3})\]\([^()\s]{0,2000}\)")


class _Place(TypedDict, total=False):
    passage: int
    start_line: int
    end_line: int


class SentenceChecker:
    def __init__(self, said: Iterable[str] = (), *, is_one_language: bool = False) -> None:
        """``said``: the question, the selection and the reader's earlier messages; their words need no passage.

        ``is_one_language``: an English text is in the language of the passages, however few words these have.
        """
        self._is_one_language = is_one_language
        self._passages = Passages()
        self._said = tuple(said)
        self._judge: Judge | None = None
        """Made with the first sentence."""
        self._reader = UnitReader()
        self._checks: list[SentenceCheck] = []
        self._open: dict[int, Verdict] = {}
        """Verdicts on what cites nothing and stands on no passage that was cited so far, by the check's place."""
        self._cited: set[int] = set()
        self._lead: frozenset[int] = frozenset()
        """Citations of the title or lead-in that the text stands under."""

    def add_passages(self, passages: Iterable[GivenPassage], units: Sequence[Unit] = ()) -> None:
        """Read passages. Work in proportion to their length: some milliseconds for a page.

        ``units``: the next ones to judge. What they need of the passages is read now; without them, when it is needed.
        """
        for passage in passages:
            self._passages.add(passage)
        if any(WORD.search(unit.text) for unit in units):
            self._passages.read_words()
        if any(True for unit in units for _ in numbers_in(unit.text)):
            self._passages.read_numbers()

    def forget_passages(self) -> None:
        """Free the memory of what was read; before the next sentence is judged, all of them are to be added again."""
        self._passages.clear()
        if self._judge is not None:
            self._judge.forget_said()

    def is_new(self, passage: GivenPassage) -> bool:
        return self._passages.is_new(passage)

    def feed(self, text: str) -> list[Unit]:
        """Return the sentences that this text finished, to be judged in this order."""
        return self._reader.feed(text)

    def finish(self) -> list[Unit]:
        return self._reader.finish()

    def judge(self, units: Iterable[Unit]) -> list[SentenceCheck]:
        """Return the verdicts on those that make a claim."""
        found: list[SentenceCheck] = []
        judge = self._judge = self._judge or Judge(self._passages, self._said)
        judge.read_said()
        for unit in units:
            if len(self._checks) >= MAX_SENTENCES:
                break
            check = self._code(unit, judge) if unit.kind == "code" else self._prose(unit, judge)
            if check is not None:
                self._checks.append(check)
                found.append(check)
        return found

    @property
    def checks(self) -> tuple[SentenceCheck, ...]:
        """Return all verdicts so far, in the order of the text."""
        return tuple(self._checks)

    @property
    def checked(self) -> int:
        """Return the number of verdicts so far."""
        return len(self._checks)

    @property
    def summary(self) -> ReplyChecks:
        counts = Counter(check.status for check in self._checks)
        return ReplyChecks(
            CheckCounts(counts["supported"], counts["partly"], counts["unsupported"]), tuple(self._checks)
        )

    def _code(self, unit: Unit, judge: Judge) -> SentenceCheck | None:
        if unit.info.startswith(("suggestions", "text output", "mermaid")):
            return None
        lines = unit.text.split("\n")
        verdict, line = judge.code(lines, unit.paragraph, unit.info)
        if not verdict.grounds and not verdict.missing:
            return None  # brackets and blanks
        shown = Unit("code", lines[line], unit.starts[line], unit.paragraph)
        return self._check(shown, verdict, frozenset(), compares_words=False)

    def _prose(self, unit: Unit, judge: Judge) -> SentenceCheck | None:
        text = unit.text
        cited = frozenset(int(number) for number in _CITED.findall(text))
        if cited - self._cited:
            self._cited |= cited
            self._settle()
        check = None
        is_heading = unit.kind == "heading" or claims.is_heading(_CITED.sub("", text))
        if not is_heading and not (claims.is_question(text) or claims.is_silence(text) or claims.is_talk(text)):
            check = self._claim(unit, cited, judge)
        if cited or is_heading:
            self._lead = cited if claims.is_title(_CITED.sub("", text)) else frozenset()
        return check

    def _claim(self, unit: Unit, cited: frozenset[int], judge: Judge) -> SentenceCheck | None:
        """Return the verdict on a sentence; None where it has nothing to check."""
        is_lead = claims.is_lead(unit.text)
        is_same = self._is_same_language(unit.text)
        checks_capitals = is_same and not _has_many_capitals(unit.text)
        prose, verdict = judge.prose(
            unit.text, cited=cited, known=frozenset(self._cited), checks_capitals=checks_capitals, is_lead=is_lead
        )
        if not verdict.pieces and (not is_same or is_lead or len(WORD.findall(prose.words)) < 4):
            return None
        return self._check(unit, verdict, cited or self._lead, compares_words=is_same)

    def _settle(self) -> None:
        """Sentences that cite nothing may stand on any passage that the reply cites, also further below."""
        cited = frozenset(self._cited)
        for at, verdict in list(self._open.items()):
            if self._stands(verdict, cited):
                place = self._place(verdict, cited)
                self._checks[at] = replace(self._checks[at], status="supported", **place)
                del self._open[at]

    def _check(self, unit: Unit, verdict: Verdict, cited: frozenset[int], *, compares_words: bool) -> SentenceCheck:
        """``compares_words``: where nothing else could be checked, words say whether it is supported."""
        wanted = cited or frozenset(self._cited)
        status: CheckStatus = "supported"
        if verdict.missing:
            status = "unsupported"
        elif not verdict.grounds and not compares_words:
            status = "partly" if not wanted else "supported"
        elif not self._stands(verdict, wanted):
            status = "partly"
            if not cited:
                self._open[len(self._checks)] = verdict
        return SentenceCheck(
            text=_shown(unit),
            start=unit.start,
            status=status,
            missing=tuple(piece[:MAX_MISSING_CHARACTERS] for piece in verdict.missing[:MAX_MISSING]),
            **self._place(verdict, wanted, least=LEAST_OVERLAP if verdict.missing else 0.0),
        )

    def _place(self, verdict: Verdict, wanted: frozenset[int], *, least: float = 0.0) -> _Place:
        """Return where the best of the wanted passages has it, else the best of all."""
        best = max(
            ((passage in wanted, place.score, -passage, place.at) for passage, place in verdict.places.items()),
            default=(False, 0.0, 0, None),
        )
        _, score, passage, at = best
        if at is None or score < least:
            return {}
        first, last = self._passages.lines_of(at)
        return {"passage": -passage, "start_line": first, "end_line": last}

    def _stands(self, verdict: Verdict, wanted: frozenset[int]) -> bool:
        """Return whether the wanted passages have each piece, or enough words."""
        if verdict.grounds:
            return all(passages & wanted for passages in verdict.grounds)
        return any(place.score >= LEAST_OVERLAP for passage, place in verdict.places.items() if passage in wanted)

    def _is_same_language(self, text: str) -> bool:
        words = [word.casefold() for word in WORD.findall(claims.without_code(text))]
        if not words:
            return False
        if self._is_one_language and is_english(words):
            return True
        passages = self._passages
        english = ENGLISH if knows_english(passages.has_word) else frozenset()
        known = sum(word in english or passages.has_word(word) for word in words)
        return known >= SAME_LANGUAGE * len(words)


def _has_many_capitals(text: str) -> bool:
    """Return whether nouns have capital letters, as in German or in a title."""
    words = WORD.findall(claims.without_code(text))[1:]
    capitals = sum(word[0].isupper() and not word.isupper() for word in words)
    return len(words) >= 5 and capitals > 0.4 * len(words)


_FENCE = re.compile(r"(`++)")
_ENTITY = re.compile(r"&(?:lt|amp);")


def _without_entities(text: str) -> str:
    """Return a short text with characters in place of the entities that are not in code."""
    pieces, fence = _FENCE.split(text), ""
    for number, piece in enumerate(pieces):
        if piece.startswith("`"):
            if fence == piece:
                fence = ""
            elif not fence and piece in pieces[number + 1 :]:
                fence = piece
        elif not fence:
            pieces[number] = _ENTITY.sub(lambda found: unescape(found[0]), piece)
    return "".join(pieces)


def _shown(unit: Unit) -> str:
    """Return the beginning of a sentence as readers see it: a page that shows it as text escapes it by itself."""
    text = unit.text[: 4 * MAX_SHOWN]
    if unit.kind != "code":
        text = _without_entities(text)
    words = " ".join(_CITED.sub("", text).lstrip("> ").split())
    return words if len(words) <= MAX_SHOWN else words[: MAX_SHOWN - 1].rstrip() + "…"
