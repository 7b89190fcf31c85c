"""Fit a job's steps into the model's context window: each in full, shortened, or many of them in one note.

The result depends on the record alone, from the first step on, so a job that goes on after a crash sends what it would
have sent. Steps are shortened oldest first. Whenever no room is left, enough of them are shortened at once that the
prompt then stays the same for many calls: providers cache a prompt as long as its beginning is the same. A shortened
step says what was done and to which file, so the model knows what it can read again.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from service.agent.loop.comments import Versions, comment_message
from service.agent.loop.rounds import questions
from service.agent.prompts import prompt
from service.agent.tools.arguments import WRITING
from service.agent.tools.checking import shown_problems
from service.agent.tools.excerpts import beginning
from service.agent.tools.results import as_data, bounded
from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    ChecksReported,
    JobReopened,
    MergeConflict,
    MessageAdded,
    ModelReminded,
    ModelReplied,
    RoundStarted,
    ToolReturned,
    TranscriptStep,
    WorkRebased,
)
from service.domain.model import ToolCall, decoded_arguments
from service.domain.tool_values import Found
from service.ports.context_budget import ContextBudget
from service.ports.model import AssistantMessage, ModelMessage, ToolMessage, UserMessage

BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 in a token, estimated low: English prose has more than four, code and Chinese about three."""
MOST_PROMPT_TOKENS = 130_000
"""However large the window: each call pays for the whole prompt again, and attention thins out."""
MARGIN = 0.9
"""The part of the window that is used: estimates err, and providers count things of their own."""
FREED = 0.6
"""How full what room there is may be once steps have been shortened."""
LEAST_ROOM = 8_000
"""Bytes for the steps, however little is left of the window: less and no work could be done."""

_SHORT_RESULT = 400
_SHORT_TEXT = 600
_SHORT_ARGUMENTS = 400
_MAX_NAMED = 20
_MESSAGE_BYTES = 40
"""Bytes that a message needs besides its text."""

LEFT_OUT = "left out to save room; call the tool again if you need it"


def prompt_bytes(budget: ContextBudget) -> int | None:
    """Return how much a prompt may hold, in bytes; None where the model's window is unknown."""
    if budget.prompt_tokens is None:
        return None
    tokens = min(MOST_PROMPT_TOKENS, int(budget.prompt_tokens * MARGIN))
    return (tokens * BYTES_PER_TOKEN) >> budget.shrink_level


def told(steps: Sequence[TranscriptStep], room: int | None, versions: Versions | None = None) -> list[ModelMessage]:
    """The steps as messages; in full for None, else of at most about ``room`` bytes.

    What people said meanwhile is instructions: neither shortened nor left out. ``versions``: the texts of the pull
    request's files, for comments on their lines.
    """
    known = versions or {}
    whole = [in_full(step, None, asked, known) for step, asked in zip(steps, questions(steps), strict=True)]
    if room is None:
        return [message for messages in whole for message in messages]
    is_said = [isinstance(step, MessageAdded) for step in steps]
    said = [size(messages) if one else 0 for messages, one in zip(whole, is_said, strict=True)]
    room = max(LEAST_ROOM, room - sum(said))
    most = max(2_000, room // 3)
    full = [in_full(s, most) if isinstance(s, ToolReturned) else m for s, m in zip(steps, whole, strict=True)]
    short = [in_short(step, messages) for step, messages in zip(steps, whole, strict=True)]
    sizes_in_full = [size(m) - more for m, more in zip(full, said, strict=True)]
    sizes_in_short = [size(m) - more for m, more in zip(short, said, strict=True)]
    left_out, shortened = _cuts(steps, sizes_in_full, sizes_in_short, room)
    messages: list[ModelMessage] = []
    if left_out:
        messages.append(UserMessage(_note(steps[:left_out]), "note"))
        messages += [message for at in range(left_out) if is_said[at] for message in whole[at]]
    for index in range(left_out, len(steps)):
        messages += short[index] if index < shortened else full[index]
    return messages


def _cuts(steps: Sequence[TranscriptStep], full: Sequence[int], short: Sequence[int], room: int) -> tuple[int, int]:
    """Return two indexes: the steps before the first are left out, those before the second are shortened.

    The calls that were made are replayed in order, since a step that was shortened for one stays so for the next. The
    last reply and its results are shortened last: the model goes on from them.
    """
    left_out = shortened = used = latest = 0
    for index in range(len(steps) + 1):
        if index == len(steps) or isinstance(steps[index], ModelReplied):
            if used > room:
                while shortened < latest and used > FREED * room:
                    used -= full[shortened] - short[shortened]
                    shortened += 1
            if used > room:
                while left_out < latest and (used > FREED * room or not isinstance(steps[left_out], ModelReplied)):
                    used -= short[left_out]
                    left_out += 1
            while shortened < index and used > room:
                used -= full[shortened] - short[shortened]
                shortened += 1
            latest = index
        if index < len(steps):
            used += full[index]
    return left_out, max(left_out, shortened)


def size(messages: Sequence[ModelMessage]) -> int:
    """Bytes, about."""
    total = 0
    for message in messages:
        total += _MESSAGE_BYTES + _bytes(message.text)
        if isinstance(message, AssistantMessage):
            total += sum(_MESSAGE_BYTES + _bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
            total += message.memory.bytes if message.memory is not None else 0
    return total


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def in_full(
    step: TranscriptStep, most: int | None, asked: str = "", versions: Versions | None = None
) -> list[ModelMessage]:
    """``most``: the characters of one tool's result; what is more is cut, with a note. ``asked``: the question that a
    step begins the answer to.
    """
    match step:
        case ModelReplied():
            return _reply(step)
        case ToolReturned():
            return [_result(step, most)]
        case ChecksReported(problems=problems):
            return [UserMessage(prompt("checks", problems=shown_problems(problems)), "checks")]
        case MessageAdded(comment=comment, text=text):
            return [UserMessage(text) if comment is None else comment_message(comment, text, versions or {})]
        case ModelReminded(reason=reason):
            return [UserMessage(prompt(f"reminder-{reason}"), "nudge")]
        case JobReopened() if asked:
            return [UserMessage(prompt("answered", question=as_data(asked)), "round")]
        case JobReopened(keeps_changes=True):
            return [UserMessage(prompt("round-kept"), "round")]
        case JobReopened() | RoundStarted():
            return [UserMessage(prompt("round"), "new-round")]
        case BaseMerged(conflicts=()):
            return [UserMessage(prompt("merged"), "merge")]
        case BaseMerged(conflicts=conflicts) | WorkRebased(conflicts=conflicts):
            return [UserMessage(prompt("conflicts", conflicts=_conflicts(conflicts)), "merge")]
        case BaseNotMerged(problems=problems):
            return [UserMessage(prompt("not-merged", problems=shown_problems(problems)), "note")]


def _reply(step: ModelReplied) -> list[ModelMessage]:
    if not step.text and not step.tool_calls:
        return []  # providers refuse an empty message; a reminder follows
    message = AssistantMessage(step.text, step.tool_calls, step.memory)
    return [message, UserMessage(prompt("cut-off"), "nudge")] if step.cut_off and not step.tool_calls else [message]


def _result(step: ToolReturned, most: int | None) -> ToolMessage:
    if most is None or len(step.result) <= most:
        return ToolMessage(step.call_id, step.name, step.result, step.is_error, step.value)
    return ToolMessage(step.call_id, step.name, cut(step.result, most), step.is_error)


def in_short(step: TranscriptStep, whole: list[ModelMessage]) -> list[ModelMessage]:
    """``whole``: its messages in full, which some steps keep."""
    match step:
        case ModelReplied(text=text, tool_calls=calls, memory=memory):
            shown = bounded(text, _SHORT_TEXT)
            return [AssistantMessage(shown, tuple(map(_short_call, calls)), memory)] if shown or calls else []
        case ToolReturned(call_id=call_id, name=name, is_error=is_error):
            return [ToolMessage(call_id, name, _short_result(step), is_error)]
        case ChecksReported(problems=problems):
            return [UserMessage(prompt("shortened-checks", count=str(len(problems))), "checks")]
        case BaseMerged(conflicts=conflicts) | WorkRebased(conflicts=conflicts) if conflicts:
            places = ", ".join(dict.fromkeys(conflict.path for conflict in conflicts))
            return [UserMessage(prompt("shortened-merge", paths=as_data(places)), "merge")]
        case (
            MessageAdded() | ModelReminded() | JobReopened() | RoundStarted()
            | BaseMerged() | WorkRebased() | BaseNotMerged()
        ):  # fmt: skip
            return whole


_FENCE = re.compile(r"<data ([0-9a-f]{8})>\n")


def cut(result: str, most: int) -> str:
    """The beginning of a result, its data fenced as before."""
    if len(result) <= most:
        return result
    kept = beginning(result, most)
    opened = [tag for tag in _FENCE.findall(kept) if f"</data {tag}>" not in kept]
    fence = f"\n</data {opened[-1]}>" if opened else ""
    return f"{kept}{fence}\n[{len(result) - len(kept)} characters more were left out: ask for less at once]"


def _short_result(step: ToolReturned) -> str:
    """Return where something was found, without the text: the line before the data names the file and the lines."""
    result = step.result
    if len(result) <= _SHORT_RESULT:
        return result
    head = result.partition("\n")[0] if "<data " in result else ""
    head = bounded(head or result, _SHORT_RESULT // 2)
    if isinstance(step.value, Found) and step.value.paths:
        found = step.value.paths
        named = ", ".join(found[:_MAX_NAMED]) + (" …" if len(found) > _MAX_NAMED else "")
        head += f"\n{as_data(bounded(named, 2 * _SHORT_RESULT))}"
    return f"{head}\n[{result.count(chr(10)) + 1} lines, {LEFT_OUT}.]"


def _short_call(call: ToolCall) -> ToolCall:
    if len(call.arguments) <= _SHORT_ARGUMENTS:
        return call
    left_out: dict[str, object] = {"left_out": f"{len(call.arguments)} characters"}
    try:
        arguments = decoded_arguments(call.arguments, dict[str, object])
    except msgspec.DecodeError:
        arguments = left_out
    shown = msgspec.json.encode({name: _short_value(value) for name, value in arguments.items()}).decode()
    if len(shown) > 2 * _SHORT_ARGUMENTS:
        shown = msgspec.json.encode(left_out).decode()
    return ToolCall(call.id, call.name, shown)


def _short_value(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= 120 else f"{value[:80]} [… {len(value) - 80} characters left out]"
    return value if isinstance(value, bool | int | float | None) else "[left out]"


def _note(steps: Sequence[TranscriptStep]) -> str:
    """Return the note in place of steps that are left out. Paths are the model's own words, yet quoted as data."""
    calls = {call.id: call for step in steps if isinstance(step, ModelReplied) for call in step.tool_calls}
    done = [step for step in steps if isinstance(step, ToolReturned) and not step.is_error]
    counts = Counter(step.name for step in done)
    paths: dict[str, None] = {}
    for step in done:
        if step.name in WRITING and step.call_id in calls:
            paths.update(dict.fromkeys(_paths_of(calls[step.call_id])))
    changed = as_data("\n".join([*list(paths)[:100], *(["…"] if len(paths) > 100 else [])])) if paths else "none"
    return prompt(
        "left-out",
        calls=", ".join(f"{name} {count} times" for name, count in counts.items()) or "none",
        changed=changed,
    )


def _paths_of(call: ToolCall) -> list[str]:
    try:
        arguments = decoded_arguments(call.arguments, dict[str, object])
    except msgspec.DecodeError:
        return []
    found = [arguments.get(name) for name in ("path", "to")]
    edits = arguments.get("edits")
    found += [edit.get("path") for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    return [bounded(path, 200) for path in found if isinstance(path, str)]


def _conflicts(conflicts: Sequence[MergeConflict]) -> str:
    return "\n\n".join(
        f"{conflict.path}, line {conflict.line}:\n{as_data(conflict.text)}" if conflict.text else
        f"{conflict.path}, line {conflict.line}: left out here; read it in the file"
        for conflict in conflicts
    )  # fmt: skip
