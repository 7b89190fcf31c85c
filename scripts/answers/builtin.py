"""Whether the builtin model's replies are useful, by a rule that needs no judge.

A reply is useful when all the words that answer the question are in it and the reply does not say that the
documentation lacks an answer. ``ASKED`` of the questions are asked, the same in each run.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from scripts.answers.context import asked_as
from scripts.answers.questions import KINDS, AskedQuestion, missing_words, normalized
from scripts.bench_search import at_least
from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.domain.threads.replies import ReplyBroken, ReplyDone, TextDelta
from service.ports.model import Model
from service.ports.search_index import SearchIndex

ASKED = 60
BUILTIN = BuiltinAnswer()
USEFUL = 0.4
"""Share of useful replies to reach. While the model quoted single passages of five pages it was 0.05."""

Rows = list[dict[str, Any]]


async def measured(
    index: SearchIndex, questions: Sequence[AskedQuestion], *, model: Model = BUILTIN
) -> tuple[Rows, Rows]:
    """Return rows and goals for the report."""
    asked = sorted(questions, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:ASKED]
    replies = {one.id: await _reply(index, one, model) for one in asked}
    rows: Rows = []

    def add(name: str, belongs: Callable[[AskedQuestion], bool]) -> None:
        members = [one for one in asked if belongs(one)]
        if members:
            rows.append({"questions": f"builtin: {name}", **_shares(members, replies)})

    add("all", lambda _: True)
    add("for tuning", lambda one: not one.held)
    add("held back", lambda one: one.held)
    for kind in KINDS:
        add(kind, lambda one, kind=kind: one.kind == kind)
    return rows, [at_least(f"builtin replies that are useful, of {len(asked)}", USEFUL, rows[0]["useful"])]


async def _reply(index: SearchIndex, question: AskedQuestion, model: Model) -> tuple[str, str]:
    """Return the text of the model's reply, and its resolution."""
    text = resolution = ""
    async for event in answer(asked_as(question), index=index, model=model):
        match event:
            case TextDelta(text=delta):
                text += delta
            case ReplyDone() as done:
                resolution = done.resolution
            case ReplyBroken(message=message):
                raise SystemExit(f"no answer to {question.q!r}: {message}")
            case _:
                pass
    return text, resolution


def _shares(members: Sequence[AskedQuestion], replies: dict[str, tuple[str, str]]) -> dict[str, Any]:
    answered = [replies[one.id][1] == "answered" for one in members]
    with_words = [not missing_words(one, normalized(replies[one.id][0])) for one in members]
    useful = sum(says and words for says, words in zip(answered, with_words, strict=True))
    return {
        "number": len(members),
        "useful": round(useful / len(members), 3),
        "with_words": round(sum(with_words) / len(members), 3),
        "answered": round(sum(answered) / len(members), 3),
    }
