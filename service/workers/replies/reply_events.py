"""The events of an answer, within the cost bounds of its site. Imported late, since an answer's modules take long."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from service.assistant.answer import answer
from service.assistant.finding.planning import Planner
from service.assistant.question import Question
from service.domain.threads.replies import AnswerEvent
from service.workers.replies.live_text import LiveText
from service.workers.replies.reply_context import ReplyContext
from service.workers.spending import PaidReply, Spending


def reply_events(
    question: Question, live: LiveText, context: ReplyContext, *, is_public: bool
) -> AsyncGenerator[AnswerEvent, None]:
    if context.spending is not None:
        return _paid_events(question, live, context, context.spending, is_public=is_public)
    return _free_events(question, live, context)


async def _paid_events(
    question: Question, live: LiveText, context: ReplyContext, spending: Spending, *, is_public: bool
) -> AsyncGenerator[AnswerEvent, None]:
    own_bound, organization_id = await spending.bound_of(question.domain)
    if spending.concerns(is_public=is_public, own_bound=own_bound):
        cost = question.progress.usage.cost_usd or 0.0
        paid = PaidReply(question.domain, question.reply_id, is_public, cost, own_bound, organization_id)
        found = _bounded_events(question, live, context, spending, paid)
    else:
        found = _free_events(question, live, context)
    async with aclosing(found) as events:
        async for event in events:
            yield event


def _free_events(question: Question, live: LiveText, context: ReplyContext) -> AsyncGenerator[AnswerEvent, None]:
    model, planner = context.models.for_assistant(), context.models.for_planning()
    return answer(
        question,
        index=context.index,
        model=model,
        settings=context.settings,
        planner=None if planner is None else Planner(planner),
        stand_in=context.models.builtin_for_assistant(),
        live=live,
        seats=context.seats,
    )


async def _bounded_events(
    question: Question, live: LiveText, context: ReplyContext, spending: Spending, paid: PaidReply
) -> AsyncGenerator[AnswerEvent, None]:
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
                stand_in=context.models.builtin_for_assistant(),
                live=live,
                seats=context.seats,
            )
        ) as events,
    ):
        async for event in events:
            yield event
