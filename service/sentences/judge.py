"""The verdict on one sentence, row or line of code.

Words alone never make a sentence unsupported: people paraphrase. What is checked is what cannot be put otherwise:

- A number, name, flag or identifier that is in no passage is missing.
- One that is there, but far from all else that the sentence speaks of, while the place that speaks of it has another
  one instead, is missing as well: a swapped default is found so.
- In code, a token that never follows the two before it, where the passages always have another one (``code_lines``).
- ``not`` where the passage's sentence with nearly the same words has none, or the other way round.
- A word that excludes the one that the passage's clause of the same has: ``before``, ``optional``, ``all``; two names
  that have changed places (``contraries``).
- A noun, or the words of a reason, that no passage has, unless anyone may put it so (``nouns``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise

from msgspec import Struct

from service.sentences.code_lines import CodeJudge
from service.sentences.contraries import is_contrary
from service.sentences.defaults import claimed_in, told_in
from service.sentences.negations import negations_in, says_contrary
from service.sentences.nouns import nouns_in, reasons_in
from service.sentences.numbers import numbers_in
from service.sentences.passage_facts import sentences_in
from service.sentences.passages import GivenPassage, Passages
from service.sentences.pieces import Piece, Prose, anchors_in, read_prose
from service.sentences.words import LITERALS, VALUES, WORD, camel_words, is_english, stem, stems_in

MAX_PLACES = 150
"""Segments that are looked at for one word or piece."""
MAX_COMPARED = 16
"""Pieces of a sentence whose surroundings are compared."""
NEAR = 60
"""Characters around a piece whose words count fully; those further away count half."""
LEAST_SCORE = 2.0
"""Below this the passages say too little of what the sentence is about to contradict it."""
FAR = 0.6
"""A number or value stands elsewhere when its surroundings have less than this part of what the best place has."""
FAR_NAME, LEAST_NAME_SCORE, LEAST_UNCITED_SCORE = 0.35, 3.0, 2.0
"""The same of a name, which needs more words around it, and fewer where it is in no passage that is cited."""
MAX_TIES = 40
"""Segments that come near the best by the sentence's words."""
MAX_HELD_AGAINST = 30
"""Segments whose clauses are held against a sentence's."""
NEAR_BEST = 0.7
ENOUGH = 2.0
"""So much around a name shows that the sentence speaks of it, however long it is."""
MANY_PASSAGES = 3
MAX_DEFAULTS = 4
KNOWN_REASON = 0.5
"""The share of a reason's words from which on it is another one than the passages have."""
NEAR_DEFAULT, FAR_DEFAULT = 0.6, 0.3
SAME_SENTENCE = 0.75
"""The share of a request's words that the ban on it has."""


class Place(Struct, frozen=True):
    at: int
    """A segment."""
    score: float
    """How much of the sentence's words it has, 0 .. 1."""


class Verdict(Struct, frozen=True):
    missing: tuple[str, ...]
    places: dict[int, Place]
    """Where each passage says most of it."""
    grounds: tuple[frozenset[int], ...]
    """For each piece that was found, the passages that have it."""
    pieces: int
    """How many could be checked."""


class Judge:
    """Holds sentences against passages; what the reader has said need not be in them."""

    def __init__(self, passages: Passages, said: Iterable[str] = ()) -> None:
        """``said``: read with the first sentence."""
        self._passages = passages
        self._said, self._said_texts, self._has_read_said = Passages(is_of_site=False), tuple(said), False
        self._code = CodeJudge(passages, self._said)
        self._cited: frozenset[int] = frozenset()
        """The passages that the sentence at hand cites."""

    def read_said(self) -> None:
        """Read what the reader has said, before a sentence is judged."""
        if not self._has_read_said:
            self._has_read_said = True
            for number, text in enumerate(self._said_texts):
                self._said.add(GivenPassage(number, text))

    def forget_said(self) -> None:
        """Free the memory of what was read of it, until it is read again."""
        self._said.clear()
        self._has_read_said = False

    def prose(
        self, text: str, *, cited: frozenset[int], known: frozenset[int], checks_capitals: bool, is_lead: bool
    ) -> tuple[Prose, Verdict]:
        """``cited``: the passages that may contradict it; all where it cites none. ``known``: those that sentences
        before it cite.
        """
        self._cited = cited
        prose = read_prose(text, checks_capitals=checks_capitals, is_lead=is_lead)
        anchors = anchors_in(prose)
        missing, found, compared = self._read_pieces(prose, anchors)
        lost, places = self._read_spans(prose, anchors, compared)
        missing, found = [*missing, *lost, *self._wrong_defaults(prose, anchors)], [*found, *places]
        missing += self._uncited(prose, anchors, cited | known) if cited else []
        if not missing and not text.startswith("|") and self._is_denied(prose, anchors):
            missing.append("not")
        is_plain = not missing and is_english([word.casefold() for word in WORD.findall(_SPANS.sub(" ", prose.words))])
        if is_plain and self._is_contrary_to(prose):
            missing.append("not")
        if is_plain and not missing and checks_capitals:
            missing += self._strange(prose)
        self._cited = frozenset()
        weights = self._weights(anchors, None)
        return prose, Verdict(
            tuple(dict.fromkeys(missing)),
            self._best(weights, self._most(anchors)),
            tuple(self._passages_of(places) for places in found if len(places) <= MAX_PLACES),
            len(prose.pieces) + len(prose.spans),
        )

    def _read_pieces(self, prose: Prose, anchors: dict[str, int]) -> tuple[list[str], list[Sequence[int]], int]:
        """Return the pieces that are missing, the places of the others, and how many were compared."""
        missing: list[str] = []
        found: list[Sequence[int]] = []
        compared = 0
        for piece in prose.pieces:
            places = self._places_of(piece)
            if not places and piece.kind != "value":
                if not self._is_allowed(piece):
                    missing.append(piece.text)
                continue
            if piece.kind != "value" and not self._is_everywhere(piece, places):
                found.append(places)
            if compared < MAX_COMPARED:
                compared += 1
                is_wrong = self._is_elsewhere if piece.kind in ("number", "value") else self._is_other_name
                if not self._is_everywhere(piece, places) and is_wrong(piece, places, anchors, prose):
                    missing.append(piece.text)
        return missing, found, compared

    def _uncited(self, prose: Prose, anchors: dict[str, int], cited: frozenset[int]) -> list[str]:
        """Return the numbers and names in code that no passage has that is cited here or before, where those passages
        speak of the same, and no other passage speaks of it where it has them.
        """
        if max(self._weights(anchors, None).values(), default=0.0) < LEAST_UNCITED_SCORE:
            return []
        passage_of = self._passages.passage_of
        own, self._cited = self._cited, frozenset()
        weights = self._weights(anchors, None)
        self._cited = own
        enough = FAR * max(weights.values(), default=0.0)
        code = [
            (span, [*self._code.span(span)[1], *self._passages.of_token(span.casefold())]) for _, span in prose.spans
        ]
        pieces = [(one.text, self._places_of(one)) for one in prose.pieces if one.kind not in ("name", "value")]
        return [
            text
            for text, places in (*code, *pieces)
            if 0 < len(places) <= MAX_PLACES
            and not any(passage_of[at] in cited or self._around(weights, at) >= enough for at in places)
        ]

    def _is_everywhere(self, piece: Piece, places: Sequence[int]) -> bool:
        """Return whether it is the name of what all passages are about: not each of them has to say it."""
        return piece.kind == "name" and len(self._passages_of(places)) >= MANY_PASSAGES

    def _read_spans(
        self, prose: Prose, anchors: dict[str, int], compared: int
    ) -> tuple[list[str], list[Sequence[int]]]:
        """Return what is missing of the code within a sentence, and the places of the rest."""
        missing: list[str] = []
        found: list[Sequence[int]] = []
        for at, span in prose.spans:
            lost, where = self._code.span(span)
            missing += lost
            if where:
                found.append(where)
            places = [*self._passages.of_token(span.casefold()), *self._passages.places_of_line(span)]
            if places and not lost and compared < MAX_COMPARED:
                compared += 1
                if self._is_other_name(Piece("code", span, at), places, anchors, prose):
                    missing.append(span)
        return missing, found

    def code(self, lines: Sequence[str], block: int, info: str) -> tuple[Verdict, int]:
        """Judge a block of code; parts of one ``block`` share the names that they define.

        Return the line of the first slip too, from 0.
        """
        lost, places = self._code.block(lines, block, info)
        grounds = self._passages_of(places)
        verdict = Verdict(
            tuple(dict.fromkeys(one.text for one in lost)),
            self._best(dict.fromkeys(places, 1.0)),
            (grounds,) if grounds else (),
            1,
        )
        return verdict, min((one.line for one in lost), default=0)

    def _passages_of(self, places: Iterable[int]) -> frozenset[int]:
        return frozenset(self._passages.passage_of[at] for at in places)

    def _best(self, weights: dict[int, float], most: float = 1.0) -> dict[int, Place]:
        """Return the best segment of each passage."""
        best: dict[int, Place] = {}
        passage_of = self._passages.passage_of
        for at in sorted(weights):
            passage, score = passage_of[at], min(1.0, weights[at] / most)
            if passage not in best or score > best[passage].score:
                best[passage] = Place(at, score)
        return best

    def _places_of(self, piece: Piece) -> Sequence[int]:
        passages = self._passages
        if piece.number is not None:
            return list(dict.fromkeys(at for at, _ in passages.number_places(piece.number)))
        folded = piece.text.casefold()
        if piece.kind == "value":
            return passages.of_value(folded) or passages.of_token(folded)
        bare = folded.removesuffix("()")
        forms = dict.fromkeys((bare, bare.removesuffix("s"), bare + "s", bare.lstrip("@$./~"), bare.rstrip("/.")))
        if found := list(chain.from_iterable(map(passages.of_token, forms))):
            return found
        if piece.kind == "flag":
            return []
        if piece.kind == "path":
            return self._places_of_parts(bare.strip("~./").split("/"))
        if "." in bare or "/" in bare:
            return self._places_of_parts(bare.replace("/", ".").split("."))
        if piece.kind == "name" or "_" not in bare:
            words = [match[0] for match in WORD.finditer(piece.text)]
            if words and all(passages.known_stem(word) for word in words):
                return passages.of_stem(stem(words[0]))
            parts = camel_words(piece.text)
            if len(parts) > 1 and all(
                passages.has_pair(one, other) for one, other in pairwise(map(str.casefold, parts))
            ):
                return passages.of_stem(stem(parts[0]))
        return []

    def _places_of_parts(self, parts: Sequence[str]) -> Sequence[int]:
        of_token = self._passages.of_token
        parts = [part for part in parts if part]
        return of_token(parts[-1]) if parts and all(of_token(part) for part in parts) else []

    def _is_allowed(self, piece: Piece) -> bool:
        """Return whether the reader has named it."""
        said = self._said
        if piece.number is not None:
            return bool(said.number_places(piece.number))
        words = [match[0] for match in WORD.finditer(piece.text)]
        return bool(said.of_token(piece.text.casefold())) or (
            piece.kind == "name" and bool(words) and all(said.known_stem(word) for word in words)
        )

    def _those_cited(self, places: Iterable[int]) -> Iterable[int]:
        """Return those of segments that a sentence may be held against."""
        cited, passage_of = self._cited, self._passages.passage_of
        return [at for at in places if passage_of[at] in cited] if cited else places

    def _is_common(self, segments: Sequence[int]) -> bool:
        return len(segments) > max(12, len(self._passages.segments) // 4)

    def _most(self, anchors: dict[str, int]) -> float:
        return max(1.0, sum(1.0 for word in anchors if not self._is_common(self._passages.of_stem(word))))

    def _weights(self, anchors: dict[str, int], at: int | None, own: frozenset[str] = frozenset()) -> dict[int, float]:
        """Return how much each segment has of the sentence's words; of those around a place of it, where one is given.

        ``own``: words that do not count, as they are the piece's.
        """
        passages = self._passages
        weights: dict[int, float] = {}
        for word, place in anchors.items():
            segments = passages.of_stem(word)
            if not segments or word in own or self._is_common(segments) or len(segments) > MAX_PLACES:
                continue  # some of many would depend on the order of the passages
            weight = 1.0 if at is None or abs(place - at) <= NEAR else 0.5
            for segment in self._those_cited(segments):
                weights[segment] = weights.get(segment, 0.0) + weight
        if at is not None:
            for segment in weights:
                above = passages.segments[segment].above
                weights[segment] += sum(0.4 for word in anchors if word in above and word not in own)
        return weights

    def _around(self, weights: dict[int, float], at: int) -> float:
        """Return the weight of a segment, with a part of its neighbours'."""
        passage_of = self._passages.passage_of
        passage = passage_of[at]
        near = 0.0
        for neighbour in (at - 2, at - 1, at + 1, at + 2):
            if 0 <= neighbour < len(passage_of) and passage_of[neighbour] == passage:
                near = max(near, (0.7 if abs(neighbour - at) == 1 else 0.4) * weights.get(neighbour, 0.0))
        return weights.get(at, 0.0) + near

    def _is_elsewhere(self, piece: Piece, places: Sequence[int], anchors: dict[str, int], prose: Prose) -> bool:
        """Return whether the passages speak of this elsewhere, and have another piece of its kind there."""
        own = frozenset(stem(part) for match in WORD.finditer(piece.text) for part in camel_words(match[0]))
        weights = self._weights(anchors, piece.at, own)
        if not weights:
            return False
        best = max(weights.values())
        if best < LEAST_SCORE or len(places) > MAX_PLACES:
            return False
        here = max((self._around(weights, at) for at in self._those_cited(places)), default=0.0)
        if here >= FAR * best:
            return False
        return any(self._has_other(piece, at, prose) for at, weight in weights.items() if weight >= 0.85 * best)

    def _is_other_name(self, piece: Piece, places: Sequence[int], anchors: dict[str, int], prose: Prose) -> bool:
        """Return whether the place that speaks of this has another name of the same form, and this one is far off."""
        form = _form_of(piece.text)
        places = list(self._those_cited(places))
        if (form is None and places) or len(places) > MAX_PLACES:
            return False
        own = frozenset(stem(part) for match in WORD.finditer(piece.text) for part in camel_words(match[0]))
        weights = self._weights(anchors, piece.at, own)
        best = max(weights.values(), default=0.0)
        if best < (LEAST_NAME_SCORE if places else LEAST_UNCITED_SCORE):
            return False
        here = max((self._around(weights, at) for at in places), default=0.0)
        if here >= min(FAR_NAME * best, ENOUGH):
            return False
        said = prose.words.casefold()
        return all(
            any(
                (form is None or _form_of(name) == form) and name.casefold() not in said
                for name in self._names_of(at, is_any=form is None)
            )
            for at in [at for at, weight in weights.items() if weight == best][:MAX_TIES]
        )

    def _names_of(self, at: int, *, is_any: bool) -> list[str]:
        """Return the names of a segment; ``is_any``: those that are set as code."""
        text = self._passages.segments[at].text
        return _CODE.findall(text) if is_any else _NAME.findall(text)

    def _has_other(self, piece: Piece, at: int, prose: Prose) -> bool:
        """Return whether the segment has another number, or the opposite value, that the sentence does not have."""
        segment = self._passages.segments[at]
        number = piece.number
        if number is None:
            folded = piece.text.casefold()
            others = LITERALS - {folded} if folded in LITERALS else frozenset((VALUES[folded],))
            words = {match[0].casefold() for match in WORD.finditer(segment.text)}
            return folded not in words and not words.isdisjoint(others)
        numbers = [one.number for one in prose.pieces if one.number is not None]
        return any(
            not any(other.agrees_with(own) for own in numbers)
            and (number.dimension == other.dimension or not (number.dimension and other.dimension))
            for other in segment.numbers
        )

    def _wrong_defaults(self, prose: Prose, anchors: dict[str, int]) -> list[str]:
        """Return the values that the sentence calls defaults, where the passages have other defaults of the same."""
        wrong: list[str] = []
        segments = self._passages.segments
        for at, value in islice(claimed_in(prose.words), MAX_DEFAULTS):
            near, wide = self._places_of_default(prose, anchors, at)
            if any(segments[segment].defaults for segment in near) and not any(
                _is_same(value, one) for segment in wide for one in segments[segment].defaults
            ):
                wrong.append(value)
        for at, value in islice(told_in(prose.words), MAX_DEFAULTS):
            owned = self._owned(prose, at)
            texts = [segments[one].text.casefold() for one in owned]
            has_other = any(_is_told(segments[one].defaults, value) for one in owned)
            if has_other and not any(value in text for text in texts):
                wrong.append(value)
        return wrong

    def _owned(self, prose: Prose, at: int) -> list[int]:
        """Return the segments below a heading or the like that has the name in code before a place of a sentence."""
        span = next((one for place, one in sorted(prose.spans, reverse=True) if place < at), None)
        words = set() if span is None else set(stems_in(span))
        segments = self._passages.segments
        return [at for at, one in enumerate(segments) if words and words.issubset(one.above)]

    def _places_of_default(self, prose: Prose, anchors: dict[str, int], at: int) -> tuple[set[int], set[int]]:
        """Return the segments that speak of the same, and those that may: those of the name in code before a value."""
        segments, of_token = self._passages.segments, self._passages.of_token
        for _, span in sorted((one for one in prose.spans if one[0] < at), reverse=True):
            places = {one for one in of_token(span.casefold()) if segments[one].defaults}
            words = set(stems_in(span))
            if not places and words:  # a heading names it
                places = {
                    one for one, segment in enumerate(segments) if words.issubset(segment.above) and segment.defaults
                }
            if places:
                return places, places
        weights = self._weights(anchors, at)
        best = max(weights.values(), default=0.0)
        if best < LEAST_SCORE:
            return set(), set()
        near = {segment for segment, weight in weights.items() if weight >= NEAR_DEFAULT * best}
        passage_of = self._passages.passage_of
        near |= {
            one
            for segment in near
            for one in (segment - 1, segment + 1)
            if 0 <= one < len(segments) and passage_of[one] == passage_of[segment]
        }
        cited, self._cited = self._cited, frozenset()
        wide = {one for one, weight in self._weights(anchors, at).items() if weight >= FAR_DEFAULT * best}
        self._cited = cited
        return near, near | wide

    def _is_contrary_to(self, prose: Prose) -> bool:
        """Return whether a word or two names of the sentence contradict the passages."""
        weights: dict[int, int] = {}
        for one in dict.fromkeys(stems_in(prose.words)):
            places = self._passages.of_stem(one)
            if len(places) <= MAX_PLACES:
                for at in self._those_cited(places):
                    weights[at] = weights.get(at, 0) + 1
        segments = self._passages.segments
        best = sorted(weights, key=lambda at: (-weights[at], segments[at].text))[:MAX_HELD_AGAINST]
        return is_contrary(prose.words, [(segments[at].text, segments[at].above) for at in best])

    def _strange(self, prose: Prose) -> list[str]:
        """Return the nouns that neither a passage nor the reader has, and the words of reasons that are mostly new."""
        words = _SPANS.sub(" ", prose.words)
        strange = [word for word in nouns_in(words) if not self._knows(word)]
        for reason in reasons_in(words):
            new = [word for word in reason if not self._knows(word)]
            strange += new if len(new) > KNOWN_REASON * len(reason) else ()
        return strange

    def _knows(self, word: str) -> bool:
        return self._passages.known_stem(word) or self._said.known_stem(word)

    def _is_denied(self, prose: Prose, anchors: dict[str, int]) -> bool:
        """Return whether the sentences that have nearly the same words as a clause all have the contrary meaning."""
        return any(
            self._is_contrary(clause, {word: at for word, at in anchors.items() if start <= at < start + len(clause)})
            for start, clause in _clauses_of(prose.words)
            if WORD.search(_SPANS.sub(" ", clause))  # code denies nothing
        )

    def _is_contrary(self, words: str, anchors: dict[str, int]) -> bool:
        weights = self._weights(anchors, None)
        best = max(weights.values(), default=0.0)
        near = [at for at, weight in weights.items() if weight >= NEAR_BEST * best]
        if best <= 0.0 or len(near) > MAX_TIES:
            return False
        denied = False
        for sentence in dict.fromkeys(one for at in near for one in sentences_in(self._passages.segments[at].text)):
            if _allows_forbidden(words, anchors, sentence):
                return True
            match = says_contrary(words, anchors, sentence)
            if match is False:
                return False
            denied = denied or match is True
        return denied


def _clauses_of(words: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a sentence between semicolons and colons, and where each begins."""
    start = 0
    for match in _CLAUSE.finditer(words):
        yield start, words[start : match.start()]
        start = match.end()
    yield start, words[start:]


def _allows_forbidden(words: str, anchors: dict[str, int], sentence: str) -> bool:
    """Return whether a request does what the passage's sentence says not to do, and has no further words than it."""
    asked = _REQUEST.match(words)
    if asked is None or negations_in(words):
        return False
    refused = {stem(match["verb"]) for match in _REFUSED.finditer(sentence)}
    shared = anchors.keys() & set(stems_in(sentence))
    return stem(asked["verb"]) in refused and len(shared) >= max(2, SAME_SENTENCE * len(anchors))


def _is_told(defaults: Iterable[str], value: str) -> bool:
    """Return whether there are defaults of the value's kind, and it is none of them."""
    is_literal = value in LITERALS
    kinds = [one for one in defaults if (one in LITERALS) == is_literal]
    return bool(kinds) and not any(_is_same(value, one) for one in kinds)


def _is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    first, second = next(iter(numbers_in(one)), None), next(iter(numbers_in(other)), None)
    return first is not None and second is not None and bool(first.keys & second.keys)


_CLAUSE = re.compile(r"[;:](?=\s)")
_REQUEST = re.compile(
    r"\W*(?:(?:please|always|you\s+(?:should|must|can|may))\s+|do\s+)*(?P<verb>[a-z]{2,20})\b", re.IGNORECASE
)
_REFUSED = re.compile(
    r"\b(?:(?:do|must|should|can)\s*(?:not|n't)|cannot|never)\s+(?:ever\s+|be\s+)?(?P<verb>[a-z]{2,20})\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"--?[A-Za-z][\w-]{1,60}|[A-Za-z_][\w.]{1,60}")
_SPANS = re.compile(r"`[^`\n]{0,500}`")
_CODE = re.compile(r"`([\w.-]{2,60})`")
_FORMS = (
    re.compile(r"--[a-z][\w-]*"),
    re.compile(r"[A-Z][A-Z0-9]{0,60}_[A-Z0-9_]+"),
    re.compile(r"[a-z][a-z0-9]{0,60}_[a-z0-9_]+"),
    re.compile(r"[A-Z][a-z0-9]{1,60}[A-Z]\w*"),
    re.compile(r"[a-z]{1,60}[A-Z]\w*"),
)
"""Ways to write a name of several words."""


def _form_of(name: str) -> int | None:
    bare = name.strip(".").removesuffix("()")
    return next((at for at, form in enumerate(_FORMS) if form.fullmatch(bare)), None)
