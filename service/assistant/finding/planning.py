"""Plan before search: a short call of a model that says what a question means, where its words alone do not.

"How can I delete it afterwards?" finds nothing about the Secret of the question before, and a question in German finds
little in English documentation. The call runs beside the first search, which needs no model, and has a deadline of its
own; where it comes too late, fails, or is no plan, the answer is given from what was found without one.

A plan is words that a model wrote after it had read a conversation, so it is as little to be trusted as that: it names
what to search for and which pages to expect, within bounds, and nothing else. Expected pages are looked up for the
reader, as any page.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from service.assistant.context import planning_messages
from service.assistant.finding.query import is_small_talk
from service.assistant.prompts import PROMPTS
from service.assistant.question import Question
from service.domain.errors import ServiceError
from service.domain.model import Usage
from service.ports.model import Model, ModelEnd, ModelMessage, ModelRequest, ModelText, OutputSchema, Tool, open_reply
from service.retrieval.material.sides import sides_of

DEADLINE_SECONDS = 1.5
"""From the beginning of the call; the reader waits for what is left of it once the first search is done."""
MAX_OUTPUT_TOKENS = 600
MAX_REPLY_CHARACTERS = 6_000
MAX_QUESTION_CHARACTERS, MAX_PART_CHARACTERS, MAX_PAGE_CHARACTERS = 400, 200, 160
MAX_PARTS, MAX_PAGES = 4, 5
MAX_BRACES = 20
"""Places in a reply at which a document may begin."""
PLANNED = "plan"
"""The reason on record for the end of a call for a plan."""


def schema() -> OutputSchema:
    """Return the form of a plan."""
    return OutputSchema(form().name, form().parameters)


@cache
def form() -> Tool:
    """Return the form of a plan as if it were a tool's; ``prompts/tools.md`` describes its fields."""
    lines = {"type": "array", "items": {"type": "string"}}
    fields = {"question": {"type": "string"}, "parts": lines, "pages": lines}
    plain = {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
    return PROMPTS.tool("search_plan", plain)


class Plan(Struct, frozen=True):
    """The searches that a model proposes; bounded and without line ends."""

    question: str
    """Understandable by itself, in the language of the documentation."""
    parts: tuple[str, ...] = ()
    """A search for each thing that the question compares."""
    pages: tuple[str, ...] = ()
    """Titles of pages that are expected to answer; the site may not have them."""
    model: str = ""
    """The model that made it."""


class Planned(Struct, frozen=True):
    """The outcome of a call for a plan."""

    plan: Plan | None
    usage: Usage
    """As far as the provider has told it, also for a call that was too late."""
    error: ServiceError | None = None
    """The reason why the model gave no plan."""


def needs_plan(question: Question) -> bool:
    """Return whether the words of a question are not enough to search by, as far as it shows before the search."""
    return not is_small_talk(question.text) and (bool(question.earlier) or bool(sides_of(question.text)))


class Planner(Struct, frozen=True):
    """The model that plans. ``sleep`` waits for the deadline."""

    model: Model
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def begin(
        self, question: Question, *, mark: str, site_language: str = "", page_titles: Sequence[str] = ()
    ) -> "PlanCall":
        """Begin the call; ``site_language`` and ``page_titles`` are of the documentation and of pages that were found,
        where they are known.
        """
        messages = planning_messages(
            question.text,
            earlier=question.earlier,
            context=question.context,
            current_path=question.current_path,
            mark=mark,
            site_language=site_language,
            page_titles=page_titles,
        )
        return PlanCall(self.model, messages, self.sleep)


class PlanCall:
    """A call for a plan, under way from when this is made until ``result`` or ``close``."""

    def __init__(
        self, model: Model, messages: tuple[ModelMessage, ...], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self.model = model.name
        self._model = model
        self._usage = Usage()
        request = ModelRequest(
            messages, max_output_tokens=MAX_OUTPUT_TOKENS, output_schema=schema(), on_usage=self._use
        )
        self._call = asyncio.create_task(self._plan(request), name="plan")
        self._deadline = asyncio.ensure_future(sleep(DEADLINE_SECONDS))

    async def result(self) -> Planned:
        """Return the plan, or that there is none in time; the call has ended then."""
        error: ServiceError | None = None
        plan: Plan | None = None
        try:
            await asyncio.wait({self._call, self._deadline}, return_when=asyncio.FIRST_COMPLETED)
            if self._call.done():
                plan = self._call.result()
        except ServiceError as failed:
            error = failed
        finally:
            await self.close()
        return Planned(plan, self._usage, error)

    async def close(self) -> None:
        """End the call, at the provider too, if it is still under way."""
        for task in (self._deadline, self._call):
            task.cancel()
        await asyncio.wait({self._call, self._deadline})

    async def _plan(self, request: ModelRequest) -> Plan | None:
        texts: list[str] = []
        characters = 0
        async with open_reply(self._model, request) as chunks:
            async for chunk in chunks:
                match chunk:
                    case ModelText(text=text):
                        texts.append(text)
                        characters += len(text)
                        if characters > MAX_REPLY_CHARACTERS:
                            return None
                    case ModelEnd(usage=usage, model=model):
                        self._use(usage)
                        return plan_in("".join(texts), model=model)
        return None

    def _use(self, usage: Usage) -> None:
        self._usage += usage


class _Written(Struct):
    """The document as the model wrote it."""

    question: str
    parts: list[str] = []
    pages: list[str] = []


def plan_in(text: str, *, model: str = "") -> Plan | None:
    """Return the plan that a model's reply holds, prose and fences around it or not; None when it holds none.

    A document that goes beyond the bounds is no plan.
    """
    written = _document_in(text[:MAX_REPLY_CHARACTERS])
    if written is None:
        return None
    question = _line(written.question)
    parts, pages = ([line for each in some if (line := _line(each))] for some in (written.parts, written.pages))
    fits = (
        0 < len(question) <= MAX_QUESTION_CHARACTERS
        and len(parts) <= MAX_PARTS
        and len(pages) <= MAX_PAGES
        and all(len(part) <= MAX_PART_CHARACTERS for part in parts)
        and all(len(page) <= MAX_PAGE_CHARACTERS for page in pages)
    )
    return Plan(question, tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(pages)), model) if fits else None


def _document_in(text: str) -> _Written | None:
    decoder = json.JSONDecoder()
    at = -1
    for _ in range(MAX_BRACES):
        at = text.find("{", at + 1)
        if at < 0:
            return None
        try:
            return msgspec.convert(decoder.raw_decode(text, at)[0], _Written)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue
    return None


def _line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
