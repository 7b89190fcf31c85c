"""The next step of an editing session, found again from the messages of its conversation."""

from collections.abc import Iterable, Sequence

from service.adapters.builtin.editing.session import Session
from service.adapters.builtin.editing.steps import Step, Turn
from service.adapters.builtin.editing.tool_results import is_known
from service.ports.model import AssistantMessage, ModelMessage, ToolMessage, UserMessage


def next_step(messages: Sequence[ModelMessage]) -> tuple[Step, int]:
    """The first step that the messages do not answer, and the number of its first call in the conversation."""
    session = Session().run()
    own = _own(messages)
    step, number = (
        next(session),
        1
        + sum(
            len(message.tool_calls)
            for message in messages[: len(messages) - len(own)]
            if isinstance(message, AssistantMessage)
        ),
    )
    for turn in _turns(own):
        number += len(step.calls)
        is_own = [result.name for result in turn.results] == [tool for tool, _ in step.calls]
        if not is_own or not all(map(is_known, turn.results)):
            return Step("Another model began this conversation; the builtin agent cannot go on with it."), number
        step = session.send(turn)
    return step, number


def _own(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Return the messages without earlier exchanges: those before the last reply without calls, if a person wrote after
    it, and those before a further round, which starts again.
    """
    for at in range(len(messages) - 1, -1, -1):
        match messages[at]:
            case UserMessage(purpose="new-round"):
                return messages[at + 1 :]
            case AssistantMessage(tool_calls=()) if any(map(_instructs, messages[at + 1 :])):
                return messages[at + 1 :]
            case _:
                pass
    return messages


def _instructs(message: ModelMessage) -> bool:
    return isinstance(message, UserMessage) and message.purpose == "request"


def _turns(messages: Sequence[ModelMessage]) -> Iterable[Turn]:
    """Yield the request, then for each reply with calls its results and the messages before the next reply."""
    asked: list[str] = []
    results: list[ToolMessage] = []
    checked = merged = False
    for message in messages:
        match message:
            case UserMessage(text=text, words=words) if _instructs(message):
                asked.append(words or text)
            case UserMessage(purpose=purpose):
                checked = checked or purpose == "checks"
                merged = merged or purpose == "merge"
            case ToolMessage():
                results.append(message)
            case AssistantMessage(tool_calls=calls) if calls:
                yield Turn(tuple(results), tuple(asked), checked, merged)
                asked, results, checked, merged = [], [], False, False
            case _:
                pass
    yield Turn(tuple(results), tuple(asked), checked, merged)
