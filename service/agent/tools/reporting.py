"""The tools that report to people: the plan, a question, and the end of the work."""

from typing import assert_never

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import Ask, Finish, Plan, Reporting
from service.agent.tools.results import Outcome
from service.domain.jobs.decider import Handover, Todo
from service.markup.streaming.model_text import plain


def report(asked: Reporting) -> Outcome:
    """Note the plan, the question or the end. Raise Refused for one without words."""
    match asked:
        case Plan(todos=todos):
            numbered = tuple(
                Todo(str(number), item.content, item.status, item.priority) for number, item in enumerate(todos, 1)
            )
            done = sum(todo.status == "completed" for todo in numbered)
            return Outcome(f"Noted: {done} of {len(numbered)} done.", todos=numbered)
        case Ask(question=question):
            if not question.strip():
                raise Refused("The question is blank.", "Ask in words.")
            return Outcome("Your work ends here until the answer comes.", asked=plain(question))
        case Finish(title=title, summary=summary, change=change, answer=answer):
            if not title.strip() or not summary.strip():
                raise Refused("The title or the summary is blank.", "Give both in words.")
            title, summary, change, answer = plain(title), plain(summary), plain(change), plain(answer)
            said = Handover(title, summary)
            if change.strip() or answer.strip():
                said = Handover(change.strip() or title, answer.strip() or summary, title, summary)
            return Outcome("The work is finished; now it is checked.", finished=said)
        case _:
            assert_never(asked)
