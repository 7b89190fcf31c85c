"""The searches before an answer: one by the words of the question, and one by a plan where those are not enough.

The first needs no model and waits for none. A plan that is needed for sure (``planning.needs_plan``) is asked for
beside it; one that the first search turns out to need, because it found little or the documentation is in another
language, behind it. What is found by a plan takes the place of what was found before; both are on record.
"""

from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from service.assistant.finding.finder import Finder
from service.assistant.finding.planning import PLANNED, Plan, PlanCall, Planner, needs_plan
from service.assistant.finding.query import Queries, is_small_talk
from service.assistant.question import Question
from service.domain.access.spending import CostBoundReached
from service.domain.model import Usage
from service.domain.threads.recorded_reply import CallEnd
from service.domain.threads.replies import CallEnded, ModelFailure, SearchFinished, SearchStarted
from service.markup.languages.detection import NAMES, language_of, page_language
from service.ports.model import Passage

WEAK_COVERAGE = 0.5
"""The part of the question's words that the best page has at least; with less, the first search is weak."""
MAX_SAMPLE = 200
"""Characters of a passage that its language is read from."""


class FirstSearch:
    """The passages for the first prompt; ``run`` finds them."""

    def __init__(self, question: Question, finder: Finder, planner: Planner | None, *, mark: str) -> None:
        self._question, self._finder, self._planner, self._mark = question, finder, planner, mark
        self.passages: list[Passage] = []
        self.usage = Usage()
        """The tokens of the call for a plan."""

    async def run(
        self, asked: Queries, *, whole_page: str = ""
    ) -> AsyncGenerator[SearchStarted | SearchFinished | CallEnded | ModelFailure, None]:
        """Search, and search again by a plan; ``asked`` and ``whole_page`` are for the first search."""
        queries, pages = asked.texts, asked.pages
        question, planner = self._question, None if whole_page else self._planner
        call = planner.begin(question, mark=self._mark) if planner is not None and needs_plan(question) else None
        try:
            call_id = self._finder.next_call()
            yield SearchStarted(call_id, queries[0])
            self.passages, finished = await self._finder.search(
                call_id, queries, pages=pages, whole_page=whole_page, alone=asked.alone
            )
            yield replace(finished, planned=tuple(queries[1:]), expected=tuple(pages))
            if call is None and planner is not None:
                call = self._call_if_weak(planner)
            if call is None:
                return
            planned = await call.result()
            self.usage = planned.usage
            if planned.usage != Usage():
                yield CallEnded("", CallEnd(PLANNED, call.model, planned.usage))
            if planned.error is not None and planned.error.code != CostBoundReached.code:
                yield ModelFailure(call.model, planned.error.code, str(planned.error))
        finally:
            if call is not None:
                await call.close()
        plan = planned.plan
        if plan is not None and not self._is_searched(plan, queries):
            rest = tuple(dict.fromkeys(each for each in (*plan.parts, queries[0]) if each != plan.question))
            call_id = self._finder.next_call()
            yield SearchStarted(call_id, plan.question)
            found, finished = await self._finder.search(call_id, (plan.question, *rest), pages=plan.pages)
            self.passages = found or self.passages
            yield replace(finished, planned_by=plan.model, planned=rest, expected=plan.pages)

    def _call_if_weak(self, planner: Planner) -> PlanCall | None:
        """Begin the call for a plan where the first search has found little, or in another language."""
        question = self._question
        if is_small_talk(question.text):
            return None
        samples = " ".join(passage.text[:MAX_SAMPLE] for passage in self.passages)
        site = (page_language(samples) or language_of(samples)) if samples else ""
        if site and self._finder.coverage >= WEAK_COVERAGE and language_of(question.text, expected=(site,)) == site:
            return None
        titles = tuple(dict.fromkeys(passage.title for passage in self.passages))
        return planner.begin(question, mark=self._mark, site_language=NAMES.get(site, ""), page_titles=titles)

    @staticmethod
    def _is_searched(plan: Plan, queries: Sequence[str]) -> bool:
        """Return whether a plan adds nothing to the first search."""
        return not plan.parts and not plan.pages and plan.question.casefold() == queries[0].casefold()
