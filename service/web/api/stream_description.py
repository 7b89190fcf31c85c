"""The API's description of the streams: which chunks and events there are; part of ``description``.

The encoders of ``service.wire`` write them. Tests compare this description with what they write.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from service.views.fields import Reference, described

UI_CHUNKS: Mapping[str, str] = {
    "start": "The reply's id and the thread's.",
    "start-step": "A step begins: a search, or the text.",
    "tool-input-start": "A search begins.",
    "tool-input-available": "The words that are searched for.",
    "tool-output-available": "The passages that were found.",
    "tool-output-error": "The search failed.",
    "source-url": "A page that passages are from.",
    "text-start": "Text begins.",
    "text-delta": "More of the text.",
    "text-end": "The text ends.",
    "finish-step": "The step ends.",
    "error": "The reply broke off; what came before it stays.",
    "finish": "The reply is whole.",
}
"""Type to meaning."""

LIVE_EVENTS: Mapping[str, tuple[str, str]] = {
    "job-requested": ("The job was asked for.", "title, source, branch, model, asDraft, requestedAt"),
    "job-started": ("Work on it begins, or begins again.", "attempt, startedAt"),
    "workspace-opened": ("The repository is at hand.", "baseCommit, openedAt"),
    "model-replied": ("The model's text, and the tools that it calls.", "model, text, toolCalls, usage, repliedAt"),
    "tool-returned": ("The result of a tool.", "callId, name, result, isError, returnedAt"),
    "file-changed": ("A file was written, or deleted.", "path, deleted"),
    "plan-changed": ("The agent's plan.", "todos"),
    "work-finished": ("The agent says that it is done.", "title, summary, finishedAt"),
    "checks-reported": (
        "Problems that the checks before a pull request found; `returned`: to the agent.",
        "round, problems, returned, reportedAt",
    ),
    "committed": ("The commit was made.", "commit, message, committedAt"),
    "branch-pushed": ("The branch is on the code host.", "branch, commit, pushedAt"),
    "branch-changed": ("The work is on another branch from now on.", "branch, changedAt"),
    "work-rebased": ("The work is based on another commit.", "onto, insteadOf, rebasedAt"),
    "pull-request-opened": ("The pull request is open.", "number, url, openedAt"),
    "pull-request-updated": ("It has another commit.", "number, url, updatedAt"),
    "pull-request-closed": ("It was merged, or closed.", "outcome, closedAt, mergeCommit"),
    "job-completed": ("The job is done.", "message, completedAt"),
    "job-failed": ("The job has failed.", "code, message, failedAt"),
    "job-interrupted": ("The process that worked on it ended; it goes on.", "attempt, interruptedAt"),
    "message-added": ("The job got a message.", "text, addedAt"),
    "job-reopened": ("It goes on after its end.", "round, keepsChanges, reopenedAt"),
    "round-started": ("The work on the message begins.", "round, startedAt"),
    "job-archived": ("It was archived.", "archivedAt"),
    "queue-position": ("Its place in the queue, from 1.", "position"),
}
"""Type to meaning and fields."""

DATA_LINES: Mapping[str, str] = {
    "f": "a step begins: `messageId`",
    "9": "a tool is called: `toolCallId`, `toolName`, `args`",
    "a": "the result of a tool call: `toolCallId`, `result`",
    "0": "more of the text, as a JSON string",
    "2": "a list of data: events of a job, and at the end `type` `finish` with the thread's or the job's id",
    "8": "the same at the end of a reply, for the message",
    "e": "the step ends: `finishReason`, `usage`, `isContinued`",
    "d": "the end: `finishReason`, `usage`, and `type` `finish` with the thread's or the job's id",
    "3": "an error, as a JSON string; nothing follows",
}
"""Code to meaning."""


def _table(*rows: tuple[str, ...]) -> str:
    head, *rest = rows
    lines = [head, tuple("---" for _ in head), *rest]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


UI_TABLE = _table(("`type`", "Meaning"), *((f"`{kind}`", text) for kind, text in UI_CHUNKS.items()))
LIVE_TABLE = _table(
    ("`type`", "Meaning", "Fields"),
    *(
        (f"`{kind}`", text, ", ".join(f"`{field}`" for field in fields.split(", ")))
        for kind, (text, fields) in LIVE_EVENTS.items()
    ),
)
DATA_TABLE = "Each line is a code, a colon and JSON; empty lines keep the connection alive.\n\n" + _table(
    ("Code", "Meaning"), *((f"`{code}`", text) for code, text in DATA_LINES.items())
)


class LiveEvent(Struct, frozen=True):
    """An event of a job. Further fields depend on its type."""

    type: Annotated[str, described("The type of the event; the same as its name.", examples=list(LIVE_EVENTS))]


class ThreadMetadata(Struct, frozen=True, rename="camel"):
    """Which thread a reply is in."""

    thread_id: Annotated[str | UnsetType, described("The thread's id.")] = UNSET


class UiChunk(Struct, frozen=True, rename="camel"):
    """A chunk of a reply, as the AI SDK 5 and later have it. Its fields depend on its type."""

    type: Annotated[str, Meta(description="What it is.", extra_json_schema={"enum": list(UI_CHUNKS)})]
    message_id: Annotated[str | UnsetType, described("`start`: the reply's id, which feedback names.")] = UNSET
    message_metadata: Annotated[
        ThreadMetadata | UnsetType, described("`start`, `finish`: which thread the reply is in.")
    ] = UNSET
    thread_id: Annotated[
        str | UnsetType, described("`finish`: the thread's id, for readers that are no client of the AI SDK.")
    ] = UNSET
    id: Annotated[str | UnsetType, described("`text-…`: which text.")] = UNSET
    delta: Annotated[str | UnsetType, described("`text-delta`: the next part of the text.")] = UNSET
    tool_call_id: Annotated[str | UnsetType, described("`tool-…`: which search.")] = UNSET
    tool_name: Annotated[str | UnsetType, described("`tool-input-…`: `search`.")] = UNSET
    provider_executed: Annotated[bool | UnsetType, described("`tool-…`: there is nothing for the client to do.")] = (
        UNSET
    )
    input: Annotated[dict[str, Any] | UnsetType, described("`tool-input-available`: the `query`.")] = UNSET
    output: Annotated[
        dict[str, Any] | UnsetType, described("`tool-output-available`: the passages, as `results`, numbered as cited.")
    ] = UNSET
    source_id: Annotated[str | UnsetType, described("`source-url`: its name in this reply.")] = UNSET
    url: Annotated[Reference | UnsetType, described("`source-url`: the page's address.")] = UNSET
    title: Annotated[str | UnsetType, described("`source-url`: the page's title.")] = UNSET
    error_text: Annotated[
        str | UnsetType, described("`error`, `tool-output-error`: what went wrong, as a sentence.")
    ] = UNSET


UI_EXAMPLE = """\
data: {"type":"start","messageId":"msg_4da30a87","messageMetadata":{"threadId":"kq3vN0tq"}}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"Run "}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","threadId":"kq3vN0tq","messageMetadata":{"threadId":"kq3vN0tq"}}

data: [DONE]

"""

LIVE_EXAMPLE = """\
id: 41
event: job-requested
data: {"type":"job-requested","title":"Fix broken links","branch":"docs/fix-broken-links-1d8f3a52"}

id: 63
event: pull-request-opened
data: {"type":"pull-request-opened","number":1,"url":"https://git.example.com/acme/guide/pulls/1"}

"""

DATA_HEADERS = ("x-vercel-ai-data-stream",)
DATA_EXAMPLE = """\
f:{"messageId":"msg_4da30a87"}
0:"Run "
e:{"finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
d:{"type":"finish","threadId":"kq3vN0tq","finishReason":"stop","usage":{"promptTokens":0,"completionTokens":0}}
"""
