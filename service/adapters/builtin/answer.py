"""The embedded model of the assistant: no key, no network, no guess. It quotes the documentation.

It reads the passages that the request carries as values (``Grounding``), never the prompt, so nothing that a page says
can steer it. Each passage is taken apart into sentences, list items, table rows and code blocks; those that share the
question's rarest words are quoted in reading order under a link to where they stand. What it cannot do it says: when
the passages cover too little of the question, it answers that the documentation does not say.

How a piece is scored, in the order of what it is worth on real questions:

- words of the question in it, by stem (Snowball), each weighted by how rare it is among the pieces;
- the same words in the headings above it, at part of their weight;
- neighbouring words of the question that are neighbours in the piece;
- the rank of its passage, and standing first in it.

Companions come along: the rest of a short paragraph or list, code and lists behind "… as follows:", the sentence that
leads to a code block.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from service.adapters.builtin.continuing import rest_of
from service.adapters.builtin.question_words import STOP_WORDS, stemmer_of, stems_of
from service.adapters.builtin.quotable import Block, Kind, blocks, plain, sentences
from service.adapters.builtin.replies import replies_in
from service.domain.errors import Invalid
from service.domain.model import Usage
from service.markup.fences import fenced
from service.markup.languages import language_of
from service.ports.model import FREE, Grounding, ModelChunk, ModelEnd, ModelRequest, ModelText, Passage, Price

NAME = "builtin/extractive"

MIN_CERTAINTY = 3.6
"""Limit for ``_certainty``; below it, the documentation does not answer the question. Measured on labelled questions
about four real sites, on the half that it was not chosen by: 95 of 100 questions that their site answers are above it,
and 14 of 100 that were asked about another site, many of them so general ("Install packages") that they fit this one.
"""
COMPARED = 5
"""Passages, the best, that are asked whether they agree."""
MANY_WORDS = 8

MAX_PASSAGES = 3
MAX_PROSE_CHARACTERS = 900
MAX_CODE_LINES = 60
"""Code is quoted whole, or not at all: half of it would be copied and run."""
MAX_CODES = 2
CUT = "\n…"
"""How a passage ends that was longer than there was room for."""
MAX_ITEMS = 12
MAX_PARAGRAPH_CHARACTERS = 300
"""Limit for a paragraph that is quoted whole for one of its sentences, in characters."""
MAX_LIST_CHARACTERS = 500
"""Limit for a list that is quoted whole for one of its items, in characters."""
MIN_PART = 0.6
"""Part of the best passage's score; passages below it are not quoted."""
OWN_SUBJECT = 0.6
"""Limit for ``in_headings``; above it, the passage is about the question as a whole."""
MAX_BEGINNING_CHARACTERS = 500
HEADING_WEIGHT = 0.6
NEIGHBOUR_WEIGHT = 0.35
WORDS_A_DELTA = 3
MAX_QUESTION_READ = 4_000

_NAME_INSIDE = re.compile(r"[^\s.!?:;\"'(`]\s+(?P<name>[A-Z][A-Za-z]{2,})\b")
_HOW = re.compile(
    r"\bhow\b|\bsteps?\b|\bexample|\bcommand|\bcode\b|\bwie\b|\bcomment\b|\bcómo\b|\bcomo\b|\bcome\b|\bhoe\b"
    r"|方法|手順|どう|如何|怎么|步骤",
    re.IGNORECASE,
)


class BuiltinAnswer:
    """The ``Model`` port over the request's own passages."""

    @property
    def name(self) -> str:
        return NAME

    async def window_tokens(self) -> int | None:
        return None

    async def price(self) -> Price | None:
        return FREE

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        if request.grounding is None:
            raise Invalid("The builtin model only quotes passages of documentation.", code="model_refused_request")
        text = await asyncio.to_thread(extract, request.grounding)  # 50 passages take a tenth of a second
        if request.continuation is not None:
            text = rest_of(text, request.continuation.text)
        for words in _deltas(text):
            yield ModelText(words)
            await asyncio.sleep(0)  # one delta at a time to each listener
        yield ModelEnd("stop", (), Usage(cost_usd=0.0), NAME)


class _Piece(Struct):
    """A sentence, list item, table row or code block of a passage."""

    kind: Kind
    text: str
    """Markdown, as it is quoted."""
    block: int
    """Pieces of one paragraph, list or table share it."""
    lead: str = ""
    """A row has the table's head here, a code block its language."""
    is_link: bool = False
    """It only leads elsewhere."""
    stems: tuple[str, ...] = ()
    above: frozenset[str] = frozenset()
    """Stems of the headings above."""
    score: float = 0.0


class _Apart:
    """A passage and what it is made of."""

    def __init__(self, passage: Passage, language: str) -> None:
        self.passage = passage
        self.pieces = _pieces(passage, language)
        self.above = stems_of(f"{passage.title} {passage.heading}", language)
        """Stems of its headings, in order."""
        self.has = frozenset(self.above).union(*(piece.stems for piece in self.pieces))


class _Quote(Struct):
    passage: Passage
    pieces: list[_Piece]
    chosen: set[int]
    in_headings: float
    """Return the share of the question's weight that is in the headings."""
    score: float


def extract(grounding: Grounding) -> str:
    """The answer as Markdown with ``[n]`` citations, or the marker ``[0]`` and the sentence that there is none."""
    site_language = language_of(" ".join(passage.text[:600] for passage in grounding.passages))
    language = grounding.language or language_of(grounding.question, expected=(site_language,))
    replies = replies_in(language)
    asked = _question_stems(grounding.question, language)
    if not asked:
        return replies.greeting
    is_another = bool(grounding.passages) and language != site_language
    in_another = f" {replies.documentation_in(site_language)}" if is_another else ""
    taken_apart = [_Apart(passage, language) for passage in grounding.passages]
    quotes = _quotes(grounding.question, asked, taken_apart)
    if not quotes or _certainty(grounding.question, asked, language, taken_apart) < MIN_CERTAINTY:
        return f"[0] {replies.nothing}{in_another}"
    return "\n\n".join([f"{replies.opening}{in_another}", *(_rendered(quote) for quote in quotes)])


def _deltas(text: str) -> Iterator[str]:
    words = re.findall(r"\s*\S+\s*", text)
    for at in range(0, len(words), WORDS_A_DELTA):
        yield "".join(words[at : at + WORDS_A_DELTA])


def _quotes(question: str, asked: Sequence[str], taken_apart: Sequence["_Apart"]) -> list[_Quote]:
    weights = _weights(asked, [piece for apart in taken_apart for piece in apart.pieces])
    wants_steps = _HOW.search(question) is not None
    quotes: list[_Quote] = []
    for apart in taken_apart:
        passage, pieces, above = apart.passage, apart.pieces, apart.above
        if not pieces:
            continue
        for at, piece in enumerate(pieces):
            piece.score = _score(piece, asked, weights) * (1.1 if at == 0 else 1.0)
        in_headings = sum(weights[stem] for stem in weights.keys() & {*above}) / sum(weights.values())
        evidence = _evidence(asked, above, pieces) + in_headings / 2
        best = sorted((piece.score for piece in pieces), reverse=True)
        score = (best[0] + 0.3 * sum(best[1:3])) * (0.3 + 0.7 * passage.score) * evidence * (1 + in_headings)
        quotes.append(_Quote(passage, pieces, set(), in_headings, score))
    quotes.sort(key=lambda quote: -quote.score)
    if not quotes or quotes[0].score <= 0:
        return []
    kept = [quote for quote in quotes[:MAX_PASSAGES] if quote.score >= MIN_PART * quotes[0].score]
    best_piece = max(piece.score for quote in kept for piece in quote.pieces)
    left = MAX_PROSE_CHARACTERS
    for rank, quote in enumerate(kept):
        left -= _choose(quote, best_piece, limit=4 if rank == 0 else 2, characters=left, wants_steps=wants_steps)
        if rank == 0 and quote.in_headings >= OWN_SUBJECT:
            quote.chosen |= _beginning(quote.pieces)
    return [quote for quote in kept if quote.chosen]


def _evidence(asked: Sequence[str], above: Sequence[str], pieces: Sequence[_Piece]) -> float:
    """Return how much the passage is about the question, beside others: 0 .. 3.

    The share of the question's words that it has, the share of its neighbouring words that are neighbours here, and how
    many words those are: half of ten words is more than half of two.
    """
    there = {*above, *(stem for piece in pieces for stem in piece.stems)}
    found = sum(1 for stem in asked if stem in there)
    pairs = list(pairwise(asked))
    neighbours = set(pairwise(above)).union(*(pairwise(piece.stems) for piece in pieces))
    together = sum(1 for pair in pairs if pair in neighbours) / len(pairs) if pairs else found
    return found / len(asked) + together + min(found, MANY_WORDS) / MANY_WORDS


def _certainty(question: str, asked: Sequence[str], language: str, taken_apart: Sequence[_Apart]) -> float:
    """Return how sure it is that the documentation has the question's subject at all: about 0 .. 10.

    Words of a question are on any site. What sets a site that answers it apart: they are in its headings, next to each
    other, in one place of a passage, and not in one passage alone. Counts matter as well as shares, since half of ten
    words is more than half of two. A name that no passage has speaks against it.
    """
    compared = [apart for apart in taken_apart[:COMPARED] if apart.pieces]
    if not compared:
        return 0.0
    words = set(asked)
    pairs = set(pairwise(asked))
    in_headings = max(len(words.intersection(apart.above)) for apart in compared)
    neighbours = max(len(pairs & _neighbours(apart)) for apart in compared)
    near = max(_in_one_place(words, apart.pieces) for apart in compared)
    weights = [max(apart.passage.score, 0.01) for apart in compared]
    agreeing = sum(weight * len(words & apart.has) for weight, apart in zip(weights, compared, strict=True))
    return (
        2 * min(neighbours, 4) / 4
        + 2 * min(in_headings, 4) / 4
        + in_headings / len(words)
        + min(near, 6) / 6
        + near / len(words)
        + (near == len(words))
        + 2 * agreeing / sum(weights) / len(words)
        - min(_strange_names(question, language, compared), 2) / 4
    )


def _neighbours(apart: _Apart) -> set[tuple[str, str]]:
    return set(pairwise(apart.above)).union(*(pairwise(piece.stems) for piece in apart.pieces))


def _in_one_place(words: set[str], pieces: Sequence[_Piece]) -> int:
    """Return how many of the words are in three successive pieces."""
    found = [words.intersection(piece.stems) for piece in pieces]
    return max(len(set().union(*found[at : at + 3])) for at in range(len(found)))


def _strange_names(question: str, language: str, compared: Sequence[_Apart]) -> int:
    """Words with a capital inside of a sentence that no passage has: another product's name. German has too many."""
    if language == "de":
        return 0
    names = {match["name"].casefold() for match in _NAME_INSIDE.finditer(question[:MAX_QUESTION_READ])}
    stem = stemmer_of(language)
    return sum(1 for name in names - STOP_WORDS if not any(stem(name) in apart.has for apart in compared))


def _beginning(pieces: Sequence[_Piece]) -> set[int]:
    """Return the first pieces of a passage whose heading asks the question: they are its answer."""
    chosen: set[int] = set()
    characters = 0
    for at, piece in enumerate(pieces):
        characters += len(piece.text)
        if at and characters > MAX_BEGINNING_CHARACTERS:
            break
        chosen.add(at)
    return chosen


def _weights(asked: Sequence[str], pieces: Sequence[_Piece]) -> dict[str, float]:
    """Return the weight of each word of the question: low for one that is in every piece, high for a rare or missing
    one.
    """
    count = len(pieces)
    weights: dict[str, float] = {}
    for stem in asked:
        with_it = sum(1 for piece in pieces if stem in piece.stems or stem in piece.above)
        weights[stem] = math.log(1 + (count + 1) / (with_it + 1))
    return weights


def _score(piece: _Piece, asked: Sequence[str], weights: dict[str, float]) -> float:
    there = set(piece.stems)
    score = 0.0
    for stem, weight in weights.items():
        if stem in there:
            score += weight
        elif stem in piece.above:
            score += HEADING_WEIGHT * weight
    neighbours = set(pairwise(piece.stems))
    for pair in pairwise(asked):
        if pair in neighbours:
            score += NEIGHBOUR_WEIGHT * (weights[pair[0]] + weights[pair[1]])
    length = len(piece.stems)
    if piece.kind == "code":
        return score * 0.8
    if length < 4 or piece.is_link:
        return score * 0.4
    return score / (1 + max(0, length - 35) / 70)


def _choose(quote: _Quote, best: float, *, limit: int, characters: int, wants_steps: bool) -> int:
    """Mark the pieces to quote; how many characters of prose they have."""
    pieces = quote.pieces
    order = sorted(range(len(pieces)), key=lambda at: (-pieces[at].score, at))
    used = 0
    for at in order[: limit * 2]:
        if len(quote.chosen) >= limit or pieces[at].score < 0.55 * best:
            break
        if used and used + len(pieces[at].text) > characters:
            continue
        quote.chosen.add(at)
        used += len(pieces[at].text) if pieces[at].kind != "code" else 0
    for at in sorted(quote.chosen):
        quote.chosen.update(_companions(pieces, at, wants_steps=wants_steps))
    codes = [at for at in sorted(quote.chosen) if pieces[at].kind == "code"]
    short = [at for at in codes if pieces[at].text.count("\n") <= MAX_CODE_LINES]
    quote.chosen.difference_update({*codes}.difference(short[:MAX_CODES]))
    return used


def _companions(pieces: Sequence[_Piece], at: int, *, wants_steps: bool) -> set[int]:
    """Pieces that belong to the one ``at``."""
    block = [other for other, one in enumerate(pieces) if one.block == pieces[at].block]
    match pieces[at].kind:
        case "sentence":
            return _with_sentence(pieces, at, block, wants_steps=wants_steps)
        case "item":
            return _with_item(pieces, at, block, wants_steps=wants_steps)
        case "code" if at and pieces[at - 1].kind in ("sentence", "item"):
            return {at - 1}
        case _:
            return set()


def _with_sentence(pieces: Sequence[_Piece], at: int, block: Sequence[int], *, wants_steps: bool) -> set[int]:
    """Return its paragraph if that is short, what it leads to, and the code below it."""
    found = set(block) if _characters(pieces, block) <= MAX_PARAGRAPH_CHARACTERS else set()
    if _leads(pieces[at]):
        found.update(_following_block(pieces, at))
    after = block[-1] + 1
    if wants_steps and after < len(pieces) and pieces[after].kind == "code":
        found.update({after - 1, after} if _leads(pieces[after - 1]) else {after})
    return found


def _with_item(pieces: Sequence[_Piece], at: int, block: Sequence[int], *, wants_steps: bool) -> set[int]:
    """Return its list if that is short or is the steps that are asked for, and the sentence that leads to it."""
    is_steps = wants_steps and pieces[at].text[:1].isdigit()
    is_whole = len(block) <= MAX_ITEMS and (is_steps or _characters(pieces, block) <= MAX_LIST_CHARACTERS)
    found = set(block) if is_whole else set()
    before = block[0] - 1
    if before >= 0 and _leads(pieces[before]):
        found.add(before)
    return found


def _characters(pieces: Sequence[_Piece], block: Sequence[int]) -> int:
    return sum(len(pieces[at].text) for at in block)


def _leads(piece: _Piece) -> bool:
    """To what stands below it."""
    return piece.text.rstrip("*_ ").endswith(":")


def _following_block(pieces: Sequence[_Piece], at: int) -> list[int]:
    after = [other for other in range(at + 1, len(pieces)) if pieces[other].block != pieces[at].block]
    if not after or pieces[after[0]].kind == "sentence":
        return []
    return [other for other in after if pieces[other].block == pieces[after[0]].block][:MAX_ITEMS]


def _rendered(quote: _Quote) -> str:
    """A heading with the citation, and the chosen pieces as a block quote in reading order."""
    passage = quote.passage
    heading = passage.heading if passage.heading.startswith(passage.title) else f"{passage.title} › {passage.heading}"  # noqa: RUF001
    name = " ".join((heading if passage.heading else passage.title).split()).replace("*", "")
    lines: list[str] = []
    before = -1
    for at in sorted(quote.chosen):
        piece = quote.pieces[at]
        same_block = before >= 0 and quote.pieces[before].block == piece.block
        gap = before >= 0 and at > before + 1
        if piece.kind == "sentence" and same_block:
            lines[-1] += f"{' …' if gap else ''} {piece.text}"
        elif piece.kind in ("item", "row") and same_block:
            lines += piece.text.split("\n")
        else:
            lines += [""] if lines else []
            if piece.kind == "code":
                lines += _code_lines(piece)
            elif piece.kind == "row":
                lines += [*piece.lead.split("\n"), piece.text]
            else:
                lines += piece.text.split("\n")
        before = at
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"**{plain(name)}** [{passage.number}]\n\n{quoted}"


def _code_lines(piece: _Piece) -> list[str]:
    return fenced(piece.text.rstrip("\n"), piece.lead).split("\n")


def _pieces(passage: Passage, language: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    above = stems_of(f"{passage.title} {passage.heading}", language)
    for block in blocks(passage.text):
        if block.kind == "heading":
            above = (*above, *stems_of(block.text, language))
            continue
        for text in sentences(block.text) if block.kind == "sentence" else [block.text]:
            if block.kind == "code" and text.rstrip("\n").endswith(CUT) and passage.text.endswith(CUT):
                continue  # the passage was cut inside of it
            stems = stems_of(_with_head(block, text), language)
            if stems or block.kind == "code":
                piece = _Piece(block.kind, text, block.number, block.lead, block.is_link, stems, frozenset(above))
                pieces.append(piece)
    return pieces


def _with_head(block: Block, text: str) -> str:
    """A row says what it does under the head of its table."""
    head, _, _ = block.lead.partition("\n")
    return f"{head} {text}" if block.kind == "row" else text


def _question_stems(question: str, language: str) -> tuple[str, ...]:
    """In order, each once."""
    return tuple(dict.fromkeys(stems_of(question[:MAX_QUESTION_READ], language)))[:40]
