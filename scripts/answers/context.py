"""Whether the first prompt of an answer holds the words that answer the question, and what the prompt costs."""

import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import product
from statistics import mean, median
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scripts.answers.before import passages_before
from scripts.answers.questions import KINDS, AskedQuestion, missing_words, normalized
from scripts.answers.tokens import tokens_of
from scripts.bench_search import at_least
from service.assistant.answer import answer
from service.assistant.finding.planning import Planner
from service.assistant.question import AnswerSettings, Exchange, Question
from service.domain.errors import Unavailable
from service.domain.model import Usage
from service.domain.threads.replies import ReplyBroken, SearchFinished
from service.markup.languages.detection import language_of
from service.ports.model import ModelChunk, ModelEnd, ModelRequest, ModelText, SystemMessage
from service.ports.search_index import SearchIndex

GOALS = {12_000: 0.85, 6_000: 0.75, 3_000: 0.65}
"""Tokens → the share of questions whose answering words are to be in the first prompt."""
BEFORE = "before"


class Recorder:
    """Keeps the first request for an answer and ends its reply. Asked for a plan, it gives the one that it was made
    with, or fails.
    """

    name = "scripted/recorder"

    def __init__(self, plan: Sequence[str] = ()) -> None:
        self.request: ModelRequest | None = None
        self._plan = plan

    async def window_tokens(self) -> int | None:
        return None

    async def reply(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        if request.output_schema is None:
            self.request = self.request or request
            yield ModelText("Recorded.")
        elif self._plan:
            question, *parts = self._plan
            yield ModelText(json.dumps({"question": question, "parts": parts, "pages": []}))
        else:
            raise Unavailable("This model has no plan.")
        yield ModelEnd("stop", (), Usage(), self.name)


async def smallest_tokens(index: SearchIndex, question: AskedQuestion) -> int:
    """Return the tokens of the smallest set of whole sections that holds all answering words; 0 where there is none."""
    choices = [(words,) if isinstance(words, str) else words for words in question.words]
    best = {0: 0}
    for path in question.pages:
        page = await index.read_page(question.corpus, path)
        for section in page.sections if page is not None else ():
            text = normalized("\n".join([section.text, *section.heading_path]))
            held = sum(1 << at for at, words in enumerate(choices) if any(normalized(one) in text for one in words))
            cost = tokens_of(section.text) if held else 0
            for known, tokens in list(best.items()) if held else ():
                best[known | held] = min(best.get(known | held, tokens + cost), tokens + cost)
    return best.get((1 << len(choices)) - 1, 0)


class Outcome(Struct, frozen=True):
    question: AskedQuestion
    way: str
    lacks: tuple[str, ...]
    tokens: int
    characters: int
    search_ms: float
    smallest: int
    """As ``smallest_tokens`` has it."""

    @property
    def holds(self) -> bool:
        return not self.lacks


def asked_as(question: AskedQuestion) -> Question:
    """Return the question as the assistant takes it."""
    earlier = tuple(Exchange(asked, answered) for asked, answered in question.before)
    return Question(question.corpus, f"msg_{question.id}", question.q, earlier=earlier)


def perfect_plan(question: AskedQuestion) -> Sequence[str]:
    """Return what a perfect planner writes: the question, understandable by itself, and a search for each part."""
    if len(question.plan) < 2:
        return question.plan
    is_whole = question.language == "en" and not question.before
    return (question.q if is_whole else " ".join(question.plan), *question.plan)


async def first_prompt(
    index: SearchIndex, question: AskedQuestion, settings: AnswerSettings, *, with_plan: bool
) -> tuple[ModelRequest, float]:
    """Return the first request for an answer, and the milliseconds until the search step was sent."""
    recorder = Recorder(perfect_plan(question))
    planner = Planner(recorder) if with_plan else None
    began, search_ms = time.perf_counter(), 0.0
    async for event in answer(asked_as(question), index=index, model=recorder, planner=planner, settings=settings):
        match event:
            case SearchFinished():
                search_ms = search_ms or 1000 * (time.perf_counter() - began)
            case ReplyBroken(message=message):
                raise SystemExit(f"no answer to {question.q!r}: {message}")
            case _:
                pass
    if recorder.request is None:
        raise SystemExit(f"the model was not asked: {question.q!r}")
    return recorder.request, search_ms


async def measured(
    index: SearchIndex, questions: Sequence[AskedQuestion], budgets: Sequence[int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Outcome]]:
    """Return rows and goals for the report, and every outcome."""
    outcomes: list[Outcome] = []
    for question in questions:
        smallest = await smallest_tokens(index, question)
        began = time.perf_counter()
        texts = await passages_before(index, question.corpus, question.q, [asked for asked, _ in question.before])
        outcomes.append(_outcome(question, BEFORE, texts, 1000 * (time.perf_counter() - began), smallest))
        for budget, with_plan in product(budgets, (False, True)):
            request, search_ms = await first_prompt(index, question, settings_for(budget), with_plan=with_plan)
            texts = [one.text for one in request.messages if not isinstance(one, SystemMessage)]
            way = f"{budget} planned" if with_plan else str(budget)
            outcomes.append(_outcome(question, way, texts, search_ms, smallest))
    ways = list(dict.fromkeys(one.way for one in outcomes))
    rows = [row for name, belongs in _groups(questions) for row in _rows(name, ways, outcomes, belongs)]
    rows += _costs(ways, outcomes)
    rows.append({"questions": "words that no page of the index has", "number": await _out_of_reach(index, questions)})
    mistaken = [one for one in questions if language_of(one.q) != one.language]
    rows.append({"questions": "language not recognized", "number": len(mistaken)})
    goals = [
        at_least(
            f"answering words in the first prompt at {budget} tokens", GOALS[budget], _share(outcomes, str(budget))
        )
        for budget in budgets
        if budget in GOALS
    ]
    return rows, goals, outcomes


def settings_for(budget: int) -> AnswerSettings:
    if "max_context_tokens" not in AnswerSettings.__struct_fields__:
        return AnswerSettings()
    return replace(AnswerSettings(), max_context_tokens=budget)


def print_misses(outcomes: Sequence[Outcome]) -> None:
    """Print the questions for tuning whose words were not in the prompt, with the words that it lacked."""
    missed: dict[str, list[Outcome]] = {}
    for one in outcomes:
        if one.lacks and not one.question.held:
            missed.setdefault(one.question.id, []).append(one)
    for name, ways in missed.items():
        print(
            f"{name} at {', '.join(one.way for one in ways)}: {ways[0].question.q!r} lacks {ways[-1].lacks}",
            file=sys.stderr,
        )


async def _out_of_reach(index: SearchIndex, questions: Sequence[AskedQuestion]) -> int:
    """Return the number of questions whose pages, as they are indexed, lack the answering words."""
    number = 0
    for question in questions:
        pages = [await index.read_page(question.corpus, path) for path in question.pages]
        lacks = missing_words(question, normalized("\n".join(page.content for page in pages if page is not None)))
        if lacks:
            number += 1
            print(f"{question.id}: no page of the index has {lacks}", file=sys.stderr)
    return number


def _outcome(question: AskedQuestion, way: str, texts: Sequence[str], search_ms: float, smallest: int) -> Outcome:
    whole = "\n".join(texts)
    lacks = tuple(missing_words(question, normalized(whole)))
    return Outcome(question, way, lacks, tokens_of(whole), len(whole), search_ms, smallest)


_Belongs = Callable[[AskedQuestion], bool]


def _groups(questions: Sequence[AskedQuestion]) -> Iterable[tuple[str, _Belongs]]:
    yield "all", lambda _: True
    yield "for tuning", lambda one: not one.held
    yield "held back", lambda one: one.held
    for kind in KINDS:
        yield kind, lambda one, kind=kind: one.kind == kind
    yield "slip in spelling", lambda one: one.slip
    yield "another language", lambda one: one.language != "en"
    for corpus in dict.fromkeys(one.corpus for one in questions):
        yield corpus, lambda one, corpus=corpus: one.corpus == corpus


def _rows(name: str, ways: Sequence[str], outcomes: Sequence[Outcome], belongs: _Belongs) -> Iterable[dict[str, Any]]:
    members = [one for one in outcomes if belongs(one.question)]
    if not members:
        return
    row: dict[str, Any] = {"questions": name, "number": sum(one.way == ways[0] for one in members)}
    for way in ways:
        row[way] = _share(members, way)
    yield row


def _costs(ways: Sequence[str], outcomes: Sequence[Outcome]) -> Iterable[dict[str, Any]]:
    by_way = {way: [one for one in outcomes if one.way == way] for way in ways}
    figures: dict[str, Callable[[Sequence[Outcome]], float]] = {
        "prompt tokens, mean": lambda members: round(mean(one.tokens for one in members)),
        "prompt tokens, most": lambda members: max(one.tokens for one in members),
        "prompt tokens, median": lambda members: round(median(one.tokens for one in members)),
        "prompt, times the smallest sections with the answer, median": lambda members: round(
            median(one.tokens / one.smallest for one in members if one.smallest), 1
        ),
        "prompt characters, mean": lambda members: round(mean(one.characters for one in members)),
        "search step, p50 ms": lambda members: round(median(one.search_ms for one in members), 1),
        "search step, p95 ms": lambda members: round(
            sorted(one.search_ms for one in members)[len(members) * 95 // 100], 1
        ),
    }
    for name, figure in figures.items():
        yield {"questions": name, **{way: figure(members) for way, members in by_way.items()}}


def _share(outcomes: Sequence[Outcome], way: str) -> float:
    held = [one.holds for one in outcomes if one.way == way]
    return round(sum(held) / len(held), 3) if held else 0.0
