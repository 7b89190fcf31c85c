"""The events of an answer, within the cost bounds of its site. Imported late, since an answer's modules take long."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from service.assistant.answer import answer
from service.assistant.finding.planning import Planner
from service.assistant.question import Question
from service.domain.threads.replies import AnswerEvent
from service.workers.live_text import LiveText
from service.workers.reply_context import ReplyContext
from service.workers.spending import PaidReply, Spending


def reply_events(
    question: Question, live: LiveText, context: ReplyContext, *, is_public: bool
) -> AsyncGenerator[AnswerEvent, None]:
    spending = context.spending
    if spending is not None and spending.concerns(is_public=is_public):
        return _bounded_events(question, live, context, spending, is_public=is_public)
    model, planner = context.models.for_assistant(), context.models.for_planning()
    return answer(
        question,
        index=context.index,
        model=model,
        settings=context.settings,
        planner=None if planner is None else Planner(planner),
        live=live,
    )


async def _bounded_events(
    question: Question, live: LiveText, context: ReplyContext, spending: Spending, *, is_public: bool
) -> AsyncGenerator[AnswerEvent, None]:
    paid = PaidReply(question.domain, question.reply_id, is_public, question.progress.usage.cost_usd or 0.0)
    planner = context.models.for_planning()
    async with (
        spending.budget(paid, context.models) as budget,
        aclosing(
            answer(
                question,
                index=context.index,
                model=budget.model,
                settings=context.settings,
                planner=None if planner is None else Planner(budget.within(planner)),
                live=live,
            )
        ) as events,
    ):
        async for event in events:
            yield event
