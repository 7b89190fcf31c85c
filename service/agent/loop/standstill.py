"""A model that makes no progress: it is reminded once of what is expected, then its work ends.

Both are decided by the recorded steps alone, so a job that goes on after a crash decides the same. Progress is a call
that succeeds; a message, the checks' problems and a further round begin the count again.
"""

from collections.abc import Sequence

from service.agent.loop.recorder import Clock
from service.agent.tools.results import bounded
from service.domain.jobs.decider import (
    ModelReminded,
    ModelReplied,
    RecordFinish,
    RemindModel,
    Running,
    ToolReturned,
    TranscriptStep,
)
from service.domain.model import ToolCall

MAX_EQUAL_FAILURES = 3
"""Equal calls of a tool that fail one after another, before the model is reminded."""
MAX_WORDS = 8_000
"""Characters of the model's words that end a job."""


def after_standstill(state: Running, now: Clock) -> RemindModel | RecordFinish | None:
    """Return what to record when the model's last step was no progress; None when it made some, or has a message."""
    if state.work.waiting or state.work.unanswered_calls():
        return None
    steps = _since_progress(state.work.transcript)
    last = steps[-1] if steps else None
    failures = _equal_failures(steps, state.work.transcript) if isinstance(last, ToolReturned) else []
    if isinstance(last, ModelReplied) and not last.tool_calls and not last.cut_off:
        words = last.text.strip() or "The model ended its turn without a word."
    elif len(failures) >= MAX_EQUAL_FAILURES:
        words = _words_about(failures, steps)
    else:
        return None
    if not any(isinstance(step, ModelReminded) for step in steps):
        return RemindModel("failures" if failures else "words", now())
    return RecordFinish(state.request.title, bounded(words, MAX_WORDS), now(), ending="stuck")


def _since_progress(transcript: Sequence[TranscriptStep]) -> list[TranscriptStep]:
    """Return the last steps that are replies, failed calls and reminders alone."""
    steps: list[TranscriptStep] = []
    for step in reversed(transcript):
        match step:
            case ModelReplied() | ModelReminded() | ToolReturned(is_error=True):
                steps.append(step)
            case _:
                break
    return steps[::-1]


def _equal_failures(steps: Sequence[TranscriptStep], transcript: Sequence[TranscriptStep]) -> list[ToolReturned]:
    """Return the last results that are all failures of the same call."""
    calls = {call.id: call for step in transcript if isinstance(step, ModelReplied) for call in step.tool_calls}
    found: list[ToolReturned] = []
    for step in reversed(steps):
        if isinstance(step, ToolReturned):
            if found and not _are_equal(calls.get(step.call_id), calls.get(found[0].call_id)):
                break
            found.append(step)
    return found


def _are_equal(one: ToolCall | None, other: ToolCall | None) -> bool:
    return one is not None and other is not None and (one.name, one.arguments) == (other.name, other.arguments)


def _words_about(failures: Sequence[ToolReturned], steps: Sequence[TranscriptStep]) -> str:
    said = next((step.text.strip() for step in reversed(steps) if isinstance(step, ModelReplied)), "")
    error = " ".join(bounded(failures[0].result, 500).split())
    stuck = f"The agent is stuck: its call of {failures[0].name} failed {len(failures)} times with: {error}"
    return "\n\n".join(filter(None, (said, f"{stuck} Send the job a message that says how to go on.")))
