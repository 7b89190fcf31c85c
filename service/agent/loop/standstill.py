"""A model that makes no progress: it is reminded once of what is expected, then its work ends.

No progress is a reply in words, a call that goes on failing, replies that repeat themselves, and replies that end at
their greatest length without a call.

Both are decided by the recorded steps alone, so a job that goes on after a crash decides the same. A reply in words is
no progress until a call succeeds. A call that failed fails again until a file changes, whatever was read in between. A
message, the checks' problems, a merge and a further round begin the count again.
"""

from collections.abc import Sequence

from service.agent.loop.recorder import Clock
from service.agent.tools.arguments import WRITING
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

MAX_EQUAL_FAILURES = 3
"""Calls of a tool with the same arguments that fail, before the model is reminded."""
MAX_CUT_OFF = 3
"""Replies in a row that end at their greatest length without a call, after which a job ends: each is paid whole."""
MAX_REPEATS = 3
"""Times that the last replies repeat, before the model is reminded, and again before its work ends."""
LONGEST_REPEATED = 4
"""Replies of what is repeated."""
MAX_WORDS = 8_000
"""Characters of the model's words that end a job."""


def after_standstill(state: Running, now: Clock) -> RemindModel | RecordFinish | None:
    """Return what to record when the model's last step was no progress; None when it made some, or has a message."""
    transcript = state.work.transcript
    if state.work.waiting or state.work.unanswered_calls() or not transcript:
        return None
    if _cut_off_replies(transcript) >= MAX_CUT_OFF:
        return RecordFinish(state.request.title, _CUT_OFF, now(), ending="stuck")
    failures, reminders = _since_progress(transcript)
    match transcript[-1]:
        case ModelReplied(text=text, tool_calls=(), cut_off=False):
            reminder = RemindModel("words", now())
            words = text.strip() or "The model ended its turn without a word."
        case ToolReturned(is_error=True) if len(failures) >= MAX_EQUAL_FAILURES:
            reminder = RemindModel("failures", now())
            words = _words_about(failures, transcript)
        case _ if _repeats(transcript):
            reminder = RemindModel("repeats", now())
            words = _REPEATED
        case _:
            return None
    if reminder.reason not in reminders:
        return reminder
    return RecordFinish(state.request.title, bounded(words, MAX_WORDS), now(), ending="stuck")


_CUT_OFF = (
    f"The model's replies reached their greatest length {MAX_CUT_OFF} times in a row without a call of a tool, so the"
    " job was ended. Set max_output_tokens of the model higher, its reasoning_effort lower, or ask for less at once."
)
_REPEATED = (
    "The agent is stuck: the model repeats the same replies, although it was reminded. Send the job a message that says"
    " how to go on, or use another model."
)


def _cut_off_replies(steps: Sequence[TranscriptStep]) -> int:
    """Return how many replies at the end were cut off without a call."""
    count = 0
    for step in reversed(steps):
        if not isinstance(step, ModelReplied) or not step.cut_off or step.tool_calls:
            break
        count += 1
    return count


def _repeats(steps: Sequence[TranscriptStep]) -> bool:
    """Return whether the last replies are the same few, again and again, since the last message or reminder."""
    replies: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for step in reversed(steps):
        if isinstance(step, ModelReplied):
            replies.append((step.text, tuple((call.name, call.arguments) for call in step.tool_calls)))
            if len(replies) == MAX_REPEATS * LONGEST_REPEATED:
                break
        elif not isinstance(step, ToolReturned):
            break
    return any(
        len(replies) >= MAX_REPEATS * length and replies[: MAX_REPEATS * length] == replies[:length] * MAX_REPEATS
        for length in range(1, LONGEST_REPEATED + 1)
    )


def _since_progress(transcript: Sequence[TranscriptStep]) -> tuple[list[ToolReturned], set[str]]:
    """Return the failures of the call that failed last, and the reasons of reminders, both since the last progress."""
    failures: list[tuple[tuple[str, str], ToolReturned]] = []
    reminders: set[str] = set()
    calls: dict[str, tuple[str, str]] = {}
    """The last reply's: providers repeat ids in later ones."""
    for step in transcript:
        match step:
            case ModelReplied(tool_calls=tool_calls):
                calls = {call.id: (call.name, call.arguments) for call in tool_calls}
            case ToolReturned(is_error=True):
                failures.append((calls.get(step.call_id, (step.name, "")), step))
            case ToolReturned(name=name):
                reminders.discard("words")
                if name in WRITING:
                    failures.clear()
                    reminders.clear()
            case ModelReminded(reason=reason):
                reminders.add(reason)
            case _:
                failures.clear()
                reminders.clear()
    return [result for call, result in failures if call == failures[-1][0]], reminders


def _words_about(failures: Sequence[ToolReturned], steps: Sequence[TranscriptStep]) -> str:
    said = next((step.text.strip() for step in reversed(steps) if isinstance(step, ModelReplied)), "")
    error = " ".join(bounded(failures[0].result, 500).split())
    stuck = f"The agent is stuck: its call of {failures[0].name} failed {len(failures)} times with: {error}"
    return "\n\n".join(filter(None, (said, f"{stuck} Send the job a message that says how to go on.")))
