"""What the model is shown: rebuilt from the record for every call, so that a resumed job asks what it would have asked.

Only our own text has system authority. Callers' messages, whatever role they claim, are the user's; files are data.
"""

import functools
from collections.abc import Sequence
from typing import assert_never

from service.agent.prompts import prompt
from service.agent.tools import as_data, bounded
from service.agent.workspace import AGENT_FILES, NAVIGATION_FILES, Workspace, is_under
from service.domain.jobs import ChecksReported, JobRequested, ModelReplied, Problem, ToolReturned, Work
from service.ports.model import AssistantMessage, ModelMessage, SystemMessage, ToolMessage, UserMessage

MAX_GUIDANCE_CHARACTERS = 8_000
MAX_TOP_ENTRIES = 40
MAX_PROBLEMS_SHOWN = 60
MAX_TRANSCRIPT_CHARACTERS = 400_000
"""About 100,000 tokens: beyond that the oldest tool results are left out, a tenth of them at a time, so that what the
providers cache of a prompt stays the same for many calls."""

LEFT_OUT = "[This result was left out to save room. Call the tool again if you need it.]"


@functools.cache
def system_prompt() -> str:
    return prompt("system")


async def facts(workspace: Workspace) -> str:
    """About the repository, from its base commit, and so the same for the whole job."""
    folder = workspace.docs_folder
    paths = [path for path in workspace.readable_base_paths() if is_under(path, folder)]
    pages = sum(path.lower().endswith((".md", ".mdx", ".markdown", ".rst", ".adoc")) for path in paths)
    start = len(folder) + 1 if folder else 0
    top: dict[str, int] = {}
    for path in paths:
        name, slash, _ = path[start:].partition("/")
        top[name + slash] = top.get(name + slash, 0) + 1
    entries = [f"{name} ({count} files)" if name.endswith("/") else name for name, count in list(top.items())]
    shown = "\n".join(entries[:MAX_TOP_ENTRIES])
    if len(entries) > MAX_TOP_ENTRIES:
        shown += f"\n({len(entries) - MAX_TOP_ENTRIES} more)"
    named = [path for path in workspace.readable_base_paths() if path.rpartition("/")[2] in NAVIGATION_FILES]
    shown += "".join(f"\nNavigation: {path}" for path in named[:3])
    return prompt(
        "repository",
        folder=f"the folder {folder}/" if folder else "the whole repository",
        pages=f"{pages} pages",
        top=as_data(shown),
        guidance=await _guidance(workspace),
    )


async def _guidance(workspace: Workspace) -> str:
    """AGENTS.md (or its like) at the root and in the docs folder, the nearest last."""
    quoted = []
    for folder in dict.fromkeys(("", workspace.docs_folder)):
        for name in sorted(AGENT_FILES):
            path = f"{folder}/{name}" if folder else name
            text = await workspace.base_text(path)
            if text is not None and text.strip():
                quoted.append(
                    prompt("guidance", path=path, quoted=as_data(bounded(text.strip(), MAX_GUIDANCE_CHARACTERS)))
                )
                break
    return "\n" + "\n\n".join(quoted) if quoted else ""


def messages(request: JobRequested, work: Work, repository: str) -> tuple[ModelMessage, ...]:
    told: list[ModelMessage] = [SystemMessage(system_prompt()), UserMessage(repository)]
    for message in request.messages:
        if not message.content.strip():
            continue
        if message.role == "assistant":
            told.append(AssistantMessage(message.content))
        else:
            told.append(UserMessage(message.content))
    kept_from = _kept_from(work.transcript)
    for index, step in enumerate(work.transcript):
        match step:
            case ModelReplied(text=text, tool_calls=calls, cut_off=cut_off):
                if text or calls:
                    told.append(AssistantMessage(text, calls))
                if cut_off and not calls:
                    told.append(UserMessage(prompt("cut-off")))
            case ToolReturned(call_id=call_id, name=name, result=result, is_error=is_error):
                told.append(ToolMessage(call_id, name, result if index >= kept_from else LEFT_OUT, is_error))
            case ChecksReported(problems=problems):
                told.append(UserMessage(prompt("checks", problems=_listed(problems))))
            case _:
                assert_never(step)
    if isinstance(told[-1], AssistantMessage):
        told.append(UserMessage(prompt("nudge")))
    return tuple(told)


def _listed(problems: Sequence[Problem]) -> str:
    lines = [
        f"- {problem.path}{f', line {problem.line}' if problem.line else ''}: {problem.message} ({problem.gate})"
        for problem in problems[:MAX_PROBLEMS_SHOWN]
    ]
    if len(problems) > MAX_PROBLEMS_SHOWN:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS_SHOWN} more")
    return as_data("\n".join(lines))


def _kept_from(transcript: Sequence[ModelReplied | ToolReturned | ChecksReported]) -> int:
    """The index from which tool results are shown in full."""
    sizes = [
        (index, len(step.result)) for index, step in enumerate(transcript) if isinstance(step, ToolReturned)
    ]  # fmt: skip
    total = sum(size for _, size in sizes)
    excess = total - MAX_TRANSCRIPT_CHARACTERS
    if excess <= 0:
        return 0
    step = MAX_TRANSCRIPT_CHARACTERS // 10
    drop = -(-excess // step) * step
    for index, size in sizes:
        drop -= size
        if drop <= 0:
            return index + 1
    return len(transcript)
