"""Test questions against a site's index: what each should find, and how well the search does.

A file has one question a line, as JSON: ``{"query": …, "relevant": [page, …]}``, where a page is named by its path in
the repository or on the site, or ``{"query": …, "facts": [text, …]}``, where what is found must say so. Of each
question's first ten pages (sections, for facts): recall at 5, the reciprocal rank of the first right one, nDCG at 10.

A line that is no JSON is a plain question, and so is one without pages and facts: it is checked for being answered by
the builtin assistant.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeAlias

import msgspec
from msgspec import Struct

from service.domain.errors import Invalid
from service.domain.texts.unicode_forms import is_too_large
from service.domain.threads.threads import MAX_QUESTION_CHARACTERS
from service.ports.search_index import SearchIndex, Section
from service.views.evaluation import EvaluationView, MissedView

LOOKED_AT, RECALLED = 10, 5
MAX_WANTED = 100
"""Pages or facts of one question."""
READ_SECTIONS = 40
"""Sections of one search: several may be of one page."""


class Question(Struct, frozen=True):
    query: str
    relevant: tuple[str, ...] = ()
    """Pages."""
    facts: tuple[str, ...] = ()
    """Texts that the passages found must contain, in any case and spacing."""
    source: str = ""
    """``…:path`` of the page that the question was taken from: it is left out, or it would answer itself."""

    @property
    def is_plain(self) -> bool:
        """Return whether it wants an answer, whatever page that is on."""
        return not self.relevant and not self.facts


IsAnswered: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""Says of a domain and a question whether the site answers it."""


class Missed(Struct, frozen=True):
    query: str
    wanted: tuple[str, ...]
    """Pages or facts; none of a plain question, which is not answered."""
    found: tuple[str, ...]
    """The first pages instead."""


class Evaluation(Struct, frozen=True):
    domain: str
    commit: str
    questions: int
    plain: int
    """How many of the questions are plain; the measures of the search are those of the others, None without any."""
    answered: int
    """How many of the plain ones are answered."""
    recall_at_5: float | None
    """The share of what each question wants that is among the first five, on average."""
    hit_at_5: float | None
    """The share of questions with something right among the first five."""
    mrr: float | None
    ndcg_at_10: float | None
    misses: tuple[Missed, ...]
    """Questions with nothing right among the first five, and plain ones without an answer."""

    @property
    def view(self) -> EvaluationView:
        return EvaluationView(
            self.domain,
            self.commit,
            self.questions,
            self.plain,
            self.answered,
            self.recall_at_5,
            self.hit_at_5,
            self.mrr,
            self.ndcg_at_10,
            tuple(MissedView(one.query, one.wanted, one.found) for one in self.misses),
        )


async def evaluate_site(
    index: SearchIndex,
    domain: str,
    questions: Sequence[Question],
    on_progress: Callable[[int, int], None],
    is_answered: IsAnswered,
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Evaluation:
    """Return the measures of a site's search; its thresholds are left to the caller.

    Each question is asked in a ``turn``. Raises as ``SearchIndex``.
    """
    scores: list[Score] = []
    misses: list[Missed] = []
    commit, answered = "", 0
    for number, question in enumerate(questions, start=1):
        async with turn():
            wanted = await _wanted(index, domain, question)
            result = await index.search(domain, question.query, limit=READ_SECTIONS)
            has_answer = question.is_plain and await is_answered(domain, question.query)
        commit = result.commit
        on_progress(number, len(questions))
        if has_answer:
            answered += 1
            continue
        found = await asyncio.to_thread(_found, question, result.sections, wanted)
        score = scored(found, len(wanted))
        if not question.is_plain:
            scores.append(score)
        if not score.hit:
            pages = tuple(dict.fromkeys(section.path for section in result.sections))[:RECALLED]
            misses.append(Missed(question.query, question.relevant or question.facts, pages))
    return Evaluation(
        domain,
        commit,
        len(questions),
        len(questions) - len(scores),
        answered,
        _mean([score.recall for score in scores]),
        _mean([float(score.hit) for score in scores]),
        _mean([score.reciprocal_rank for score in scores]),
        _mean([score.ndcg for score in scores]),
        tuple(misses),
    )


class Score(Struct, frozen=True):
    hit: bool
    recall: float
    reciprocal_rank: float
    ndcg: float


def scored(found: Sequence[frozenset[int]], wanted: int) -> Score:
    """Return the score of one search. ``found``: the wanted things at each place, best first, numbered from 0."""
    seen: set[int] = set()
    gain, first, recalled = 0.0, 0, 0
    for place, things in enumerate(found[:LOOKED_AT], start=1):
        if things - seen:
            gain += 1 / math.log2(place + 1)
            first = first or place
        seen |= things
        if place == min(RECALLED, len(found)):
            recalled = len(seen)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(LOOKED_AT, wanted) + 1))
    return Score(
        0 < first <= RECALLED,
        recalled / min(wanted, RECALLED) if wanted else 0.0,
        1 / first if first else 0.0,
        min(1.0, gain / ideal) if ideal else 0.0,
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


async def _wanted(index: SearchIndex, domain: str, question: Question) -> list[str]:
    """Return the paths of the relevant pages, as the index names them; or the facts."""
    if question.facts:
        return [_plain(fact) for fact in question.facts]
    wanted = []
    for name in dict.fromkeys(question.relevant):
        page = await index.read_page(domain, name)
        wanted.append(page.path if page is not None else name)
    return list(dict.fromkeys(wanted))


def _found(question: Question, sections: Sequence[Section], wanted: Sequence[str]) -> list[frozenset[int]]:
    if question.facts:
        texts = [_plain(f"{section.title} {section.heading} {section.text}") for section in sections]
        return [frozenset(number for number, fact in enumerate(wanted) if fact in text) for text in texts]
    source = question.source.rpartition(":")[2].partition("#")[0]
    pages = [path for path in dict.fromkeys(section.path for section in sections) if path != source or path in wanted]
    places = {path: number for number, path in enumerate(wanted)}
    return [frozenset({places[path]} if path in places else ()) for path in pages]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def parse_questions(text: str, name: str, *, most: int) -> list[Question]:
    """Return the questions of a text. Raise Invalid, which names the text and the line."""
    questions = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            is_json = line.lstrip().startswith("{")
            question = msgspec.json.decode(line, type=Question) if is_json else Question(line.strip())
        except msgspec.DecodeError as error:
            raise Invalid(f"{name}, line {number}: {error}") from error
        if problem := problem_of(question):
            raise Invalid(f"{name}, line {number}: {problem}.")
        questions.append(question)
        if len(questions) > most:
            raise Invalid(f"{name} has more than {most} questions; give 1 to {most}.")
    if not questions:
        raise Invalid(f"{name} has 0 questions; give 1 to {most}.")
    return questions


def problem_of(question: Question) -> str:
    """Return why a question cannot be asked; empty when it can."""
    if not question.query.strip() or is_too_large(question.query, MAX_QUESTION_CHARACTERS):
        return "the query is blank, or too long"
    if (question.relevant and question.facts) or not all(map(_plain, question.relevant + question.facts)):
        return "give relevant pages or facts, not both, and none of them blank"
    if len(question.relevant) + len(question.facts) > MAX_WANTED:
        return f"give at most {MAX_WANTED} pages or facts"
    return ""
