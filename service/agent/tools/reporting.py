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
            said = [(words, item) for item in todos if (words := plain(item.content))]
            numbered = tuple(
                Todo(str(number), words, item.status, item.priority) for number, (words, item) in enumerate(said, 1)
            )
            done = sum(todo.status == "completed" for todo in numbered)
            return Outcome(f"Noted: {done} of {len(numbered)} done.", todos=numbered)
        case Ask(question=question):
            if not (question := plain(question)):
                raise Refused("The question is blank.", "Ask in words.")
            return Outcome("Your work ends here until the answer comes.", asked=question)
        case Finish(title=title, summary=summary, change=change, answer=answer):
            title, summary, change, answer = plain(title), plain(summary), plain(change), plain(answer)
            if not title or not summary:
                raise Refused("The title or the summary is blank.", "Give both in words.")
            handover = Handover(title, summary)
            if change or answer:
                handover = Handover(change or title, answer or summary, title, summary)
            return Outcome("The work is finished; now it is checked.", finished=handover)
        case _:
            assert_never(asked)
