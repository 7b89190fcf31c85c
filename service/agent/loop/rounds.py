"""How a further round begins: with what was asked and done before it, and with the pull request as it is by then.

The calls of earlier rounds are not sent again, since files have changed after them: what is known to be current takes
their place. After an answer to the agent's own question the work goes on from the question instead.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from service.agent import pull_request
from service.agent.loop.comments import comment_message
from service.agent.loop.job_context import JobContext
from service.agent.prompts import prompt
from service.agent.tools.diffs import STEPS, Versions, unified
from service.agent.tools.results import as_data, bounded, number_of
from service.agent.workspace import Workspace
from service.domain.errors import NotFound
from service.domain.jobs.decider import (
    JobReopened,
    JobRequested,
    MessageAdded,
    ModelReplied,
    Round,
    RoundStarted,
    Running,
    ToolReturned,
    TranscriptStep,
    Work,
)
from service.domain.model import ToolCall, decoded_arguments
from service.domain.texts.comparison import Effort
from service.ports.model import ModelMessage, UserMessage

BYTES_BEFORE_THE_WORK = 27_000
"""Bytes of a further round's first prompt that are aimed at: 9,000 tokens of prose, code and diffs have 30,000."""
LEAST_BYTES, MOST_BYTES = 3_000, 12_000
"""Bytes of the pull request's diff, however little or much of them is left."""
MAX_SUMMARY, MAX_NOTE, MAX_NOTES = 2_000, 800, 10
"""Characters of the pull request's summary and of an earlier round's words; rounds whose words are shown."""
MAX_FILES = 100
"""Files of a pull request that are compared."""


class SoFar(Struct, frozen=True):
    """A pull request as a round of its job finds it."""

    title: str
    summary: str
    versions: dict[str, tuple[str | None, str | None]]
    """Texts of its files: the documentation's, and those that the branch has where the round begins."""
    diffs: tuple[str, ...]
    """One for each file."""
    unread: tuple[str, ...] = ()
    """Paths of further files."""


def since_merge(rounds: Sequence[Round]) -> tuple[str, Sequence[Round]]:
    """Return the documentation's commit that was merged last, and the rounds from then on; else the first one's."""
    for at in range(len(rounds) - 1, -1, -1):
        if rounds[at].commit.merged:
            return rounds[at].commit.merged, rounds[at:]
    return rounds[0].commit.parent, rounds


async def whole(state: Running, workspace: Workspace, context: JobContext) -> Workspace:
    """Return the workspace of all that the pull request changes, of which a round's may be a part.

    Raises NotFound: the commit that it begins from is not in our clone any more.
    """
    rounds = state.work.rounds
    if not rounds or workspace.merged is not None:  # the changes of a merge are those of the whole pull request
        return workspace
    base, those = since_merge(rounds)
    changes = {path: text for done in those for path, text in done.changes.items()} | dict(workspace.changes)
    return await Workspace.open(context.docs, context.source, base, changes, known=context.known)


async def so_far(state: Running, context: JobContext) -> SoFar | None:
    """Return the pull request that the round goes on with; None when there is none."""
    rounds, head = state.work.rounds, state.work.base_commit
    if not rounds or head is None:
        return None
    base, those = since_merge(rounds)
    paths = sorted({path for done in those for path in done.changes})
    versions: dict[str, tuple[str | None, str | None]] = {}
    try:
        one = await Workspace.open(context.docs, context.source, base, {}, known=context.known)
        other = await Workspace.open(context.docs, context.source, head, {}, known=context.known)
        for path in paths[:MAX_FILES]:
            before, after = await one.base_text(path), await other.base_text(path)
            if before != after:
                versions[path] = before, after
        unread = paths[MAX_FILES:]
    except NotFound:  # the clone was made again, without that commit
        unread = paths
    diffs = await asyncio.to_thread(_diffs, versions)
    title = pull_request.title(rounds[-1].finish, rounds[:-1])
    summary = pull_request.summary(rounds[-1].finish, rounds[:-1])
    return SoFar(title, bounded(summary, MAX_SUMMARY), versions, diffs, tuple(unread))


def _diffs(versions: dict[str, tuple[str | None, str | None]]) -> tuple[str, ...]:
    effort = Effort(STEPS)
    files: list[Versions] = [(path, path, before, after) for path, (before, after) in versions.items()]
    return tuple("\n".join(unified(file, effort)) for file in files)


def so_far_message(shown: SoFar, characters: int) -> UserMessage:
    """Return the message about the pull request, with a diff of about this length."""
    room, parts = max(LEAST_BYTES, min(MOST_BYTES, characters)), list[str]()
    unread = [*shown.unread]
    for path, diff in zip(shown.versions, shown.diffs, strict=True):
        if len(diff) <= room:
            parts.append(diff)
            room -= len(diff)
        else:
            unread.append(path)
    if unread:
        some = ", ".join(unread[:20]) + (" …" if len(unread) > 20 else "")
        parts.append(f"[{number_of(len(unread), 'more file')}, to be read: {bounded(some, 1_000)}]")
    words = f"{shown.title}\n\n{shown.summary}"
    return UserMessage(prompt("so-far", words=as_data(words), diff=as_data("\n".join(parts))), "note")


def begin(steps: Sequence[TranscriptStep]) -> int:
    """Return where the steps that a prompt has in full begin: the last round that does not go on from kept work."""
    for at in range(len(steps) - 1, -1, -1):
        match steps[at]:
            case RoundStarted():
                return at
            case JobReopened(keeps_changes=False) if not question_before(steps, at):
                return at
            case _:
                pass
    return 0


def began_at(request: JobRequested, work: Work) -> datetime:
    """Return when these steps began."""
    at = begin(work.transcript)
    match work.transcript[at] if work.transcript else None:
        case JobReopened(reopened_at=began) | RoundStarted(started_at=began):
            return began
        case _:
            return request.requested_at


def question_before(steps: Sequence[TranscriptStep], at: int) -> str:
    """Return the agent's question with which its work ended just before a step; empty when it did not."""
    asked: set[str] = set()
    for step in reversed(steps[:at]):
        match step:
            case ToolReturned(name="ask", is_error=False, call_id=call_id):
                asked.add(call_id)
            case ToolReturned():
                pass
            case ModelReplied(tool_calls=calls):
                return next((_text(call, "question") for call in reversed(calls) if call.id in asked), "")
            case _:
                return ""
    return ""


def told_before(steps: Sequence[TranscriptStep]) -> list[ModelMessage]:
    """Return what was asked in earlier rounds, in full, and what came of it, shortened."""
    messages: list[ModelMessage] = []
    notes: list[int] = []
    last: ModelReplied | None = None
    for at, step in enumerate((*steps, None)):
        match step:
            case MessageAdded(comment=comment, text=text):
                messages.append(UserMessage(text) if comment is None else comment_message(comment, text))
            case ModelReplied():
                last = step
            case JobReopened() | RoundStarted() | None if last is not None and (
                step is None or begin(steps[: at + 1]) == at
            ):
                if words := _outcome(last):
                    notes.append(len(messages))
                    messages.append(UserMessage(prompt("round-done", words=as_data(bounded(words, MAX_NOTE))), "note"))
                last = None
            case _:
                pass
    left_out = set(notes[:-MAX_NOTES])
    return [message for at, message in enumerate(messages) if at not in left_out]


def _outcome(reply: ModelReplied) -> str:
    """Return the words with which a round ended."""
    for call in reply.tool_calls:
        if call.name == "finish":
            said = (_text(call, "change") or _text(call, "title"), _text(call, "answer") or _text(call, "summary"))
            return "\n\n".join(filter(None, said))
        if call.name == "ask":
            return _text(call, "question")
    return reply.text.strip()


def _text(call: ToolCall, name: str) -> str:
    try:
        value = decoded_arguments(call.arguments, dict[str, object]).get(name)
    except msgspec.DecodeError:
        return ""
    return value.strip() if isinstance(value, str) else ""


def questions(steps: Sequence[TranscriptStep]) -> Iterator[str]:
    """Yield for each step the question that it answers, which is empty for most."""
    for at, step in enumerate(steps):
        yield question_before(steps, at) if isinstance(step, JobReopened) else ""
