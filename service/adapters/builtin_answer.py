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

Companions come along: code and lists behind "… as follows:", the sentence that leads to a code block, the rest of a
list of steps.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import snowballstemmer
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

from service.domain.errors import Invalid
from service.domain.model import Usage
from service.ports.model import Grounding, ModelChunk, ModelEnd, ModelRequest, ModelText, Passage

NAME = "builtin/extractive"

MIN_COVERAGE = 0.42
"""Share of the question's weight that the best passage must have; below it the documentation does not say."""

MAX_PASSAGES = 3
MAX_PROSE_CHARACTERS = 900
MAX_CODE_LINES = 30
MAX_CODES = 2
MAX_ITEMS = 12
HEADING_WEIGHT = 0.6
NEIGHBOUR_WEIGHT = 0.35
WORDS_A_DELTA = 3

Kind = Literal["sentence", "item", "code", "row"]

_STOP_WORD_LIST = """
a about after all also am an and any are as at be because been before being best between both but by can cannot could
did do does doing don down each else ever every few for from further get gets getting give go got had happen happens
has have having here how however i if in into is isn it its just know let like ll look make makes many may me mean
means might more most much must my need needs no nor not now of off on once one only or other our out over own please
possible re s same see should show so some something such t tell than that the their them then there these they thing
things this those through to too try trying under until up use used uses using very want was way ways we were what
when where which while who why will with within without work works would you your der das ein eine einen einer und
oder ist sind wie was kann ich man mit für auf von zu den dem im wo warum es nicht
le la les un une des et ou est sont que qui pour dans avec sur je du de puis pourquoi quel quelle ce
el los las una unos y o es son cómo como qué para en con por del se puedo cuál
hello hey hi thank thanks hallo danke bonjour merci hola gracias olá obrigado
os as um uma é são que para em com por do da no na como posso qual
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")  # noqa: RUF001
_COMPOUND = re.compile(r"\w+(?:[-./:]\w+)+|\w*_\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(\[`*_]*[^\W_a-z])|(?<=[。！？])")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl)|\b[A-Z])\.$", re.IGNORECASE)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_RELATIVE_LINK = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)|\[([^\]]+)\]\[[^\]]*\]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_BARE_NUMBER = re.compile(r"(?<!\\)\[(?=[\d\s,;–-]+\])")  # noqa: RUF001
_HOW = re.compile(
    r"\bhow\b|\bsteps?\b|\bexample|\bcommand|\bcode\b|\bwie\b|\bcomment\b|\bcómo\b|\bcomo\b", re.IGNORECASE
)

_WORDS_OF = {
    language: frozenset(words.split())
    for language, words in {
        "de": "der die das ein eine und oder ist wie kann ich mit für auf nicht warum wo im",
        "fr": "le les une des et est comment que qui pour dans avec sur je pourquoi quel où du",
        "es": "el los las una y es cómo qué para en con por del puedo cuál dónde",
        "pt": "os um uma é são para em com do da não como posso qual onde",
        "en": "the a is how do i what to in of for can and my does with why where",
    }.items()
}
_SNOWBALL = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "pt": "portuguese"}
_OPENING = {
    "en": "These passages of the documentation match your question best.",
    "de": "Diese Stellen der Dokumentation passen am besten zu deiner Frage.",
    "fr": "Voici les passages de la documentation qui répondent le mieux à votre question.",
    "es": "Estos son los pasajes de la documentación que mejor responden a tu pregunta.",
    "pt": "Estes são os trechos da documentação que melhor respondem à sua pergunta.",
}
_NOTHING = {
    "en": "The documentation does not say, or says it in other words: no passage matches your question well enough.",
    "de": "Die Dokumentation sagt dazu nichts, oder mit anderen Worten: Keine Stelle passt gut genug zu deiner Frage.",
    "fr": "La documentation ne le dit pas, ou le dit autrement : aucun passage ne correspond assez à votre question.",
    "es": "La documentación no lo dice, o lo dice con otras palabras: ningún pasaje se ajusta bastante a tu pregunta.",
    "pt": "A documentação não diz, ou diz com outras palavras: nenhum trecho corresponde bem à sua pergunta.",
}
_NO_QUESTION = "I answer questions about this documentation by quoting it. What would you like to know?"

_MARKDOWN = MarkdownIt("commonmark").enable("table")


class BuiltinAnswer:
    """The ``Model`` port over the request's own passages."""

    @property
    def name(self) -> str:
        return NAME

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        if request.grounding is None:
            raise Invalid("The builtin model only quotes passages of documentation.", code="model_refused_request")
        for words in _deltas(extract(request.grounding)):
            yield ModelText(words)
            await asyncio.sleep(0)  # one delta at a time to whoever listens
        yield ModelEnd("stop", (), Usage(cost_usd=0.0), NAME)


class _Piece(Struct):
    """A sentence, list item, table row or code block of a passage."""

    kind: Kind
    text: str
    """Markdown, as it is quoted."""
    block: int
    """Pieces of one paragraph, list or table share it."""
    lead: str = ""
    """Of a row: the table's head. Of a code block: the language."""
    stems: tuple[str, ...] = ()
    above: frozenset[str] = frozenset()
    """Stems of the headings above."""
    score: float = 0.0


class _Quote(Struct):
    passage: Passage
    pieces: list[_Piece]
    chosen: set[int]
    coverage: float
    score: float


def extract(grounding: Grounding) -> str:
    """The answer as Markdown with ``[n]`` citations, or the marker ``[0]`` and the sentence that there is none."""
    language = _language(grounding.question)
    asked = _question_stems(grounding.question, language)
    if not asked:
        return _NO_QUESTION
    quotes = _quotes(grounding, asked, language)
    if not quotes or quotes[0].coverage < MIN_COVERAGE:
        return f"[0] {_NOTHING[language]}"
    return "\n\n".join([_OPENING[language], *(_rendered(quote) for quote in quotes)])


def _deltas(text: str) -> Iterator[str]:
    words = re.findall(r"\S+\s*", text)
    for at in range(0, len(words), WORDS_A_DELTA):
        yield "".join(words[at : at + WORDS_A_DELTA])


def _quotes(grounding: Grounding, asked: Sequence[str], language: str) -> list[_Quote]:
    taken_apart = [(passage, _pieces(passage, language)) for passage in grounding.passages]
    weights = _weights(asked, [piece for _, pieces in taken_apart for piece in pieces])
    total = sum(weights.values())
    wants_steps = _HOW.search(grounding.question) is not None
    quotes: list[_Quote] = []
    for passage, pieces in taken_apart:
        if not pieces:
            continue
        above = _stems(f"{passage.title} {passage.heading}", language)
        for at, piece in enumerate(pieces):
            piece.score = _score(piece, asked, weights) * (0.6 + 0.4 * passage.score) * (1.1 if at == 0 else 1.0)
        covered = {*above, *(stem for piece in pieces for stem in piece.stems)} & weights.keys()
        coverage = sum(weights[stem] for stem in covered) / total
        best = sorted((piece.score for piece in pieces), reverse=True)
        score = (best[0] + 0.3 * sum(best[1:3])) * (0.4 + 0.6 * coverage)
        quotes.append(_Quote(passage, pieces, set(), coverage, score))
    quotes.sort(key=lambda quote: -quote.score)
    if not quotes or quotes[0].score <= 0:
        return []
    kept = [quote for quote in quotes[:MAX_PASSAGES] if quote.score >= 0.6 * quotes[0].score]
    best_piece = max(piece.score for quote in kept for piece in quote.pieces)
    left = MAX_PROSE_CHARACTERS
    for rank, quote in enumerate(kept):
        left -= _choose(quote, best_piece, limit=4 if rank == 0 else 2, characters=left, wants_steps=wants_steps)
    return [quote for quote in kept if quote.chosen]


def _weights(asked: Sequence[str], pieces: Sequence[_Piece]) -> dict[str, float]:
    """How much each word of the question tells: one that stands in every piece little, a rare or missing one much."""
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
    if length < 4:
        return score * 0.5
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
    quote.chosen.difference_update(codes[MAX_CODES:])
    return used


def _companions(pieces: Sequence[_Piece], at: int, *, wants_steps: bool) -> set[int]:
    piece = pieces[at]
    found: set[int] = set()
    if piece.kind == "sentence" and piece.text.rstrip("*_ ").endswith(":"):
        found.update(_following_block(pieces, at))
    if piece.kind == "code" and at and pieces[at - 1].kind in ("sentence", "item"):
        found.add(at - 1)
    if piece.kind == "item":
        block = [other for other, one in enumerate(pieces) if one.block == piece.block]
        if wants_steps and piece.text[:1].isdigit() and len(block) <= MAX_ITEMS:
            found.update(block)
        if block[0] and pieces[block[0] - 1].text.rstrip("*_ ").endswith(":"):
            found.add(block[0] - 1)
    if wants_steps and piece.kind == "sentence":
        after = at + 1
        while after < len(pieces) and pieces[after].block == piece.block:
            after += 1
        if after < len(pieces) and pieces[after].kind == "code":
            found.add(after)
            if pieces[after - 1].text.rstrip("*_ ").endswith(":"):
                found.add(after - 1)
    return found


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
    return f"**{_plain(name)}** [{passage.number}]\n\n{quoted}"


def _code_lines(piece: _Piece) -> list[str]:
    lines = piece.text.rstrip("\n").split("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", piece.text)), default=0))
    cut = lines[:MAX_CODE_LINES] + (["…"] if len(lines) > MAX_CODE_LINES else [])
    return [f"{fence}{piece.lead}", *cut, fence]


def _pieces(passage: Passage, language: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    above = _stems(f"{passage.title} {passage.heading}", language)
    for kind, text, block, lead in _blocks(_MARKDOWN.parse(passage.text)):
        if kind == "heading":
            above = (*above, *_stems(text, language))
            continue
        for part in _sentences(text) if kind == "sentence" else [text]:
            stems = _stems(part, language)
            if stems or kind == "code":
                pieces.append(_Piece(kind, part, block, lead, stems, frozenset(above)))
    return pieces


def _blocks(tokens: Sequence[Token]) -> Iterator[tuple[Kind | Literal["heading"], str, int, str]]:
    """Kind, Markdown, block number and lead of everything in the passage, in reading order."""
    block = 0
    lists: list[tuple[int, Token]] = []
    marker = ""
    head: list[str] = []
    cells: list[str] = []
    for at, token in enumerate(tokens):
        match token.type:
            case "heading_open":
                yield "heading", _plain(tokens[at + 1].content), block, ""
            case "bullet_list_open" | "ordered_list_open":
                block += 0 if lists else 1
                lists.append((block, token))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "list_item_open":
                number = f"{token.info}." if token.info else "-"
                marker = "  " * (len(lists) - 1) + f"{number} "
            case "paragraph_open":
                text = _plain(tokens[at + 1].content)
                if not text:
                    continue
                if not lists:
                    block += 1
                    yield "sentence", text, block, ""
                else:
                    indent = marker or "  " * len(lists)
                    yield "item", indent + text, lists[0][0], ""
                    marker = ""
            case "fence" | "code_block":
                language = re.match(r"[\w+#-]*", token.info.strip())
                yield (
                    "code",
                    token.content,
                    lists[0][0] if lists else (block := block + 1),
                    language[0] if language else "",
                )
            case "html_block":
                text = _plain(token.content)
                if text:
                    block += 1
                    yield "sentence", text, block, ""
            case "table_open":
                block += 1
            case "tr_open":
                cells = []
            case "th_open" | "td_open":
                cells.append(_plain(tokens[at + 1].content))
            case "thead_close":
                head = cells
            case "tr_close" if tokens[at - 1].type == "td_close":
                yield "row", _row(cells), block, f"{_row(head)}\n{_row(['---'] * len(head))}"
            case _:
                pass


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sentences(text: str) -> Iterator[str]:
    sentence = ""
    for part in _SENTENCE_END.split(text):
        sentence = f"{sentence} {part}" if sentence else part
        if not _ABBREVIATION.search(sentence):
            yield sentence
            sentence = ""
    if sentence:
        yield sentence


def _plain(text: str) -> str:
    """Inline Markdown that reads the same elsewhere: no images, tags or relative links, and no number that would pass
    for a citation of ours."""
    text = _TAG.sub("", _IMAGE.sub("", text))
    text = _RELATIVE_LINK.sub(lambda link: link[1] or link[2] or "", text)
    return " ".join(_BARE_NUMBER.sub(r"\\[", text).split())


def _question_stems(question: str, language: str) -> tuple[str, ...]:
    """In order, each once."""
    return tuple(dict.fromkeys(_stems(question[:4_000], language)))[:40]


def _stems(text: str, language: str) -> tuple[str, ...]:
    stem = _stemmer(language)
    words = [word for word in _WORD.findall(text.casefold()) if word not in _STOP_WORDS]
    return (*(stem(word) for word in words), *_COMPOUND.findall(text.casefold()))


@lru_cache
def _stemmer(language: str) -> "_Stemmer":
    return _Stemmer(language)


class _Stemmer:
    def __init__(self, language: str) -> None:
        self._snowball = snowballstemmer.stemmer(_SNOWBALL[language])
        self._known: dict[str, str] = {}

    def __call__(self, word: str) -> str:
        stem = self._known.get(word)
        if stem is None:
            if len(self._known) > 50_000:
                self._known.clear()
            stem = self._known[word] = str(self._snowball.stemWord(word))
        return stem


def _language(question: str) -> str:
    """By its commonest words; English when in doubt, for so is most documentation."""
    words = set(_WORD.findall(question.casefold()))
    return max(_WORDS_OF, key=lambda language: (len(words & _WORDS_OF[language]), language == "en"))
